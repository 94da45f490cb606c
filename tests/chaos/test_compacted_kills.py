"""On a compacted source counting is not safe, so a kill may repeat what the ledger did not know yet: in order, and no more (P8)."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from heliograph.kafka.ledger import LEDGER_TOPIC
from heliograph.replication.generations import EntryKey, decode_entry, parse_key
from tests.support.clusters import TwoClusters
from tests.support.heliograph_run import PROGRAM, HeliographRun, two_cluster_settings, write_properties
from tests.support.reading import messages
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import producer

RATE = 2_000
VICTIMS = ("worker", "driver", "jvm", "worker", "driver")
SECONDS_UNWRITTEN = 10.0
"""The ledger is written once a second. How long a busy machine makes of that second is not what is tested."""


class Feed:
    """Numbered records with keys of their own, at a steady rate, until stopped."""

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
            if self._stop.is_set():
                break
            self._client.produce(self._topic, b"%d" % number, b"k%d" % number, partition=0)
            self.written = number + 1
            if number % 50 == 0:
                self._client.poll(0)
                self._stop.wait(max(0.0, number / RATE - (time.monotonic() - begun)))
        self._client.flush(60)

    def stop(self) -> int:
        self._stop.set()
        self._thread.join(90)
        return self.written


def _values(bootstrap: str, topic: str) -> list[int]:
    end = ends(bootstrap, topic)[0]
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []
    while len(found) < end:
        found += [int(message.value()) for message in consumer.consume(5_000, 5.0) if not message.error()]
    consumer.close()
    return found


@pytest.mark.timeout(400)
def test_kills_on_a_compacted_source_lose_nothing_and_repeat_little(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    source, target = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    never_cleaned = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1.0", "segment.bytes": "1073741824"}
    create_topic(source, unique, config=never_cleaned)
    settings = two_cluster_settings(source, target, unique)
    settings |= {"epoch.seconds": "5", "takeover.wait.seconds": "3", "slots": "1"}
    file = write_properties(tmp_path / "mm2.properties", settings)
    feed = Feed(source, unique)
    run = HeliographRun(file, program=PROGRAM).start()
    killed_at = 0
    try:
        for victim in VICTIMS:
            # Caught up, and then for two seconds in step: what a kill may repeat is a second of copying, and while it
            # catches up a mirror copies many seconds of writing in one.
            wait_until(lambda at=killed_at: _last(target, f"A.{unique}") > at + RATE, "the copy moves", 90, every=0.2)
            wait_until(lambda: _last(target, f"A.{unique}") > feed.written - RATE, "it is in step", 90, every=0.2)
            time.sleep(2.5)
            killed_at = feed.written
            if victim == "driver":
                run.kill()
                run = HeliographRun(file, program=PROGRAM).start()
            else:
                os.kill((run.workers() if victim == "worker" else run.jvms())[0], signal.SIGKILL)
        written = feed.stop()
        wait_until(lambda: _last(target, f"A.{unique}") == written - 1, "the last record is copied", 90, every=0.5)
        # Workers of the driver that was killed may have copied the last record: the new one has to be there to be stopped.
        wait_until(run.workers, "the last run carries", 90, every=0.2)
        assert run.terminate() == 0
    finally:
        feed.stop()
        run.kill_tree()
    values = _values(target, f"A.{unique}")
    assert set(values) == set(range(written)), "a record is lost"
    rewinds = [(before, after) for before, after in itertools.pairwise(values) if after != before + 1]
    assert len(rewinds) <= len(VICTIMS)
    begun, known = _generations(target, unique)
    for before, after in rewinds:
        # In order, and from where the ledger ended: of what it knew nothing is repeated.
        assert after in begun, f"after {before} came {after}, where no attempt began"
        assert 0 < before + 1 - after <= RATE * SECONDS_UNWRITTEN, f"after {before} came {after}"
    for generation, start in enumerate(begun[1:], 1):
        assert start == known[generation - 1], f"generation {generation} began at {start}"


def _generations(bootstrap: str, topic: str) -> tuple[list[int], list[int]]:
    """By generation of the lane: where it began, and the furthest position that the ledger ever had of it."""
    begun: dict[int, int] = {}
    known: dict[int, int] = {}
    for partition in ends(bootstrap, LEDGER_TOPIC):
        for message in messages(bootstrap, LEDGER_TOPIC, partition):
            key = parse_key(message.key().decode())
            if isinstance(key, EntryKey) and key.lane.topic == topic and message.value() is not None:
                entry = decode_entry(message.value())
                begun[key.generation] = entry.source_start
                known[key.generation] = max(known.get(key.generation, 0), entry.source_next)
    return [begun[number] for number in sorted(begun)], [known[number] for number in sorted(known)]


def _end(bootstrap: str, topic: str) -> int:
    try:
        return ends(bootstrap, topic)[0]
    except Exception:  # noqa: BLE001  the remote topic is not made yet; confluent-kafka has several kinds for that
        return 0


def _last(bootstrap: str, topic: str) -> int:
    """The number in the last record, -1 before the first."""
    end = _end(bootstrap, topic)
    if not end:
        return -1
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, end - 1)])
    message = consumer.poll(5.0)
    consumer.close()
    return -1 if message is None or message.error() else int(message.value())
