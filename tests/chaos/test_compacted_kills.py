"""On a compacted source counting is not safe, so a kill may repeat what the ledger did not know yet: in order, and no more (P8).

Three of four records have keys that come again, and Kafka's cleaner takes them out all the while: before every kill it has taken
some that were written since the kill before, and before a killed driver is started again, some behind the ledger's position. Every
fourth record has a key of its own and must be there. How much may repeat is no matter of seconds: it is what lies behind the
ledger's last entry when something is killed, and the ledger is asked at that moment. It is written every five seconds here, so
that each kill finds records which it does not know.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from heliograph.model.lanes import LedgerEntry
from tests.support.clusters import TwoClusters
from tests.support.compaction import COMPACTED, is_cleaned_away
from tests.support.heliograph_run import PROGRAM, HeliographRun, two_cluster_settings, write_properties
from tests.support.lane_ledger import LaneLedger
from tests.support.reading import values
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import producer

RATE = 500
LASTING = 4
"""Every so many records one has a key of its own, which the cleaner never takes."""
KEYS = 50
VICTIMS = ("worker", "driver", "jvm", "worker", "driver")
PATIENCE = 120.0
NOT_ON_THE_COPY = "segment.*, .*compaction.*, min.cleanable.*, delete.retention.*"
"""What makes the cleaner come soon: the remote topic keeps everything, or a repeat could not be seen."""


class Feed:
    """Numbered records at a steady rate until stopped; a record's number is its offset."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._client = producer(bootstrap, linger_ms=5, enable_idempotence=True)
        self._topic = topic
        self._stop = threading.Event()
        self.written = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        begun = time.monotonic()
        for number in itertools.count():
            if self._stop.is_set() and (number - 1) % LASTING == 0:
                break  # the last record is a lasting one: it can be waited for
            self._client.produce(self._topic, b"%d" % number, key_of(number), partition=0)
            self.written = number + 1
            if number % 50 == 0:
                self._client.poll(0)
                self._stop.wait(max(0.0, number / RATE - (time.monotonic() - begun)))
        self._client.flush(PATIENCE)

    def stop(self) -> int:
        self._stop.set()
        self._thread.join(PATIENCE)
        return self.written


def key_of(number: int) -> bytes:
    return b"lasts-%d" % number if number % LASTING == 0 else b"again-%d" % (number % KEYS)


@dataclass(frozen=True)
class Kill:
    """What the ledger knew when something was killed: its furthest position, and how many entries it had had until then."""

    position: int
    entries: int


class Stage:
    """The copy under fire."""

    def __init__(self, source: str, target: str, topic: str, file: Path) -> None:
        self._source, self._target, self._topic, self._file = source, target, topic, file
        self.ledger = LaneLedger(target, topic)
        self.feed = Feed(source, topic)
        self.run = HeliographRun(file, program=PROGRAM).start()
        self.kills: list[Kill] = []

    def kill(self, victim: str, since: int) -> int:
        """Once the copy, the ledger and the cleaner are all beyond `since`; how many records were written by then."""
        self._until(lambda: last_number(self._target, f"A.{self._topic}") > since, "the copy moves")
        self._until(lambda: self.ledger.position() > since, "the ledger follows")
        self._until_cleaned(since)
        self._until(lambda: self._unknown() > 0, "records are copied that the ledger does not know")
        self.kills.append(Kill(self.ledger.position(), len(self.ledger.look())))
        if victim == "driver":
            self.run.kill()
            written = self.feed.written
            self._until_cleaned(max(written, self.kills[-1].position))
            self.run = HeliographRun(self._file, program=PROGRAM).start()
            return written
        find = self.run.carriers if victim == "worker" else self.run.jvms
        found: list[int] = []

        def is_there() -> bool:
            found[:] = find()
            return bool(found)

        self._until(is_there, f"a {victim} that carries")
        for process in found:
            os.kill(process, signal.SIGKILL)
        return self.feed.written

    def _unknown(self) -> int:
        """How many source offsets the copy is ahead of the ledger."""
        position = self.ledger.position()
        return last_number(self._target, f"A.{self._topic}") + 1 - position

    def _until_cleaned(self, since: int) -> None:
        """A record that was written after `since`, and whose key has come again, is gone from the source."""
        gone = since + 1 if (since + 1) % LASTING else since + 2
        self._until(lambda: self.feed.written > gone + 2 * KEYS, "the keys come again")
        self._until(lambda: is_cleaned_away(self._source, self._topic, gone), f"the cleaner has been at {gone}")

    def finish(self) -> int:
        """All is copied, and it ends in good order; how many records were written."""
        written = self.feed.stop()
        self._until(lambda: last_number(self._target, f"A.{self._topic}") == written - 1, "the last record is copied")
        # Workers of the driver that was killed may have copied the last record: the new one has to be there to be stopped.
        self._until(lambda: bool(self.run.workers()), "the last run carries")
        assert self.run.terminate() == 0
        return written

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, what, PATIENCE, every=0.2)

    def close(self) -> None:
        self.feed.stop()
        self.run.kill_tree()
        self.ledger.close()


