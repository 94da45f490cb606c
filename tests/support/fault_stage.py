"""A mirror between two clusters of three brokers under load, and what is seen of it while something breaks.

`Stage.fault` is one fault: whatever happens inside, afterwards everything that was acknowledged on the source is on the target
once, the lanes follow again, and it is known what a user saw meanwhile and for how long nothing arrived.
"""

from __future__ import annotations

import json
import logging
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import pairwise
from typing import Any

from confluent_kafka import KafkaException

from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.operations.compare import compare_topics
from tests.support.heliograph_run import HeliographRun
from tests.support.reading import messages
from tests.support.rest import Rest
from tests.support.topics import create_topic, stable_ends
from tests.support.waiting import wait_until
from tests.support.writers import DRAIN_SECONDS, producer

_log = logging.getLogger(__name__)
PARTITIONS = 3
BEAT = "beat"
"""The topic whose brokers stamp each record with the time they appended it, on both sides: the gaps are the standstill."""
BROKERS_TIME = {"message.timestamp.type": "LogAppendTime"}
SETTLE_SECONDS = 240.0
_BEAT_SECONDS = 0.05
_LOOK_SECONDS = 0.5


class Load:
    """Applications that write until they are stopped: plain batches, transactions with aborts, a batch for every record."""

    def __init__(self, bootstrap: str, prefix: str = "") -> None:
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self._failures: list[BaseException] = []
        kinds: dict[str, Callable[[str], None]] = {
            f"{prefix}plain": self._plain,
            f"{prefix}transactional": self._transactions,
            f"{prefix}tiny": self._tiny,
            f"{prefix}{BEAT}": self._beat,
        }
        self.compared, self.beat = tuple(kinds)[:-1], tuple(kinds)[-1]
        self._threads = [
            threading.Thread(target=self._guarded, args=(write, topic), daemon=True) for topic, write in kinds.items()
        ]

    @property
    def topics(self) -> tuple[str, ...]:
        return (*self.compared, self.beat)

    def create_topics(self, target: str, alias: str, replicas: int, config: Mapping[str, str]) -> None:
        """On the source; and the copy of the beats on the target, whose brokers are to stamp it."""
        for topic in self.compared:
            create_topic(self._bootstrap, topic, PARTITIONS, replicas, config)
        for bootstrap, topic in ((self._bootstrap, self.beat), (target, f"{alias}.{self.beat}")):
            create_topic(bootstrap, topic, PARTITIONS, replicas, {**config, **BROKERS_TIME})

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(DRAIN_SECONDS)
            assert not thread.is_alive()
        assert not self._failures, self._failures

    def _guarded(self, write: Callable[[str], None], topic: str) -> None:
        try:
            write(topic)
        except BaseException as error:  # noqa: BLE001  shown by stop()
            self._failures.append(error)

    def _plain(self, topic: str) -> None:
        self._send(topic, 10, 0.1, linger_ms=5, compression_type="lz4")

    def _tiny(self, topic: str) -> None:
        self._send(topic, 3, 0.1, linger_ms=0, batch_num_messages=1)

    def _beat(self, topic: str) -> None:
        self._send(topic, PARTITIONS, _BEAT_SECONDS, linger_ms=0)

    def _send(self, topic: str, count: int, every_s: float, **settings: Any) -> None:
        client = producer(self._bootstrap, enable_idempotence=True, message_timeout_ms=120_000, **settings)

        def delivered(error: Any, _message: Any) -> None:
            if error is not None:
                self._failures.append(AssertionError(f"{topic}: {error}"))

        number = 0
        while not self._stop.wait(every_s):
            for _ in range(count):
                client.produce(topic, b"%d" % number, b"k%d" % number, number % PARTITIONS, on_delivery=delivered)
                number += 1
            client.poll(0)
        assert client.flush(DRAIN_SECONDS) == 0

    def _transactions(self, topic: str) -> None:
        client = producer(self._bootstrap, transactional_id=f"{topic}-load", linger_ms=2)
        client.init_transactions(DRAIN_SECONDS)
        chance, number = random.Random(5), 0
        while not self._stop.wait(0.1):
            size = chance.randint(1, 20)
            client.begin_transaction()
            for place in range(size):
                client.produce(topic, b"%d" % (number + place), partition=chance.randrange(PARTITIONS))
            number += size
            try:
                assert client.flush(DRAIN_SECONDS) == 0
                if chance.random() < 0.3:
                    client.abort_transaction(DRAIN_SECONDS)
                else:
                    client.commit_transaction(DRAIN_SECONDS)
            except KafkaException as error:
                # A coordinator that was lost in the middle: nothing of it was committed.
                assert error.args[0].txn_requires_abort(), error
                client.abort_transaction(DRAIN_SECONDS)


@dataclass
class Seen:
    """What a user saw during one fault, and what the records show of it."""

    name: str
    reasons: set[tuple[str, str, str]] = field(default_factory=set)
    """Topic, state and sentence of lanes that did not follow."""
    troubles: set[str] = field(default_factory=set)
    """What was said of the whole flow."""
    events: list[dict[str, Any]] = field(default_factory=list)
    standstill_s: float = 0.0
    source_standstill_s: float = 0.0
    bottlenecks: set[str] = field(default_factory=set)
    looks: list[tuple[float, str]] = field(default_factory=list)
    """When somebody looked, and which states there were or why nothing was seen: for a test that misses a sentence."""

    def sentences(self) -> set[str]:
        # Copies: the watcher adds to them meanwhile.
        events = {f"event {event['kind']}: {event['reason']}; {event['what_to_do']}" for event in tuple(self.events)}
        reasons = {f"{state}: {why}" for _, state, why in tuple(self.reasons)}
        return {f"flow: {text}" for text in tuple(self.troubles)} | events | reasons

    def is_said(self, pattern: str) -> bool:
        return any(re.search(pattern, text) for text in self.sentences())

    def assert_said(self, pattern: str) -> None:
        """One of the sentences has it."""
        assert self.is_said(pattern), (pattern, sorted(self.sentences()), self.looks)

    def parked(self) -> dict[str, set[str]]:
        """By topic: why lanes of it parked."""
        found: dict[str, set[str]] = {}
        for topic, state, why in tuple(self.reasons):
            if state == "parked":
                found.setdefault(topic, set()).add(why)
        return found


