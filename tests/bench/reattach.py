"""`python -m tests.bench.reattach [--lanes 1000] [--out build/reattach.json]`: many compacted lanes after a broker was killed.

One broker a side, one topic of compacted partitions, all carried by one slot as a task carries them, without Spark. Every partition gets
a record again and again, so that batches are on their way when the broker is killed. Measured: from when the broker answers again until
every lane has copied a record that was written after that, what the ledger was asked for meanwhile, and the CPU time of the slot.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from heliograph.embedded.cluster import EmbeddedCluster, start_many
from heliograph.embedded.settings import Jvm
from heliograph.kafka.slot import SlotSettings
from heliograph.model.lanes import LaneState
from tests.bench import facts
from tests.integration.protocol.harness import Attempt, Mirror
from tests.support.asked import Asked

BROKER = 1
_COMPACT = {"cleanup.policy": "compact"}
_ROUND_SECONDS = 1.0
_AWAY_SECONDS = 3.0
_LIMIT_SECONDS = 300.0
_LOOK_SECONDS = 0.02


def main() -> int:
    args = _arguments()
    with tempfile.TemporaryDirectory(prefix="heliograph-reattach-", ignore_cleanup_errors=True) as directory:
        found = _measure(Path(directory), args.lanes)
    facts.keep(found, args.out)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.reattach", description="Lanes after a lost broker.")
    parser.add_argument("--lanes", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=Path("build/reattach.json"), help="default: %(default)s")
    return parser.parse_args()


def _measure(directory: Path, lanes: int) -> dict[str, Any]:
    commit, changed = facts.commit()
    heading = {"commit": commit, "changed": changed, "machine": facts.machine(), "lanes": lanes}
    pair = [EmbeddedCluster(name, directory, jvm=Jvm(heap="1g")) for name in ("source", "target")]
    source, target = pair
    try:
        start_many(pair)
        mirror = Mirror(source.bootstrap, target.bootstrap, "reattach")
        mirror.make_topic(lanes, _COMPACT)
        load = _Load(source.bootstrap, mirror.topic, lanes)
        began = time.monotonic()
        with Attempt(mirror.open(), SlotSettings()) as attempt:
            load.start()
            _wait(lambda: all(life.run.position() > 0 for life in attempt.lives), attempt)
            heading["first_seconds"] = time.monotonic() - began
            for cluster in (target, source):
                heading[cluster.name] = _lost_broker(cluster, attempt, load)
                print(cluster.name, heading[cluster.name], flush=True)
            load.stop()
    finally:
        for cluster in pair:
            cluster.stop()
    return heading


def _lost_broker(cluster: EmbeddedCluster, attempt: Attempt, load: _Load) -> dict[str, Any]:
    generations = sum(life.run.acked.generation for life in attempt.lives)
    cluster.kill(BROKER)
    time.sleep(_AWAY_SECONDS)
    asked, cpu = Asked(), time.process_time()
    with asked:
        cluster.restart(BROKER)
        answered = time.monotonic()
        wanted = load.ends()
        _wait(lambda: _have_copied(attempt, wanted), attempt)
        seconds = time.monotonic() - answered
    return {
        "seconds": seconds,
        "cpu_seconds": time.process_time() - cpu,
        "requests": dict(asked.counts),
        "generations": sum(life.run.acked.generation for life in attempt.lives) - generations,
    }


def _have_copied(attempt: Attempt, wanted: dict[int, int]) -> bool:
    return all(
        life.run.state is LaneState.FOLLOWING and life.run.position() >= wanted[life.run.lane.id.partition]
        for life in attempt.lives
    )


def _wait(condition: Callable[[], bool], attempt: Attempt) -> None:
    deadline = time.monotonic() + _LIMIT_SECONDS
    while not condition():
        if time.monotonic() > deadline or attempt.error is not None:
            states = Counter(f"{life.run.state} {life.run.reason}" for life in attempt.lives)
            raise SystemExit(f"not within {_LIMIT_SECONDS:.0f} s: {states.most_common(5)} {attempt.error!r}")
        time.sleep(_LOOK_SECONDS)


class _Load:
    """A record into every partition, again and again; keys repeat, as in a compacted topic."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._bootstrap, self._topic, self._partitions = bootstrap, topic, partitions
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._ends: dict[int, int] = {}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _write(self) -> None:
        writer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 20, "enable.idempotence": True})
        number = 0
        while not self._stop.wait(_ROUND_SECONDS):
            number += 1
            for partition in range(self._partitions):
                writer.produce(self._topic, b"%d" % number, b"key", partition, on_delivery=self._delivered)
            writer.flush()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self._ends[message.partition()] = message.offset() + 1

    def ends(self) -> dict[int, int]:
        """Of every partition, after a record that is written from now on."""
        before = dict(self._ends)
        while any(self._ends[partition] <= end for partition, end in before.items()):
            time.sleep(_LOOK_SECONDS)
        return dict(self._ends)


if __name__ == "__main__":
    sys.exit(main())