@pytest.mark.timeout(600)
def test_kills_on_a_compacted_source_lose_nothing_and_repeat_only_what_the_ledger_did_not_know(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    source, target = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    create_topic(source, unique, config=COMPACTED | {"segment.ms": "1000"})
    settings = two_cluster_settings(source, target, unique)
    settings |= {"epoch.seconds": "5", "takeover.wait.seconds": "10", "request.timeout.ms": "5000", "slots": "1"}
    settings |= {"ledger.interval.ms": "5000", "config.properties.exclude": NOT_ON_THE_COPY}
    stage = Stage(source, target, unique, write_properties(tmp_path / "mm2.properties", settings))
    try:
        since = 0
        for victim in VICTIMS:
            since = stage.kill(victim, since)
        written = stage.finish()
        entries = stage.ledger.look()
    finally:
        stage.close()
    copied = [int(value) for value in values(target, f"A.{unique}")]
    assert_nothing_is_lost(copied, written)
    assert_attempts_begin_where_the_ledger_ended(entries, stage.kills)
    rewinds = [(before, after) for before, after in itertools.pairwise(copied) if after <= before]
    assert 0 < len(rewinds) <= len(VICTIMS), rewinds
    begun = {entry.generation: entry.source_start for entry in entries}
    for before, after in rewinds:
        assert any(is_first_from(after, start) for start in begun.values()), f"after {before} came {after}: {begun}"


def assert_nothing_is_lost(copied: list[int], written: int) -> None:
    """Of a key that came again the last one at least; of the others every one. That some were cleaned away shows in the gaps."""
    there = set(copied)
    assert set(range(0, written, LASTING)) <= there, "a record is lost"
    newest = {key_of(number): number for number in range(written)}
    assert set(newest.values()) <= there, "the last record of a key is lost"
    assert len(there) < written, "nothing was cleaned before it was copied: the kills showed less than they should"


def assert_attempts_begin_where_the_ledger_ended(entries: list[LedgerEntry], kills: list[Kill]) -> None:
    """An attempt begins at a position that the ledger had by then, and at none that is older than its last one at the kill.

    One that stumbled and goes on by itself knows better than the ledger: it may begin further on.
    """
    opened: dict[int, int] = {}
    for place, entry in enumerate(entries):
        if entry.generation in opened:
            continue
        opened[entry.generation] = place
        if not place:
            continue
        had = {earlier.source_next for earlier in entries[:place]}
        assert entry.source_start in had or entry.source_start > max(had), (
            f"generation {entry.generation} began at {entry.source_start}; the ledger had had {sorted(had)}"
        )
        for kill in kills:
            assert place < kill.entries or entry.source_start >= kill.position, (
                f"generation {entry.generation} began at {entry.source_start}, though the ledger knew {kill.position}"
            )
    for kill, after in itertools.pairwise([*kills, Kill(0, len(entries))]):
        hit = any(kill.entries <= place < after.entries for place in opened.values())
        assert hit, f"no attempt followed {kill}: who was killed carried nothing"


def is_first_from(number: int, start: int) -> bool:
    """Whether a reader who begins at `start` may meet this record first: no lasting one lies between."""
    return start <= number <= start + (-start) % LASTING


def last_number(bootstrap: str, topic: str) -> int:
    """The number in the last record, -1 before the first."""
    try:
        end = ends(bootstrap, topic).get(0, 0)
    except Exception:  # noqa: BLE001  the remote topic is not made yet; confluent-kafka has several kinds for that
        return -1
    if not end:
        return -1
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, end - 1)])
    message = consumer.poll(5.0)
    consumer.close()
    return -1 if message is None or message.error() else int(message.value())