class Watcher:
    """Looks at the run's REST server as a user's page does, and keeps every sentence."""

    def __init__(self, rest: Rest, flow: str) -> None:
        self.rest, self.flow = rest, flow
        self.seen = Seen("")
        self._known: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def lanes(self) -> list[dict[str, Any]]:
        status, body = self.rest.ask("GET", f"/api/v1/flows/{self.flow}/lanes?limit=500")
        assert status == 200, body
        rows: list[dict[str, Any]] = body["lanes"]
        return rows

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            try:
                self._look()
            except (OSError, HTTPException, AssertionError) as error:
                self.seen.looks.append((time.monotonic(), repr(error)))  # the run is being started again

    def _look(self) -> None:
        seen = self.seen
        flow = self.rest.flow(self.flow)
        seen.troubles |= {str(flow[name]) for name in ("reason", "trouble") if flow.get(name)}
        seen.bottlenecks |= {str(flow.get("bottleneck"))}
        rows = self.lanes()
        seen.looks.append((time.monotonic(), " ".join(sorted({lane["state"] for lane in rows}))))
        for lane in rows:
            if lane["reason"] and lane["state"] not in ("following", "done", "draining"):
                seen.reasons.add((lane["topic"], lane["state"], lane["reason"]))
        for event in self.rest.get("/api/v1/events?limit=500"):
            name = json.dumps(event, sort_keys=True)
            if name not in self._known:
                self._known.add(name)
                seen.events.append(event)

    def begin(self, name: str) -> Seen:
        self.seen = Seen(name)
        return self.seen

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


@dataclass
class Stage:
    source: EmbeddedCluster
    target: EmbeddedCluster
    run: HeliographRun
    load: Load
    watcher: Watcher

    def remote(self, topic: str) -> str:
        return f"{self.watcher.flow.partition('->')[0]}.{topic}"

    def start(self) -> None:
        """Returns once every topic is copied."""
        self.load.start()
        wait_until(
            lambda: len(self.watcher.lanes()) == PARTITIONS * len(self.load.topics), "the lanes are there", every=0.2
        )
        self.settle("the start")

    @contextmanager
    def fault(self, name: str) -> Iterator[Seen]:
        seen = self.watcher.begin(name)
        begun_ms = time.time_ns() // 1_000_000
        yield seen
        self.settle(name)
        until_ms = time.time_ns() // 1_000_000
        seen.standstill_s = _standstill(self.target.bootstrap, self.remote(self.load.beat), begun_ms, until_ms)
        seen.source_standstill_s = _standstill(self.source.bootstrap, self.load.beat, begun_ms, until_ms)
        _tell(seen)

    def written(self) -> dict[tuple[str, int], int]:
        """Where the source ends for those who read what is committed."""
        return {
            (topic, partition): end
            for topic in self.load.topics
            for partition, end in stable_ends(self.source.bootstrap, topic).items()
        }

    def go_on(self, name: str) -> None:
        """Every partition gets records from now on, and they are copied."""
        before = self.written()
        wait_until(
            lambda: all(end > before[place] for place, end in self.written().items()),
            f"after {name}: every partition of the source gets records",
            every=0.5,
        )
        self.settle(name)

    def settle(self, name: str) -> None:
        """What was acknowledged until now is on the target, every lane follows, and the copy is identical as far as it goes."""
        wanted = self.written()
        wait_until(lambda: self._reached(wanted), f"after {name}: everything is copied", SETTLE_SECONDS, every=0.5)
        pairs = {topic: self.remote(topic) for topic in self.load.compared}
        comparison = compare_topics(self.source.bootstrap, self.target.bootstrap, pairs, ends=wanted)
        assert comparison.identical, (name, [str(difference) for difference in comparison.differences[:5]])

    def _reached(self, wanted: dict[tuple[str, int], int]) -> bool:
        """Every lane follows, at or behind these source offsets."""
        lanes = {(lane["topic"], lane["partition"]): lane for lane in self.watcher.lanes()}
        # A run that was started a moment ago shows no lanes yet.
        return all(
            place in lanes and lanes[place]["state"] == "following" and lanes[place]["position"] >= end
            for place, end in wanted.items()
        )


def _standstill(bootstrap: str, topic: str, since_ms: int, until_ms: int) -> float:
    """The longest time in which a partition got no record."""
    longest = 0
    for partition in range(PARTITIONS):
        stamps = [message.timestamp()[1] for message in messages(bootstrap, topic, partition)]
        before = [stamp for stamp in stamps if stamp < since_ms][-1:]
        within = [*before, *(stamp for stamp in stamps if since_ms <= stamp <= until_ms)]
        longest = max(longest, *(after - earlier for earlier, after in pairwise(within)))
    return longest / 1000


def _tell(seen: Seen) -> None:
    """`pytest --log-cli-level=INFO` shows it: the figures of docs/faults.md."""
    _log.info(
        "%s: nothing arrived for %.1f s, on the source %.1f s", seen.name, seen.standstill_s, seen.source_standstill_s
    )
    for sentence in sorted(seen.sentences()):
        _log.info("    %s", sentence)
