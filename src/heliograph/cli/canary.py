"""`heliograph canary FILE`: one event through each flow, and how long it took."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any

from heliograph.cli.choice import flow_named
from heliograph.cli.effective import load_effective, say_no_flows
from heliograph.cli.working import working
from heliograph.config.flows import FlowSettings
from heliograph.operations.canary import CanaryLook, canary_look

_SECONDS = 30.0
_ABOUT = """\
Sends one event to the canary's topic on the source of each flow, and waits until the mirror that runs has brought it to the target.
The latency is from before it is written until it is read there, on this machine's clock. Flows need canary.enabled = true.

Exit code 1 if an event does not arrive.
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "canary",
        help="send one event through each flow, and say how long it took",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the file that `heliograph run` was given")
    parser.add_argument("--flow", metavar="A->B", help="only this flow")
    parser.add_argument(
        "--timeout", type=float, default=_SECONDS, metavar="SECONDS", help="how long to wait for it (default: 30)"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be sent, send nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    settings = load_effective(args.file)
    flows = (flow_named(settings, args.flow),) if args.flow is not None else settings.flows
    with working("waiting for the event on the target"):
        found = asyncio.run(_looks(flows, args.timeout, args.dry_run))
    if args.json:
        sys.stdout.write(json.dumps([look.as_json() for look in found], indent=2) + "\n")
    else:
        say_no_flows(settings)
        sys.stdout.write("".join(f"{sentence(look)}\n" for look in found))
    return 0 if args.dry_run or all(look.latency_ms is not None for look in found) else 1


async def _looks(flows: Sequence[FlowSettings], seconds: float, dry_run: bool) -> list[CanaryLook]:
    return list(await asyncio.gather(*(canary_look(flow, seconds, dry_run) for flow in flows)))


def sentence(look: CanaryLook) -> str:
    if look.latency_ms is None:
        return f"{look.flow}: {look.reason}"
    return f"{look.flow}: {look.latency_ms:,.1f} ms from {look.topic} to {look.remote_topic}"
