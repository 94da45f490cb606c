"""`heliograph plan FILE`: every change that a run would make on the clusters besides copying records, and none is made."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import asdict
from typing import Any

from heliograph.cli.effective import load_effective, say_no_flows
from heliograph.cli.words import count
from heliograph.cli.working import working
from heliograph.operations.pending import FlowPending, pending


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "plan",
        help="show every change that is pending, and make none",
        description="Looks at both clusters of every flow as a run does, and prints what it would make, grow or change there, "
        "with the reason. Changes nothing. Prints that nothing is pending once a run has done it. Exit code 1 if something "
        "could not be looked at.",
    )
    parser.add_argument("file", metavar="FILE", help="a MirrorMaker 2 driver file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    with working("looking at both sides of every flow"):
        settings = load_effective(args.file)
        flows = asyncio.run(pending(settings))
    if args.json:
        sys.stdout.write(json.dumps({"flows": [asdict(flow) for flow in flows]}, indent=2, ensure_ascii=False) + "\n")
    else:
        say_no_flows(settings)
        sys.stdout.write("".join(f"{line}\n" for flow in flows for line in lines_of(flow)))
    return 1 if any(flow.troubles for flow in flows) else 0


def _headline(flow: FlowPending) -> str:
    if flow.actions:
        return f"{count(len(flow.actions), 'change')} pending"
    return "could not be looked at" if flow.unseen else "nothing pending"


def lines_of(flow: FlowPending) -> list[str]:
    """A headline, and a line for each change, each topic left out, each trouble."""
    lines = [f"{flow.flow}: {_headline(flow)}"]
    lines += [f"  {action.subject}: {action.what} ({action.why})" for action in flow.actions]
    lines += [f"  left out: {sentence}" for sentence in flow.left_out]
    lines += [f"  {trouble}" if flow.unseen else f"  not looked at: {trouble}" for trouble in flow.troubles]
    return lines
