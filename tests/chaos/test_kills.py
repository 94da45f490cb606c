"""Whatever is killed with -9, the copy is identical: workers, the daemon, the JVM, the driver, a broker of either side.

One copy of 500,000 records, written while it is copied: plain, transactional with aborts, and with old timestamps. Every kill
hits a copy that is under way, and that is told by records, not by a clock: in both plain partitions the target has a record that
the source got after the kill before. Whoever copied it was alive after that kill. A worker that is killed carries lanes. At some kills the same is true of the partitions
with old timestamps, which nobody may copy before the last attempt is known dead. And every kill is followed by more records, or
the next one could not come. The victims and their order are always the same (a seed): `make chaos` draws them anew.
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
IN_OVERLAP = 4
"""Kills at a moment when two epochs run."""
WITH_OLD = 3
"""Kills that wait for the partitions with old timestamps: each costs the time after which an attempt is known dead."""
PATIENCE = 120.0
PARTITIONS = 2
DAY_MS = 86_400_000
SAME_OFFSETS = ("plain", "old")
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


class UnderWay:
    """Whether topics are copied again since something was killed. Their offsets are the same on both sides."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster) -> None:
        self._source = source
        self._target = target
        self._marks: dict[str, dict[int, int]] = {topic: dict.fromkeys(range(PARTITIONS), 0) for topic in SAME_OFFSETS}

    def mark(self) -> None:
        """Something was killed, and what a person would start again has been: what the source gets from now on is new."""
        for topic in SAME_OFFSETS:
            found: dict[int, int] = {}
            wait_until(
                lambda topic=topic, found=found: _look(self._source, topic, found), "the source answers", PATIENCE
            )  # type: ignore[misc]
            self._marks[topic] = found

    def has(self, *topics: str) -> bool:
        """Every partition of these topics has a record on the target that the source got after the mark."""
        return all(self._is_beyond(topic) for topic in topics)

    def _is_beyond(self, topic: str) -> bool:
        there: dict[int, int] = {}
        marks = self._marks[topic]
        return _look(self._target, f"A.{topic}", there) and all(there[part] > mark for part, mark in marks.items())


def _look(cluster: EmbeddedCluster, topic: str, found: dict[int, int]) -> bool:
    """The ends of a topic into `found`; False while its broker is away or the topic is not made yet."""
    try:
        found.update(ends(cluster.bootstrap, topic))
    except Exception:  # noqa: BLE001  confluent-kafka has several kinds for that
        return False
    return len(found) == PARTITIONS


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
    settings |= {
        "epoch.seconds": "5",
        "takeover.wait.seconds": "10",
        "request.timeout.ms": "5000",
        "lane.retry.backoff.max.ms": "2000",
    }
    file = write_properties(tmp_path / "mm2.properties", settings)
    feed = Feed(source.bootstrap, *topics)
    feed.start()
    killer = Killer(file, source, target)
    try:
        killer.kill_all()
        feed.join()
        for topic in topics:
            wait_until(partial(caught_up, source, target, topic), f"{topic} is copied", PATIENCE, every=0.5)
        assert killer.under_way.has("plain"), "no record was written after the last kill"
        assert killer.run.terminate() == 0, killer.run.output
    finally:
        killer.run.kill_tree()
    comparison = compare_topics(source.bootstrap, target.bootstrap, {topic: f"A.{topic}" for topic in topics})
    assert comparison.identical, [str(difference) for difference in comparison.differences[:10]]
    # An application that writes old timestamps repeats records on the source itself: its broker, killed, forgets producers by
    # the time of their records, and takes what is sent again for new.
    again = [message.value() for part in range(PARTITIONS) for message in messages(source.bootstrap, "old", part)]
    assert comparison.records == RECORDS + len(again) - len(set(again))
    assert killer.killed == Counter(VICTIMS)
    assert (killer.overlapped, killer.with_old) == (IN_OVERLAP, WITH_OLD)
    assert killer.run.survivors() == []


class Killer:
    """Kills one victim after another and, where a person or an init system would, starts it again."""

    def __init__(self, file: Path, source: EmbeddedCluster, target: EmbeddedCluster) -> None:
        self._file = file
        self._source = source
        self._target = target
        self._chance = random.Random(11)
        self.under_way = UnderWay(source, target)
        self.killed: Counter[str] = Counter()
        self.overlapped = self.with_old = 0
        self._found: list[int] = []
        self.run = HeliographRun(file, "--log-level", "debug", program=PROGRAM).start()

    def kill_all(self) -> None:
        victims = VICTIMS.copy()
        self._chance.shuffle(victims)
        for number, victim in enumerate(victims):
            if self.with_old < WITH_OLD and number % 6 == 5:
                wait_until(lambda: self.under_way.has("plain", "old"), "the copy is under way", PATIENCE, every=0.05)
                self.with_old += 1
            else:
                wait_until(lambda: self.under_way.has("plain"), "the copy is under way", PATIENCE, every=0.05)
            if self.overlapped < IN_OVERLAP and victim in ("worker", "driver", "jvm") and number % 2 == 0:
                self.overlapped += 1
                wait_until(partial(self._kill_in_overlap, victim), "two epochs at once", PATIENCE, every=0.005)
            else:
                time.sleep(self._chance.uniform(0.2, 1.5))
                wait_until(partial(self._is_there, victim), f"a {victim}", PATIENCE, every=0.005)
                self._kill(victim)
            self.killed[victim] += 1
            self.under_way.mark()

    def _is_there(self, victim: str) -> bool:
        found = self._processes(victim)
        self._found = found or []
        return found is None or bool(found)

    def _kill_in_overlap(self, victim: str) -> bool:
        """The driver stands still while it is looked and killed: two epochs that ran at the look do so at the kill. True: done."""
        if not self._in_overlap():
            return False
        driver = self.run.pid
        os.kill(driver, signal.SIGSTOP)
        try:
            caught = self._in_overlap() and self._is_there(victim)
            if caught:
                self._kill(victim)
            return caught
        finally:
            if self.run.pid == driver:
                os.kill(driver, signal.SIGCONT)

    def _processes(self, victim: str) -> list[int] | None:
        find = {"worker": self.run.carriers, "daemon": self.run.daemons, "jvm": self.run.jvms}.get(victim)
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
                # Those that were seen a moment ago: in another look there may be none between two tasks.
                os.kill(self._chance.choice(self._found), signal.SIGKILL)


def caught_up(source: EmbeddedCluster, target: EmbeddedCluster, topic: str) -> bool:
    """As many records on the target as the source shows to a read_committed reader."""
    with_markers = stable_ends(source.bootstrap, topic)
    there = ends(target.bootstrap, f"A.{topic}")
    if topic != "transactional":
        return with_markers == there
    return sum(there.values()) >= RECORDS // 4
