"""Two runs of one file: one carries the flow, the other stands by, and takes over whatever becomes of the first.

Killed with -9, frozen and awake again, cut off from the target while its executors are not: the copy is identical, each time the
other run carries within fifteen seconds, and nobody reads of trouble where there is none. Lanes of a compacted topic, which the
target does not guard, are handed over without a repeated record and never carried by both.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from heliograph.config.load import load
from heliograph.control.events import EventReader
from heliograph.control.status import FlowStatus, read_status
from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.kafka.slot import Warm
from heliograph.model.events import EventKind
from heliograph.operations.compare import compare_topics
from tests.support.arrivals import Arrivals
from tests.support.clusters import TwoClusters
from tests.support.compaction import NEVER_CLEANED
from tests.support.heliograph_run import HeliographRun, two_cluster_settings, write_properties
from tests.support.mirror import flow_file, word
from tests.support.reading import values
from tests.support.shut_door import ShutDoor
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import producer, samples, write

PARTITIONS = 2
PATIENCE_SECONDS = 120.0
TAKEOVER_SECONDS = 15.0
"""Guarded lanes stand still for no longer, on a machine that has a core for whoever wants one."""
HANDED_OVER = 5_000
"""Records that the first run copies before it ends."""


class Scene:
    def __init__(self, source: str, target: str, topic: str, file: Path, alias: str = "A") -> None:
        self.source, self.target, self.topic = source, target, topic
        self.file = file
        self.remote = f"{alias}.{topic}"
        self.stood_still: dict[str, float] = {}
        """By case: the longest time in seconds in which a partition of the target got nothing."""
        self._writing = threading.Event()
        self._writer = threading.Thread(target=self._write, daemon=True)

    def _write(self) -> None:
        client = producer(self.source, enable_idempotence=True, linger_ms=20)
        number = 0
        while not self._writing.wait(0.02):
            for partition in range(PARTITIONS):
                client.produce(self.topic, b"value %d" % number, b"key %d" % number, partition)
                number += 1
            client.poll(0)
        assert client.flush(60) == 0

    @contextlib.contextmanager
    def records(self) -> Iterator[None]:
        self._writer.start()
        try:
            yield
        finally:
            self.stop_writing()

    def stop_writing(self) -> None:
        self._writing.set()
        self._writer.join(90)

    @contextlib.contextmanager
    def arrivals(self) -> Iterator[list[Arrivals]]:
        """Of every partition of the target, from now on."""
        made = [Arrivals(self.target, self.remote, partition) for partition in range(PARTITIONS)]
        try:
            yield made
        finally:
            for one in made:
                one.stop()

    @contextlib.contextmanager
    def handed_over(self, case: str, arrivals: list[Arrivals]) -> Iterator[None]:
        """The block ends when the other run carries: nobody may have waited for a record for longer than allowed."""
        begun, busy = time.monotonic(), busyness()
        yield
        gap = max(one.longest_gap(begun, time.monotonic()) for one in arrivals)
        self.stood_still[case] = gap
        allowed = TAKEOVER_SECONDS * max(1.0, busy, busyness())
        assert gap <= allowed, f"{case}: nothing arrived for {gap:.1f} s, {allowed:.1f} s are allowed"

    def end(self) -> int:
        return sum(ends(self.target, self.remote).values())

    def status(self) -> FlowStatus:
        settings = load(self.file.read_text(), str(self.file))
        (flow,) = asyncio.run(
            read_status(settings.flows, settings.engine.takeover_wait_seconds, time.time_ns() // 1_000_000)
        )
        return flow

    def waiting(self) -> list[int]:
        return [one.process for one in self.status().standbys]

    def events(self) -> list[str]:
        async def read() -> list[str]:
            warm = Warm()
            try:
                client = warm.client(load(self.file.read_text(), str(self.file)).flows[0].target)
                found = await EventReader(client, ["A->B"]).read(1000)
                return [str(event) for event in found if event.kind is EventKind.PARKED]
            finally:
                warm.close()

        return asyncio.run(read())

    def wait_for_records(self, what: str) -> None:
        """Until the target gets records."""
        before = self.end()
        wait_until(lambda: self.end() > before, what, PATIENCE_SECONDS)

    def wait_for_carrier(self, run: HeliographRun, what: str) -> None:
        wait_until(
            lambda: self.status().process == run.pid and self.status().running, what, PATIENCE_SECONDS, every=0.5
        )
        self.wait_for_records(f"records flow: {what}")

    def settled(self, one: HeliographRun, two: HeliographRun) -> tuple[HeliographRun, HeliographRun]:
        """The one that carries, and the one that stands by."""
        found: list[tuple[HeliographRun, HeliographRun]] = []

        def is_settled() -> bool:
            status = self.status()
            waiting = [standby.process for standby in status.standbys]
            for carrier, other in ((one, two), (two, one)):
                if (status.running, status.process, waiting) == (True, carrier.pid, [other.pid]):
                    found.append((carrier, other))
            return bool(found)

        wait_until(is_settled, "one carries and the other stands by", PATIENCE_SECONDS, 0.5)
        return found[-1]

    def wait_for_standby(self, run: HeliographRun) -> None:
        run.wait_for_text("this run stands by", PATIENCE_SECONDS)
        run.wait_for_text("Spark is up: this run is ready to take over", PATIENCE_SECONDS)
        wait_until(lambda: run.pid in self.waiting(), "status shows who waits", PATIENCE_SECONDS, 0.5)


def busyness() -> float:
    """How many want a core, for each that there is."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def family(run: HeliographRun) -> list[psutil.Process]:
    driver = psutil.Process(run.pid)
    return [driver, *driver.children(recursive=True)]


