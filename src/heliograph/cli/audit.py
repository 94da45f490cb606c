"""`heliograph audit FILE`: what became of every source offset of every lane; the sums must close."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any

from heliograph.cli.choice import flow_named
from heliograph.cli.effective import load_effective, say_no_flows
from heliograph.cli.words import count
from heliograph.config.flows import FlowSettings
from heliograph.errors import HeliographError
from heliograph.operations.audit import LaneAudit, audit_flow

_ABOUT = """\
For every lane: source offsets = copied + control + aborted + compacted away + skipped + lost + deleted since + not yet copied.
What is copied is counted on the target, the rest on the source. Reads only, and needs no running mirror; a lane whose numbers
show that it is whole costs two small reads, others are read. Exit code 1 if a sum does not close: records are missing on the
target, or there more than once; and if a flow cannot be audited.
"""

_WORDS = (
    ("copied", "copied"),
    ("control", "control"),
    ("aborted", "aborted"),
    ("compacted", "compacted away"),
    ("skipped", "skipped"),
    ("came_home", "came home"),
    ("lost", "lost to retention"),
    ("deleted", "no longer on either side"),
    ("not_yet", "not yet copied"),
    ("missing", "MISSING"),
)


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "audit",
        help="what became of every source offset of every lane",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the file that `heliograph run` was given")
    parser.add_argument("--flow", metavar="A->B", help="this flow only")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    settings = load_effective(args.file)
    flows = settings.flows if args.flow is None else (flow_named(settings, args.flow),)
    found, is_whole = asyncio.run(_audit(flows, not args.json))
    if args.json:
        sys.stdout.write(json.dumps([lane.as_json() for lane in found], indent=2) + "\n")
    else:
        say_no_flows(settings)
    return 0 if is_whole and all(lane.closes for lane in found) else 1


async def _audit(flows: tuple[FlowSettings, ...], show: bool) -> tuple[list[LaneAudit], bool]:
    """What was found, and whether every flow could be audited: one that cannot be hides no other."""
    found, is_whole = [], True
    for flow in flows:
        try:
            async for lane in audit_flow(flow):
                found.append(lane)
                if show:
                    sys.stdout.write(sentence(lane) + "\n")
        except (HeliographError, TimeoutError) as error:
            is_whole = False
            sys.stdout.flush()
            why = str(error) or "a cluster did not answer in time"
            sys.stderr.write(f"heliograph: {flow.flow.name}: could not be audited: {why}\n")
    return found, is_whole


def sentence(audit: LaneAudit) -> str:
    """`A->B orders-0: 1,234 offsets from 0 = 1,200 copied + 20 control + 14 aborted`"""
    name = f"{audit.lane.flow} {audit.lane.topic}-{audit.lane.partition}"
    if audit.trouble:
        return f"{name}: not audited: {audit.trouble}"
    account = audit.account
    parts = [f"{count(number)} {word}" for field, word in _WORDS if (number := getattr(account, field))]
    text = f"{name}: {count(audit.end - audit.first, 'offset')} from {audit.first} = {' + '.join(parts) or '0 copied'}"
    if account.repeated:
        text += f"; {count(account.repeated)} REPEATED on {audit.remote_topic}"
    if not audit.closes:
        text += "; it does not close"
    return text
