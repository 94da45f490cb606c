"""`heliograph compare FILE`: topics, configs, ACLs, quotas and groups of the two clusters of a flow, and only what differs."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from heliograph.cli.choice import flow_named
from heliograph.cli.effective import load_effective, say_no_flows
from heliograph.cli.words import count
from heliograph.cli.working import working
from heliograph.operations.side_by_side import FlowCompared, compare_flows

_ABOUT = """\
Holds both clusters of every flow against each other, under the names and rules of the flow: topics and their partitions, topic
configs, ACLs, client quotas, consumer groups. Prints what differs, and changes nothing. Records are not read: see `heliograph
audit` for those.

Exit code 0 if nothing differs, 1 if something does or could not be compared.
"""
_HEADINGS = ("what", "name")


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="what differs between the two clusters of a flow",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="a MirrorMaker 2 driver file")
    parser.add_argument("--flow", metavar="A->B", help="only this flow")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    settings = load_effective(args.file)
    flows = settings.flows if args.flow is None else (flow_named(settings, args.flow),)
    with working("reading both sides of every flow"):
        found = asyncio.run(compare_flows(flows, settings.engine))
    if args.json:
        sys.stdout.write(json.dumps({"flows": [asdict(flow) for flow in found]}, indent=2, ensure_ascii=False) + "\n")
    else:
        say_no_flows(settings)
        sys.stdout.write("".join(f"{line}\n" for flow in found for line in lines_of(flow)))
    return 0 if all(flow.is_same for flow in found) else 1


def lines_of(flow: FlowCompared) -> list[str]:
    """A headline, a table of what differs, and what could not be compared."""
    if not flow.was_compared:
        return [f"{flow.flow}: could not be compared: {'; '.join(flow.troubles)}"]
    number = count(len(flow.differences), "difference") if flow.differences else "no differences"
    looked_at = ", ".join(count(many, about.removesuffix("s")) for about, many in flow.compared.items())
    part = "so far, not everything could be compared" if flow.troubles else ""
    lines = [
        f"{flow.flow}: {' '.join(filter(None, (number, part)))}" + (f" ({looked_at} compared)" if looked_at else "")
    ]
    if flow.differences:
        rows = [(each.about, each.subject, each.source, each.target) for each in flow.differences]
        lines += _table([(*_HEADINGS, f"on {flow.source}", f"on {flow.target}"), *rows])
    return lines + [f"  not compared: {trouble}" for trouble in flow.troubles]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
