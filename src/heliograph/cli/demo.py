"""`heliograph demo`: two real clusters on this machine, sample traffic into A, the mirror A->B, a live table, a comparison."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import Progress

from heliograph.assembly import desk_for
from heliograph.cli.live_table import LiveTable
from heliograph.cli.logs import set_up_logs
from heliograph.cli.words import count, size
from heliograph.config.load import load
from heliograph.control.replicate import Replicator, RunOptions
from heliograph.control.steering import Steering, with_state
from heliograph.embedded.cluster import EmbeddedCluster, start_many
from heliograph.embedded.jars import ensure_kafka_jars
from heliograph.embedded.traffic import Traffic
from heliograph.errors import HeliographError
from heliograph.kafka.client import LATEST
from heliograph.kafka.log_ends import offsets_of
from heliograph.operations.compare import Comparison, compare_topics

_FILE = """\
clusters = A, B
A.bootstrap.servers = {source}
B.bootstrap.servers = {target}
A->B.enabled = true
A->B.topics = .*
replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
refresh.topics.interval.seconds = 5
"""
_CATCH_UP_SECONDS = 60
_LOOK_SECONDS = 0.2
_PLAIN_WIDTH = 160


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="two clusters on this machine, sample traffic, and the mirror between them",
        description="Starts two real Kafka clusters on loopback, writes sample traffic to A, mirrors A->B and shows a live "
        "table until Ctrl-C. At the end it compares what B has with A record by record; exit code 0 only if it is identical, "
        "1 if it is not. A second Ctrl-C ends it without a comparison. "
        "Needs Java 17+, and Maven once to fetch Kafka.",
    )
    parser.add_argument("--seconds", type=_positive, metavar="N", help="end by itself after N seconds of mirroring")
    parser.set_defaults(run=run)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of seconds, at least 1")
    return int(text)


def run(args: argparse.Namespace) -> int:
    set_up_logs("warning", "text")
    console = Console() if sys.stdout.isatty() else Console(width=_PLAIN_WIDTH)
    with TemporaryDirectory(prefix="heliograph-demo-") as folder:
        return _demo(Path(folder), args.seconds, console)


def _demo(folder: Path, seconds: int | None, console: Console) -> int:
    ensure_kafka_jars(lambda text: console.print(text, highlight=False))
    source, target = (EmbeddedCluster(name, directory=folder / name) for name in "AB")
    with console.status("starting two Kafka 4.3.1 clusters"):
        start_many([source, target])
    try:
        console.print(f"cluster A at {source.bootstrap}, cluster B at {target.bootstrap}", highlight=False)
        traffic = Traffic(source.bootstrap)
        traffic.create_topics()
        file = folder / "demo.properties"
        file.write_text(_FILE.format(source=source.bootstrap, target=target.bootstrap))
        console.print(f"[dim]heliograph run {file}[/dim]", highlight=False)
        traffic.start()
        try:
            asyncio.run(_mirror(file, folder, traffic, seconds, console))
        except asyncio.CancelledError as error:
            raise KeyboardInterrupt from error
        return _conclude(_compare(source, target, traffic, console), console)
    finally:
        source.stop()
        target.stop()


async def _mirror(file: Path, folder: Path, traffic: Traffic, seconds: int | None, console: Console) -> None:
    settings = load(file.read_text(), file.name)
    steering = Steering(str(file), with_state(settings))
    await steering.recall()
    replicator = Replicator(settings, RunOptions(spark_log=folder / "spark.log"), steering)
    desk = desk_for(replicator)
    table = LiveTable(replicator, lambda: desk.urls)
    ended = _ended_by_signals()
    with _shown(table, console) as show:
        spark = asyncio.create_task(replicator.engine.start())
        plans = await replicator.plan()
        await spark
        running = asyncio.create_task(replicator.run(plans, show, desk.keep))
        waiting = asyncio.create_task(_wait(ended, seconds, running))
        await waiting
        await asyncio.to_thread(traffic.stop)
        missing = await _catch_up(replicator, traffic, running)
        replicator.stop()
        summary = await running
    if missing:
        console.print(missing, style="red", highlight=False, markup=False)
    rate = summary.records / max(summary.seconds, 0.001)
    console.print(
        f"mirrored {count(summary.records, 'record')}, {size(summary.bytes)}, in {summary.seconds:.0f} s "
        f"({count(rate)} records/s)",
        highlight=False,
    )


def _ended_by_signals() -> asyncio.Event:
    """Set by the first Ctrl-C, after which the copy is compared; the second one ends everything."""
    ended, main = asyncio.Event(), asyncio.current_task()

    def signalled() -> None:
        if ended.is_set() and main is not None:
            main.cancel()
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, signalled)
    return ended


async def _wait(ended: asyncio.Event, seconds: int | None, running: asyncio.Task[Any]) -> None:
    """Until Ctrl-C, the end of the time, or the mirror's own end, which is a fault."""
    stop = asyncio.create_task(ended.wait())
    await asyncio.wait({stop, running}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()


async def _catch_up(replicator: Replicator, traffic: Traffic, running: asyncio.Task[Any]) -> str:
    """The traffic has stopped: wait until B has every record that was written. What it still lacks in the end, in words."""
    deadline = time.monotonic() + _CATCH_UP_SECONDS
    while not running.done():
        missing = await _missing(replicator, traffic)
        holds = replicator.steering.amended.holds
        held = {hold.topic for hold in holds}  # an empty one: the whole flow
        if "" in held or missing.keys() <= held or time.monotonic() > deadline:
            why = "; ".join(f"{hold.subject} is {hold.sentence}" for hold in holds) or f"after {_CATCH_UP_SECONDS} s"
            return f"B does not have {count(sum(missing.values()), 'record')} of A: {why}" if missing else ""
        await asyncio.sleep(_LOOK_SECONDS)
    return ""


async def _missing(replicator: Replicator, traffic: Traffic) -> dict[str, int]:
    """By topic, what B does not have, whoever copies it: a remote topic begins at 0 and has one offset for each record."""
    client = replicator.warm.client(replicator.settings.flows[0].target)
    written = traffic.written
    try:
        views = await client.metadata([f"A.{topic}" for topic in written])
        places = [(name, partition) for name, view in views.items() for partition in view.leaders]
        ends = await offsets_of(client, places, LATEST)
    except (HeliographError, TimeoutError):
        return written  # not known: it is asked again
    have: Counter[str] = Counter()
    for (name, _), end in ends.items():
        have[name] += end
    return {topic: wanted - have[f"A.{topic}"] for topic, wanted in written.items() if wanted > have[f"A.{topic}"]}


@contextlib.contextmanager
def _shown(table: LiveTable, console: Console) -> Iterator[Callable[[], None]]:
    """A live table on a terminal; elsewhere a table every ten seconds."""
    if not sys.stdout.isatty():
        calls = iter(range(1, 1_000_000))

        def now_and_then() -> None:
            shown = table.render(console)
            if next(calls) % 10 == 0:
                console.print(shown)

        yield now_and_then
        console.print(table.render(console))
        return
    with Live(table.render(console), console=console, auto_refresh=False) as live:
        yield lambda: live.update(table.render(console), refresh=True)


def _compare(source: EmbeddedCluster, target: EmbeddedCluster, traffic: Traffic, console: Console) -> Comparison:
    total = sum(traffic.written.values())
    pairs = {topic: f"A.{topic}" for topic in traffic.written}
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("comparing every record with an independent client", total=total)
        return compare_topics(
            source.bootstrap,
            target.bootstrap,
            pairs,
            progress=lambda _topic, _partition, done: progress.update(bar, completed=done),
        )


def _conclude(comparison: Comparison, console: Console) -> int:
    if comparison.identical:
        console.print(
            f"compared {count(comparison.records, 'record')}: key, value, headers, timestamp, partition and order are "
            "[green]identical[/green]",
            highlight=False,
        )
        return 0
    console.print(f"[red]the copy differs[/red] ({count(comparison.records, 'record')} compared):", highlight=False)
    for difference in comparison.differences:
        console.print(f"  {difference}", highlight=False)
    return 1
