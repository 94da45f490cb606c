"""`heliograph lag FILE`: how far every lane is behind, in three ways, now or again and again."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from heliograph.cli.choice import flow_named
from heliograph.cli.effective import load_effective, say_no_flows
from heliograph.cli.words import ago, count, moment, size
from heliograph.control.clock import Clock
from heliograph.errors import ConfigError
from heliograph.operations.lag import FlowLag, LagLook, LaneLag
from heliograph.replication.bottleneck import held_words

_PLAIN_WIDTH = 400
_WATCH_SECONDS = 2.0
_ABOUT = """\
Shows for every lane where its source ends, and how far behind that is: what the ledger has as copied, what was read, and what the
target has. The first counts what is not written down yet, the second leaves out what is on its way, the third compares the two logs
and nothing else. Sizes are about: the lag by the average of the source's log. Reads only, and needs no running mirror.

Exit code 1 if a flow cannot be read, or if it is not known whether it runs.
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "lag",
        help="how far every lane is behind, in three ways",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the file that `heliograph run` was given")
    parser.add_argument("--flow", metavar="A->B", help="only this flow")
    parser.add_argument("--topic", metavar="TOPIC", help="only this topic, by its name on either side")
    parser.add_argument("--watch", action="store_true", help="look again every two seconds, until interrupted")
    parser.add_argument("--json", action="store_true", help="print JSON; with --watch a line for every look")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    settings = load_effective(args.file)
    flows = (flow_named(settings, args.flow),) if args.flow is not None else settings.flows
    if not args.json:
        say_no_flows(settings)
    look = LagLook(flows, settings.engine.takeover_wait_seconds, args.topic or "")
    return asyncio.run(_run(look, args))


async def _run(look: LagLook, args: argparse.Namespace) -> int:
    try:
        now_ms = Clock().now_ms()
        found = await look.look(now_ms)
        if args.topic and not any(flow.lanes for flow in found) and not any(flow.trouble for flow in found):
            raise ConfigError(
                [f"--topic {args.topic}: no flow copies a topic of this name; `heliograph lag FILE` shows all"]
            )
        if args.watch:
            await watch(look, found, args.json)
        elif args.json:
            sys.stdout.write(json.dumps(_json(found, now_ms), indent=2) + "\n")
        else:
            console = Console() if sys.stdout.isatty() else Console(width=_PLAIN_WIDTH)
            console.print(shown(found, now_ms))
        return 1 if any(flow.running is None or (flow.trouble and not flow.lanes) for flow in found) else 0
    finally:
        look.close()


async def watch(
    look: LagLook,
    found: Sequence[FlowLag],
    as_json: bool,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """For ever; Ctrl-C ends it."""
    clock = Clock()
    if as_json:
        while True:
            sys.stdout.write(json.dumps(_json(found, clock.now_ms())) + "\n")
            sys.stdout.flush()
            await sleep(_WATCH_SECONDS)
            found = await look.look(clock.now_ms())
    with Live(shown(found, clock.now_ms()), auto_refresh=False, screen=sys.stdout.isatty()) as live:
        while True:
            await sleep(_WATCH_SECONDS)
            found = await look.look(clock.now_ms())
            live.update(shown(found, clock.now_ms()), refresh=True)


def _json(found: Sequence[FlowLag], now_ms: int) -> dict[str, Any]:
    return {"time_ms": now_ms, "flows": [flow.as_json() for flow in found]}


def shown(found: Sequence[FlowLag], now_ms: int) -> RenderableType:
    return Group(*(part for flow in found for part in _flow(flow, now_ms)))


def _flow(flow: FlowLag, now_ms: int) -> Iterator[RenderableType]:
    yield Text(headline(flow, now_ms))
    if flow.lanes:
        yield _table(flow.lanes)
    for alias, brokers in flow.brokers.items():
        if brokers:
            yield Text(f"  brokers of {alias}: {', '.join(f'{node} = {address}' for node, address in brokers.items())}")


def headline(flow: FlowLag, now_ms: int) -> str:
    if flow.running is None:
        return f"{flow.flow}: state unknown: {flow.trouble}"
    if flow.running:
        held = held_words((lane.topic, lane.state) for lane in flow.lanes)
        text = f"{flow.flow}: running since {moment(flow.since_ms)} on {flow.host}, process {flow.process}"
        text += f", {held}" if held else ""
    elif flow.host:
        text = f"{flow.flow}: not running since {moment(flow.since_ms)} ({ago(now_ms, flow.since_ms)})"
    else:
        text = f"{flow.flow}: not running"
    known = [lane for lane in flow.lanes if lane.target_lag >= 0]
    lag, sizes = sum(lane.target_lag for lane in known), [lane.bytes_behind for lane in known]
    if known:
        about = f", about {size(sum(sizes))}" if min(sizes) >= 0 else ""
        reported = f", reported {ago(now_ms, flow.reported_ms)} ago" if flow.reported_ms else ""
        text += f"; group {flow.group}; {count(lag, 'record')} behind{about}{reported}"
    return f"{text}; {flow.trouble}" if flow.trouble else text


def _table(lanes: Sequence[LaneLag]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("lane")
    for name in ("source end", "committed", "behind", "read", "behind", "target end", "behind", "about", "log size"):
        table.add_column(name, justify="right")
    table.add_column("state")
    table.add_column("owner")
    for lane in lanes:
        pairs = (
            lane.source_end,
            *(lane.committed, lane.committed_lag),
            *(lane.read_position, lane.read_lag),
            *(lane.target_end, lane.target_lag),
        )
        table.add_row(
            Text(f"{lane.topic}-{lane.partition}"),
            *(_number(value) for value in pairs),
            _size(lane.bytes_behind),
            _size(lane.log_bytes),
            lane.state,
            Text(lane.owner or "-"),
        )
    return table


def _number(value: int) -> str:
    return "-" if value < 0 else count(value)


def _size(value: int) -> str:
    return "-" if value < 0 else size(value)