def freeze(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            os.kill(process.pid, number)


@pytest.mark.timeout(900)
def test_a_standby_takes_over_from_the_killed_the_frozen_and_the_cut_off(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    source = two_clusters.a.bootstrap
    with ShutDoor() as door:
        target = EmbeddedCluster(
            "B", tmp_path / "b", config={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{door.port}"}
        )
        door.address = lambda: target.address(1)
        target.start()
        try:
            create_topic(source, unique, PARTITIONS)
            lines = two_cluster_settings(source, target.bootstrap, unique, slots="1", epoch_seconds="10")
            file = write_properties(tmp_path / "standby.properties", lines)
            play(Scene(source, target.bootstrap, unique, file), door)
        finally:
            target.stop()


def play(scene: Scene, door: ShutDoor) -> None:
    with scene.records(), contextlib.ExitStack() as runs:
        killed = runs.enter_context(HeliographRun(scene.file))
        scene.wait_for_carrier(killed, "the first run carries the flow")
        second = runs.enter_context(HeliographRun(scene.file, "--standby"))
        scene.wait_for_standby(second)
        assert f"A->B is carried by {os.uname().nodename}, process {killed.pid}, since" in second.output
        assert scene.status().process == killed.pid
        assert "records/s" not in second.output

        arrivals = runs.enter_context(scene.arrivals())
        with scene.handed_over("killed", arrivals):
            killed.kill_tree()
            scene.wait_for_carrier(second, "the standby carries after kill -9")

        third = runs.enter_context(HeliographRun(scene.file))  # without the option: it stands by as well
        scene.wait_for_standby(third)
        frozen = family(second)
        try:
            with scene.handed_over("frozen", arrivals):
                freeze(frozen, signal.SIGSTOP)
                scene.wait_for_carrier(third, "the standby carries while the holder is frozen")
        finally:
            freeze(frozen, signal.SIGCONT)
        # Awake again it carries the flow if it still holds it, and else stands by: one of the two, whichever.
        carrier, other = scene.settled(second, third)
        scene.wait_for_records("records flow after the frozen one is awake")

        # Its executors go on for some seconds: what counts is the time between their last record and the other run's first.
        with scene.handed_over("cut off", arrivals):
            door.cut(carrier.pid)
            scene.wait_for_carrier(other, "the standby carries while the carrier is cut off")
        carrier.wait_for_text("cannot say that it holds the flow", PATIENCE_SECONDS)
        door.heal()
        carrier, other = scene.settled(carrier, other)
        with scene.handed_over("terminated", arrivals):
            assert carrier.terminate() == 0
            scene.wait_for_carrier(other, "after a graceful end the other one carries")
        print("the longest standstill in seconds:", scene.stood_still)  # noqa: T201  a figure for people
        scene.stop_writing()
        wait_until(lambda: scene.end() == sum(ends(scene.source, scene.topic).values()), "everything is copied")
        assert other.terminate() == 0
        comparison = compare_topics(scene.source, scene.target, {scene.topic: scene.remote})
        assert comparison.identical, [str(difference) for difference in comparison.differences[:5]]
        assert scene.events() == [], "nobody reads of trouble where there is none"


@pytest.mark.timeout(600)
def test_a_compacted_topic_is_handed_over_with_sigterm_without_a_repeated_record_and_never_carried_by_both(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    source, target = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    here, there = word(), word()  # nobody held this flow before
    create_topic(source, unique, PARTITIONS, config=NEVER_CLEANED)
    write(source, unique, samples(HANDED_OVER, partitions=PARTITIONS))
    file = flow_file(
        tmp_path / "handed.properties", {here: source, there: target}, {f"{here}->{there}": unique}, {"slots": "1"}
    )
    scene = Scene(source, target, unique, file, here)
    with scene.records(), HeliographRun(file) as first:
        scene.wait_for_carrier(first, "the first run carries the flow")
        with HeliographRun(file) as second:
            scene.wait_for_standby(second)
            wait_until(lambda: scene.end() > HANDED_OVER, "the first run has copied thousands", PATIENCE_SECONDS)
            wait_until(lambda: carries_alone(first, second), "the first run carries", PATIENCE_SECONDS)
            os.kill(first.pid, signal.SIGTERM)
            wait_until(lambda: carries_alone(second, first), "the second run carries", PATIENCE_SECONDS, every=0.02)
            assert first.wait() == 0, first.output
            scene.wait_for_carrier(second, "the second run carries the flow")
            scene.stop_writing()
            wait_until(lambda: scene.end() >= sum(ends(source, unique).values()), "everything is copied")
            assert second.terminate() == 0, second.output
    for partition in range(PARTITIONS):
        assert values(target, scene.remote, partition) == values(source, unique, partition)


def carries_alone(run: HeliographRun, other: HeliographRun) -> bool:
    """Whether it carries; the other one may not then. Asked in this order: who ended meanwhile did no wrong."""
    if not run.carriers():
        return False
    assert not other.carriers(), "both carry"
    return True
