"""`heliograph top FILE`: a running mirror, live in the terminal: flows, the lanes that are furthest behind, the newest events."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, JustifyMethod
from rich.live import Live
from rich.table import Table
from rich.text import Text

from heliograph.cli.remote import Remote, add_remote_options
from heliograph.cli.words import count, moment, size
from heliograph.errors import SetupError

_FLOWS = (
    "flow",
    "state",
    "lanes",
    "rec/s",
    "bytes/s",
    "lag",
    "behind",
    "p50",
    "p99",
    "raw",
    "rebuilt",
    "dropped",
    "limit",
)
_STATE_WIDTH = len("following")
"""Words of a state are never cut, however narrow the terminal is."""
_LANES = ("lane", "state", "rec/s", "lag", "behind", "delta", "reason")
_EVENTS_SHOWN = 5
_PLAIN_WIDTH = 400


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "top",
        help="watch a running mirror in the terminal",
        description="Flows, the lanes that are furthest behind, the newest events; until Ctrl-C. Asks the run's REST.",
    )
    add_remote_options(parser)
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="between two looks (default 1)")
    parser.add_argument("--lanes", type=int, default=10, metavar="N", help="how many lanes of each flow (default 10)")
    parser.add_argument("--once", action="store_true", help="look once and end")
    parser.add_argument("--json", action="store_true", help="print JSON, one object for each look")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    remote = Remote(args)
    view = _look(remote, args.lanes)
    if args.json or args.once or not sys.stdout.isatty():
        return _print(remote, args, view)
    with Live(_render(view), auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(max(0.2, args.interval))
            try:
                live.update(_render(_look(remote, args.lanes)), refresh=True)
            except SetupError as error:
                live.update(Text(f"{error}\nit is asked again"), refresh=True)


def _print(remote: Remote, args: argparse.Namespace, view: dict[str, Any]) -> int:
    while True:
        if args.json:
            sys.stdout.write(json.dumps(view) + "\n")
        else:
            console = Console() if sys.stdout.isatty() else Console(width=_PLAIN_WIDTH)
            console.print(_render(view))
        sys.stdout.flush()
        if args.once or not args.json:
            return 0
        time.sleep(max(0.2, args.interval))
        view = _look(remote, args.lanes)


def _look(remote: Remote, lanes: int) -> dict[str, Any]:
    flows = remote.ask("GET", "/flows")
    behind = {
        flow["flow"]: remote.ask("GET", f"/flows/{flow['flow']}/lanes?sort=lag&order=desc&limit={max(1, lanes)}")[
            "lanes"
        ]
        for flow in flows
    }
    run = remote.ask("GET", "")
    return {"run": run, "flows": flows, "lanes": behind, "events": remote.ask("GET", f"/events?limit={_EVENTS_SHOWN}")}


def _render(view: dict[str, Any]) -> Group:
    run = view["run"]
    title = f"Heliograph {run['version']}  {run['host']}, process {run['process']}, epoch {run['epoch']}"
    table = _table(title, _FLOWS)
    for flow in view["flows"]:
        table.add_row(*map(Text, _flow(flow)))
    lanes = _table("furthest behind", _LANES)
    for rows in view["lanes"].values():
        for row in rows:
            lanes.add_row(*map(Text, _lane(row)))
    events = [Text(f"{moment(event['time_ms'])}  {_subject(event)}: {event['reason']}") for event in view["events"]]
    return Group(table, lanes, *events)


def _subject(event: dict[str, Any]) -> str:
    """`A->B orders`: a pause of one topic must not read like one of the flow."""
    return " ".join(dict.fromkeys((event["flow"], event["subject"])))


def _table(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in columns:
        justify: JustifyMethod = "left" if name in ("flow", "lane", "state", "reason") else "right"
        table.add_column(name, justify=justify, min_width=_STATE_WIDTH if name == "state" else None)
    return table


def _flow(flow: dict[str, Any]) -> list[str]:
    states = flow["lanes_by_state"]
    troubled = f", {count(states['parked'])} parked" if states.get("parked") else ""
    limit = flow["throttle_bytes_per_s"]
    return [
        flow["flow"],
        state_words(flow),
        f"{count(flow['lanes'])}{troubled}",
        count(flow["records_per_s"]),
        size(flow["bytes_per_s"]),
        _known(flow["lag_records"]),
        _behind(flow["lag_ms"], flow["lag_records"]),
        _ms(flow["latency_ms"]["p50"]),
        _ms(flow["latency_ms"]["p99"]),
        *(count(flow[name]) for name in ("raw_batches", "rebuilt_batches", "dropped_batches")),
        f"{size(limit)}/s" if limit else "-",
    ]


def state_words(flow: dict[str, Any]) -> str:
    """`running, 1 topic paused`; `trouble: cluster B is away`."""
    if not flow["reason"]:
        return str(flow["state"])
    return f"{flow['state']}{', ' if flow['state'] == 'running' else ': '}{flow['reason']}"


def _lane(row: dict[str, Any]) -> list[str]:
    name = f"{row['flow']} {row['topic']}-{row['partition']}"
    delta = "-" if row["delta"] is None else str(row["delta"])
    return [
        name,
        row["state"],
        count(row["records_per_s"]),
        count(row["lag"]),
        _behind(row["lag_ms"], row["lag"]),
        delta,
        row["reason"],
    ]


def _known(number: int | None) -> str:
    return "?" if number is None else count(number)


def _behind(ms: float | None, lag: int | None) -> str:
    return f"{ms / 1000:.1f} s" if ms is not None and lag else "-"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} ms"
