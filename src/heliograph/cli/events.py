"""`heliograph events FILE`: what a person must know, from the events topics of all flows, also when nothing runs."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

from heliograph.cli.effective import load_effective, say_no_flows
from heliograph.cli.words import moment
from heliograph.config.flows import FlowSettings
from heliograph.control.events import EventReader
from heliograph.errors import HeliographError
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.model.events import Event

_LOOK_AGAIN_SECONDS = 0.5


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "events",
        help="show what a person must know",
        description="Reads the events topic of every target; needs no running mirror. Events are kept for 30 days. "
        "Exit code 1 if a target cannot be read.",
    )
    parser.add_argument("file", metavar="FILE", help="the file that `heliograph run` was given")
    parser.add_argument("--follow", action="store_true", help="go on with new ones until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="print a JSON object per line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    settings = load_effective(args.file)
    if args.json:
        return asyncio.run(show(settings.flows, args.follow, _write_json))
    say_no_flows(settings)
    return asyncio.run(show(settings.flows, args.follow, _write_text, _say_none if settings.flows else _say_nothing))


def _say_none() -> None:
    """Beside the events, not among them: whoever counts lines counts events."""
    sys.stderr.write("no events in the last 30 days\n")


def _say_nothing() -> None:
    """For programs, which see that there is none."""


async def show(
    flows: Iterable[FlowSettings],
    follow: bool,
    write: Callable[[Event], None],
    say_none: Callable[[], None] = _say_nothing,
) -> int:
    """Every event in the order of time; 1 where a target could not be read. `say_none` where all were, and there is none."""
    written = 0

    def counted(event: Event) -> None:
        nonlocal written
        written += 1
        write(event)

    by_target: dict[Cluster, list[str]] = {}
    for flow in flows:
        by_target.setdefault(flow.target, []).append(flow.flow.name)
    warm = Warm()
    try:
        readers = [EventReader(warm.client(target), names) for target, names in by_target.items()]
        failed = await _show_new(readers, counted)
        if not written and not failed:
            say_none()
        while follow:
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            failed = await _show_new(readers, write, failed)
        return 1 if failed else 0
    finally:
        warm.close()


async def _show_new(readers: list[EventReader], write: Callable[[Event], None], known: str = "") -> str:
    """Write what is new; the trouble with a target, said once while it lasts."""
    found = await asyncio.gather(*(reader.read() for reader in readers), return_exceptions=True)
    trouble = ""
    for result in found:
        if isinstance(result, HeliographError | TimeoutError):
            trouble = str(result) or "a cluster did not answer in time"
        elif isinstance(result, BaseException):
            raise result
    events = [event for result in found if isinstance(result, list) for event in result]
    for event in sorted(events, key=lambda event: event.time_ms):
        write(event)
    if trouble and trouble != known:
        sys.stderr.write(f"heliograph: {trouble}\n")
    return trouble


def _write_text(event: Event) -> None:
    todo = f"\n    {event.what_to_do}" if event.what_to_do else ""
    print(f"{moment(event.time_ms)} {event.kind} {event.flow} {event.subject}: {event.reason}{todo}", flush=True)


def _write_json(event: Event) -> None:
    print(json.dumps(event.as_fields(), ensure_ascii=False), flush=True)
