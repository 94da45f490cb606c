"""Whatever is killed with -9, the copy is identical: workers, the daemon, the JVM, the driver, a broker of either side.

One copy of 500,000 records, written while it is copied: plain, transactional with aborts, and with old timestamps. A kill
counts only if the target's ends moved in the 200 ms before it, so that it hit a copy that was under way.
"""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from heliograph.embedded.cluster import EmbeddedCluster, start_many
from heliograph.operations.compare import compare_topics
from tests.support.doors import AuthorizedCluster
from tests.support.heliograph_run import PROGRAM, HeliographRun, two_cluster_settings, write_properties
from tests.support.reading import messages
from tests.support.topics import create_topic, ends, stable_ends
from tests.support.waiting import wait_until
from tests.support.writers import Sample, producer

RECORDS = 500_000
KILLS = 26
IN_OVERLAP = 4
PARTITIONS = 2
DAY_MS = 86_400_000
VICTIMS = (
    ["worker"] * 12 + ["daemon"] * 3 + ["jvm"] * 3 + ["driver"] * 4 + ["source broker"] * 2 + ["target broker"] * 2
)


class Feed:
    """Writes to the three topics until all records are committed; survives a killed broker as a real application does."""

    def __init__(self, bootstrap: str, plain: str, transactional: str, old: str) -> None:
        self._bootstrap = bootstrap
        self._topics = (plain, transactional, old)
        self.written: Counter[str] = Counter()
        self.hurry = threading.Event()
        self.failure: list[Exception] = []
        self._threads = [
            threading.Thread(target=self._guard, args=(self._plain, plain, 0, RECORDS // 2), daemon=True),
            threading.Thread(
                target=self._guard, args=(self._transactions, transactional, 0, RECORDS // 4), daemon=True
            ),
            threading.Thread(target=self._guard, args=(self._plain, old, 5 * DAY_MS, RECORDS // 4), daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        self.hurry.set()
        for thread in self._threads:
            thread.join(180)
            assert not thread.is_alive()
        assert not self.failure, self.failure

    def _guard(self, write: Callable[[str, int, int], None], topic: str, age_ms: int, count: int) -> None:
        try:
            write(topic, age_ms, count)
        except (KafkaException, AssertionError) as error:
            self.failure.append(error)

    def _pace(self, written: int, begun: float, count: int) -> None:
        """Most of it in 100 s, the rest so slowly that there is something to copy until the last kill."""
        swift = min(written, count * 8 // 10)
        ahead = (swift + 20 * (written - swift)) * 100 / count - (time.monotonic() - begun)
        if ahead > 0 and not self.hurry.is_set():
            self.hurry.wait(ahead)

    def _plain(self, topic: str, age_ms: int, count: int) -> None:
        client = producer(self._bootstrap, enable_idempotence=True, linger_ms=5, compression_type="lz4")
        begun = time.monotonic()
        for number in range(count):
            stamp = time.time_ns() // 1_000_000 - age_ms
            while True:
                try:
                    client.produce(topic, b"%d" % number, b"k%d" % number, number % PARTITIONS, timestamp=stamp)
                    break
                except BufferError:
                    client.poll(0.1)
            if number % 20 == 0:
                client.poll(0)
                self._pace(number, begun, count)
            self.written[topic] = number + 1
        assert client.flush(120) == 0

    def _transactions(self, topic: str, _age_ms: int, count: int) -> None:
        client = producer(self._bootstrap, transactional_id=f"{topic}-feed", linger_ms=2, transaction_timeout_ms=60_000)
        client.init_transactions(120)
        chance = random.Random(7)
        begun = time.monotonic()
        while self.written[topic] < count:
            size = min(chance.randint(1, 400), count - self.written[topic])
            client.begin_transaction()
            for sample in (Sample(b"%d" % (self.written[topic] + i)) for i in range(size)):
                client.produce(topic, sample.value, partition=chance.randrange(PARTITIONS))
            client.flush(120)
            if chance.random() < 0.3:
                client.abort_transaction(120)
            else:
                client.commit_transaction(120)
                self.written[topic] += size
            self._pace(self.written[topic], begun, count)


_LOOK_SECONDS = 2.0
"""A question that a killed broker took along must not blind the watch for longer."""


class Ends:
    """Watches the target's ends in a thread of its own, to know whether they moved just before a kill."""

    def __init__(self, bootstrap: str, topics: list[str]) -> None:
        self._bootstrap = bootstrap
        self._topics = topics
        self._moved_at = 0.0
        self._last: dict[tuple[str, int], int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.03):
            try:
                now = {
                    (topic, part): end
                    for topic in self._topics
                    for part, end in ends(self._bootstrap, topic, _LOOK_SECONDS).items()
                }
            except Exception:  # noqa: BLE001  the broker was just killed, or the topic is not made yet: look again
                now = {}
            if any(end > self._last.get(name, 0) for name, end in now.items()):
                self._moved_at = time.monotonic()
            self._last |= now

    def moved_just_now(self) -> bool:
        return time.monotonic() - self._moved_at < 0.2

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture
def clusters(kafka_jars: Path, tmp_path: Path) -> Iterator[list[EmbeddedCluster]]:
    del kafka_jars
    pair = [AuthorizedCluster("A", tmp_path), AuthorizedCluster("B", tmp_path)]
    start_many(pair)
    yield pair
    for cluster in pair:
        cluster.stop()


@pytest.mark.timeout(900)
def test_every_kind_of_kill_leaves_an_identical_copy(clusters: list[EmbeddedCluster], tmp_path: Path) -> None:
    source, target = clusters
    topics = ["plain", "transactional", "old"]
    for topic in topics:
        create_topic(source.bootstrap, topic, PARTITIONS)
    settings = two_cluster_settings(source.bootstrap, target.bootstrap, ",".join(topics))
    settings |= {"epoch.seconds": "5", "takeover.wait.seconds": "3", "lane.retry.backoff.max.ms": "2000"}
    file = write_properties(tmp_path / "mm2.properties", settings)
    feed = Feed(source.bootstrap, *topics)
    feed.start()
    watch = Ends(target.bootstrap, [f"A.{topic}" for topic in topics])
    killer = Killer(file, source, target, watch)
    try:
        killer.kill_all()
        feed.join()
        for topic in topics:
            wait_until(partial(caught_up, source, target, topic), f"{topic} is copied", 120, every=0.5)
        assert killer.run.terminate() == 0, killer.run.output
    finally:
        watch.stop()
        killer.run.kill_tree()
    comparison = compare_topics(source.bootstrap, target.bootstrap, {topic: f"A.{topic}" for topic in topics})
    assert comparison.identical, [str(difference) for difference in comparison.differences[:10]]
    # An application that writes old timestamps repeats records on the source itself: its broker, killed, forgets producers by
    # the time of their records, and takes what is sent again for new.
    again = [message.value() for part in range(PARTITIONS) for message in messages(source.bootstrap, "old", part)]
    assert comparison.records == RECORDS + len(again) - len(set(again))
    assert sum(killer.killed.values()) >= 25 and set(killer.killed) == set(VICTIMS)
    assert killer.overlapped >= 3
    assert killer.run.survivors() == []


class Killer:
    """Kills one victim after another and, where a person or an init system would, starts it again."""

    def __init__(self, file: Path, source: EmbeddedCluster, target: EmbeddedCluster, watch: Ends) -> None:
        self._file = file
        self._source = source
        self._target = target
        self._watch = watch
        self._chance = random.Random(11)
        self.killed: Counter[str] = Counter()
        self.overlapped = 0
        self.run = HeliographRun(file, "--log-level", "debug", program=PROGRAM).start()

    def kill_all(self) -> None:
        victims = VICTIMS.copy()
        self._chance.shuffle(victims)
        for number, victim in enumerate(victims):
            wait_until(self._watch.moved_just_now, "the copy moves", 60, every=0.01)
            if self.overlapped < IN_OVERLAP and victim in ("worker", "driver", "jvm") and number % 2 == 0:
                wait_until(self._in_overlap, "two epochs at once", 60, every=0.005)
            else:
                time.sleep(self._chance.uniform(0.2, 1.5))
            wait_until(partial(self._can_kill, victim), f"a moving copy and a {victim}", 60, every=0.005)
            self.overlapped += self._in_overlap()
            self._kill(victim)
            self.killed[victim] += 1

    def _can_kill(self, victim: str) -> bool:
        found = self._processes(victim)
        return self._watch.moved_just_now() and (found is None or bool(found))

    def _processes(self, victim: str) -> list[int] | None:
        find = {"worker": self.run.workers, "daemon": self.run.daemons, "jvm": self.run.jvms}.get(victim)
        return find() if find else None

    def _in_overlap(self) -> bool:
        """Two epochs run at this moment: the log says which began and which ended."""
        text = self.run.stderr.read_text(errors="replace")
        begun = set(re.findall(r"epoch (\d+) begins", text))
        ended = set(re.findall(r"epoch (\d+) ended", text))
        return len(begun - ended) >= 2

    def _kill(self, victim: str) -> None:
        match victim:
            case "driver":
                self.run.kill()
                self.run = HeliographRun(self._file, "--log-level", "debug", program=PROGRAM).start()
            case "source broker":
                self._source.kill(1)
                self._source.restart(1)
            case "target broker":
                self._target.kill(1)
                self._target.restart(1)
            case _:
                os.kill(self._chance.choice(self._processes(victim) or []), signal.SIGKILL)


def caught_up(source: EmbeddedCluster, target: EmbeddedCluster, topic: str) -> bool:
    """As many records on the target as the source shows to a read_committed reader."""
    with_markers = stable_ends(source.bootstrap, topic)
    there = ends(target.bootstrap, f"A.{topic}")
    if topic != "transactional":
        return with_markers == there
    return sum(there.values()) >= RECORDS // 4
