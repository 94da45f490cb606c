"""`heliograph status FILE`: positions, lag and state of every lane, from any shell, also when nothing runs."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from heliograph.cli.effective import load_effective, say_no_flows
from heliograph.cli.group_table import show_groups
from heliograph.cli.words import ago, count, moment
from heliograph.cli.working import working
from heliograph.control.clock import Clock
from heliograph.control.status import FlowStatus, LaneStatus, read_status
from heliograph.model.lanes import LaneState
from heliograph.operations.group_states import FlowGroups, group_states
from heliograph.replication.bottleneck import held_words

_PLAIN_WIDTH = 400


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "status",
        help="show positions, lag and state of every lane",
        description="Reads the ledger and both clusters; needs no running mirror. Exit code 1 if a flow cannot be "
        "read, or if it is not known whether it runs.",
    )
    parser.add_argument("file", metavar="FILE", help="the file that `heliograph run` was given")
    parser.add_argument(
        "--trial", default="", metavar="PREFIX", help="the lanes of `heliograph run FILE --trial PREFIX`"
    )
    parser.add_argument(
        "--groups", action="store_true", help="show where each consumer group stands on both clusters, and why"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    settings = load_effective(args.file)
    now_ms = Clock().now_ms()
    shown = tuple(replace(flow, flow=replace(flow.flow, trial=args.trial)) for flow in settings.flows)
    with working("reading the ledger and both sides"):
        flows = asyncio.run(read_status(shown, settings.engine.takeover_wait_seconds, now_ms))
    with working("reading groups of both sides"):
        groups = asyncio.run(group_states(shown, settings.engine)) if args.groups else {}
    if args.json:
        told = [flow.as_json() | _groups_json(groups.get(flow.flow)) for flow in flows]
        sys.stdout.write(json.dumps({"time_ms": now_ms, "flows": told}, indent=2) + "\n")
    else:
        say_no_flows(settings)
        console = Console() if sys.stdout.isatty() else Console(width=_PLAIN_WIDTH)
        for flow in flows:
            _show(console, flow, now_ms, groups.get(flow.flow))
    return 1 if any(flow.running is None or (flow.trouble and not flow.lanes) for flow in flows) else 0


def _groups_json(groups: FlowGroups | None) -> dict[str, Any]:
    return {} if groups is None else groups.as_json()


def _show(console: Console, flow: FlowStatus, now_ms: int, groups: FlowGroups | None = None) -> None:
    """Lanes, or groups if these were asked for; then what the jobs say, and the newest events."""
    console.print(headline(flow, now_ms), highlight=False, markup=False)
    if groups is not None:
        show_groups(console, groups)
    elif flow.lanes:
        _show_lanes(console, flow.lanes, now_ms)
    for line in (*_standby_lines(flow), *_job_lines(flow, now_ms), *_event_lines(flow)):
        console.print(line, highlight=False, markup=False)


def _show_lanes(console: Console, lanes: tuple[LaneStatus, ...], now_ms: int) -> None:
    console.print(_table(lanes, now_ms))
    for lane in lanes:
        if lane.align and lane.differs_since >= 0:
            about = (
                f"  {lane.topic}-{lane.partition}: the copy has other offsets since source offset {lane.differs_since}"
            )
            console.print(about, highlight=False, markup=False)


def _standby_lines(flow: FlowStatus) -> Iterator[str]:
    for one in flow.standbys:
        yield f"  standing by: {one.host}, process {one.process}, since {moment(one.since_ms)}"


def _job_lines(flow: FlowStatus, now_ms: int) -> Iterator[str]:
    for job in flow.jobs:
        if job.get("summary"):
            yield f"  {job['name']}: {job['summary']}"
        if job["trouble"]:
            yield f"  {job['name']}: trouble for {ago(now_ms, job['trouble_since_ms'])}: {job['trouble']}"


def _event_lines(flow: FlowStatus) -> Iterator[str]:
    for event in flow.events:
        yield f"  {moment(event.time_ms)} {event.kind} {event.subject}: {event.reason}"


def headline(flow: FlowStatus, now_ms: int) -> str:
    lag = sum(max(0, lane.lag) for lane in flow.lanes)
    if flow.running is None:
        return f"{flow.flow}: state unknown: {flow.trouble}"
    if flow.running:
        held = held_words((lane.topic, lane.state) for lane in flow.lanes)
        parts = (
            f"{flow.flow}: running since {moment(flow.since_ms)} on {flow.host}, process {flow.process}",
            f", {held}" if held else "",
            f"; {count(len(flow.lanes), 'lane')}, {count(lag, 'record')} behind",
            f", reported {ago(now_ms, flow.reported_ms)} ago" if flow.reported_ms else "",
            f"; {flow.bottleneck}" if flow.bottleneck else "",
        )
        text = "".join(parts)
    elif flow.host:
        text = (
            f"{flow.flow}: not running since {moment(flow.since_ms)} ({ago(now_ms, flow.since_ms)}); "
            f"last held by {flow.host}, process {flow.process}; {count(lag, 'record')} behind"
        )
    else:
        text = f"{flow.flow}: not running"
    return f"{text}; {flow.trouble}" if flow.trouble else text


def _table(lanes: tuple[LaneStatus, ...], now_ms: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("lane")
    for name in ("source end", "position", "remote end", "lag", "delta"):
        table.add_column(name, justify="right")
    table.add_column("identity")
    table.add_column("batches")
    table.add_column("state")
    for lane in lanes:
        table.add_row(
            f"{lane.topic}-{lane.partition}",
            *(_number(value) for value in (lane.source_end, lane.position, lane.remote_end, lane.lag)),
            f"{lane.delta:+d}" if lane.delta else "0",
            f"{lane.producer_id}/{lane.producer_epoch} gen {lane.generation}",
            _batches(lane),
            Text(_state(lane, now_ms)),
        )
    return table


def _number(value: int) -> str:
    return "?" if value < 0 else str(value)


def _batches(lane: LaneStatus) -> str:
    parts = [f"{lane.raw_batches} raw", f"{lane.rebuilt_batches} rebuilt"]
    parts += [f"{number} {reason}" for reason, number in lane.dropped.items()]
    parts += [f"{number} left out ({word})" for word, number in lane.skipped.items()]
    parts += [f"{lane.foreign} of others"] if lane.foreign else []
    return ", ".join(parts)


def _state(lane: LaneStatus, now_ms: int) -> str:
    text = lane.state
    if lane.since_ms and lane.state != LaneState.FOLLOWING:  # that begins again with every task
        text += f" for {ago(now_ms, lane.since_ms)}"
    return f"{text}: {lane.reason}" if lane.reason else text
