"""Measures latency: an emitter writes to the source, a consumer of the target says when each record was there."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from confluent_kafka import Consumer, TopicPartition

from heliograph.embedded.tether import Tether
from heliograph.errors import HeliographError
from tests.bench.cases import Latency
from tests.bench.copying import RunFailed
from tests.bench.emitter import STAMP
from tests.bench.figures import Figures, latency_figures
from tests.bench.gauge import Family
from tests.bench.lab import Ends, Lab
from tests.bench.mirrors import Mirror
from tests.support.topics import partition_count

_FIRST_SECONDS = 180.0
_QUIET_SECONDS = 10.0
_NANO = 1_000_000_000


@dataclass
class _Seen:
    """What arrived: how many times each number was seen, and when the records of the window were sent and got."""

    times: dict[int, int] = field(default_factory=dict)
    stamps: list[tuple[int, int]] = field(default_factory=list)

    def add(self, value: bytes, now_ns: int) -> None:
        sent_ns, number = STAMP.unpack_from(value)
        self.times[number] = self.times.get(number, 0) + 1
        self.stamps.append((sent_ns, now_ns))

    def milliseconds(self, from_ns: int, to_ns: int) -> Iterator[float]:
        """Latencies of the records that were sent in this window, whenever they came."""
        return ((got - sent) / 1e6 for sent, got in self.stamps if from_ns <= sent < to_ns)


def measure_latency(lab: Lab, mirror: Mirror, case: Latency, topic: str, remote: str) -> Figures:
    """Start mirror and emitter, listen for the lead and the window, stop both. Nothing of them lives afterwards."""
    began = time.monotonic()
    mirror.start()
    family = Family(mirror.pid)
    emitter = _start_emitter(lab, case, topic)
    try:
        consumer = _listen(lab, mirror, remote, case.partitions)
        seen = _Seen()
        first_ns = _first(consumer, seen, mirror)
        open_ns = first_ns + int(case.lead * _NANO)
        close_ns = open_ns + int(case.seconds * _NANO)
        # CPU is read outside the window: reading it takes milliseconds in which nobody listens.
        _drain(consumer, seen, open_ns - _NANO)
        cpu, cpu_ns = _cpu(family), time.monotonic_ns()
        _drain(consumer, seen, close_ns)
        cpu_share = (_cpu(family) - cpu) * _NANO / (time.monotonic_ns() - cpu_ns)
        memory = family.pss_mb()
        emitter.terminate()
        emitter.wait(30)
        sent = Ends(lab.source.bootstrap, topic).total()
        _drain_all(consumer, seen, sent)
        consumer.close()
        stopping = time.monotonic()
        mirror.stop()
        stopped = time.monotonic()
    finally:
        emitter.kill()
        emitter.wait()
        mirror.stop()
        left = family.kill()
    return latency_figures(seen.milliseconds(open_ns, close_ns)) | {
        "start_seconds": first_ns / _NANO - began,
        "cpu_percent": 100 * cpu_share,
        "pss_mb": memory,
        "lost": sent - len(seen.times),
        "repeated": sum(seen.times.values()) - len(seen.times),
        "stop_seconds": stopped - stopping,
        "left_behind": len(left),
    }


def _start_emitter(lab: Lab, case: Latency, topic: str) -> subprocess.Popen[bytes]:
    arguments = [lab.source.bootstrap, topic, str(case.partitions), str(case.rate)]
    command = [sys.executable, "-m", "tests.bench.emitter", *arguments]
    return Tether().start(command, lab.directory / "emitter.log")


def _cpu(family: Family) -> float:
    family.look()
    return family.cpu_seconds()


def _listen(lab: Lab, mirror: Mirror, remote: str, partitions: int) -> Consumer:
    deadline = time.monotonic() + _FIRST_SECONDS
    while partition_count(lab.target.bootstrap, remote) < partitions:
        _check(mirror, deadline)
        time.sleep(0.1)
    consumer = Consumer(
        {
            "bootstrap.servers": lab.target.bootstrap,
            "group.id": "listener",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
            "fetch.min.bytes": 1,
        }
    )
    consumer.assign([TopicPartition(remote, number, 0) for number in range(partitions)])
    return consumer


def _first(consumer: Consumer, seen: _Seen, mirror: Mirror) -> int:
    deadline = time.monotonic() + _FIRST_SECONDS
    while not _take(consumer, seen, 0.1):
        _check(mirror, deadline)
    return seen.stamps[0][1]


def _drain(consumer: Consumer, seen: _Seen, until_ns: int) -> None:
    while time.monotonic_ns() < until_ns:
        _take(consumer, seen, 0.05)


def _drain_all(consumer: Consumer, seen: _Seen, sent: int) -> None:
    last = time.monotonic()
    while len(seen.times) < sent and time.monotonic() - last < _QUIET_SECONDS:
        if _take(consumer, seen, 0.05):
            last = time.monotonic()


def _take(consumer: Consumer, seen: _Seen, wait_seconds: float) -> bool:
    message = consumer.poll(wait_seconds)
    value = message.value() if message is not None and message.error() is None else None
    if value is None:
        return False
    seen.add(value, time.monotonic_ns())
    return True


def _check(mirror: Mirror, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise RunFailed(f"no record was on the target after {_FIRST_SECONDS:.0f} s")
    try:
        _ = mirror.pid
    except HeliographError as error:
        raise RunFailed(f"it ended before the first record: {error}") from error
