"""The real parts: two clusters of three brokers, and `heliograph run` as a process with a supervisor that starts it again.

The mirror runs in its own JVM (local Spark), or on a standalone Spark with two workers.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Self

import psutil
from confluent_kafka import KafkaException

from heliograph.embedded.cluster import start_many
from heliograph.embedded.settings import Jvm
from tests.histories.endings import Ending, after_sigterm, by_itself
from tests.histories.history import Place, Recorder
from tests.support.doors import address_lines
from tests.support.heliograph_run import PROGRAM, HeliographRun, is_worker, write_properties
from tests.support.processes import children
from tests.support.relay import RelayedCluster
from tests.support.spark_cluster import HERE, SparkCluster
from tests.support.topics import admin, create_topic, partition_count

BROKERS = 3
SPARK_WORKERS = 2
STOP_SECONDS = 180.0
"""For a clean stop, which is part of the verdict: longer than any fault that is under way, on a machine that is slow."""
TOPICS = {"plain": 3, "tiny": 2, "transactional": 2, "compacted": 2}
"""With their partitions."""
COMPACTED = frozenset({"compacted"})
_SMALL = Jvm(heap="256m")
GROUPS = ("quick", "slow")
_RULES = {
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "unclean.leader.election.enable": "false",
    # Every five minutes brokers would move leaders by themselves: a fault that the history does not name.
    "auto.leader.rebalance.enable": "false",
}
_UNCLEANED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1.0", "segment.bytes": "1073741824"}
"""Compacted, but not within such a run: the checker needs to see all that was there."""


def remote_places() -> dict[Place, Place]:
    """Partitions of the source by those of the target."""
    return {(f"A.{topic}", number): (topic, number) for topic, count in TOPICS.items() for number in range(count)}


class Stage:
    """Inside `with` all parts run; at the end none is left."""

    def __init__(self, directory: Path, recorder: Recorder, on_spark_cluster: bool = False) -> None:
        self.source = RelayedCluster("A", directory, BROKERS, _RULES, _SMALL)
        self.target = RelayedCluster("B", directory, BROKERS, _RULES, _SMALL)
        self._directory, self._recorder = directory, recorder
        self._lock = threading.Lock()
        self._run: HeliographRun | None = None
        self._ended: list[HeliographRun] = []
        self._is_down_on_purpose = False
        self._is_hit = False
        self.spark = SparkCluster(directory, workers=SPARK_WORKERS) if on_spark_cluster else None

    def __enter__(self) -> Self:
        start_many([self.source, self.target])
        if self.spark is not None:
            self.spark.__enter__()
        for topic, partitions in TOPICS.items():
            create_topic(self.source.bootstrap, topic, partitions, BROKERS, _UNCLEANED if topic in COMPACTED else None)
        self._file = write_properties(self._directory / "chaos.properties", self._settings())
        return self

    def __exit__(self, *_: object) -> None:
        for run in [*self._ended, *([self._run] if self._run else [])]:
            run.kill_tree()
        if self.spark is not None:
            self.spark.stop()
        for cluster in (self.source, self.target):
            cluster.stop()

    def _settings(self) -> dict[str, str]:
        return {
            "clusters": "A, B",
            **address_lines("A", self.source.bootstrap),
            **address_lines("B", self.target.bootstrap),
            "A->B.enabled": "true",
            "A->B.topics": ", ".join(TOPICS),
            "A->B.groups": ", ".join(GROUPS),
            "A->B.sync.group.offsets.enabled": "true",
            "A->B.sync.group.offsets.interval.seconds": "2",
            "A->B.refresh.groups.interval.seconds": "5",
            "replication.factor": str(BROKERS),
            "epoch.seconds": "15",
            "slots": "2",
            # Not the default: a history of minutes shall hold many crashes of the driver.
            "request.timeout.ms": "8000",
            "takeover.wait.seconds": "30",
            **({"spark.executor.memory": "512m", "spark.driver.host": HERE} if self.spark else {}),
        }

    def cluster(self, part: str) -> RelayedCluster:
        return self.source if part == "source" else self.target

    def is_whole(self, part: str) -> bool:
        """Whether every broker of a cluster is back after the last fault; of the mirror, whether it runs.

        Each broker is asked itself: for some seconds the others still name one that was killed.
        """
        if part == "mirror":
            return self.run.exit_status is None
        try:
            each = self.cluster(part).bootstrap.split(",")
            return all(len(admin(broker).list_topics(timeout=2).brokers) == BROKERS for broker in each)
        except KafkaException:
            return False

    @property
    def run(self) -> HeliographRun:
        assert self._run is not None, "start_mirror() comes first"
        return self._run

    def start_mirror(self) -> None:
        """As a supervisor does; a run that ended stays known until its whole family is dead."""
        with self._lock:
            self._is_down_on_purpose = self._is_hit = False
            if self._run is not None:
                self._ended.append(self._run)
            master = ["--master", self.spark.address] if self.spark else []
            self._run = HeliographRun(self._file, *master, program=PROGRAM).start()

    def python_workers(self) -> list[int]:
        """Those that carry lanes: below the driver's JVM, or below the executors."""
        if self.spark is None:
            return self.run.workers()
        below = [child for executor in self.spark.executors() for child in children(executor)]
        return [process.pid for process in below if is_worker(process)]

    def executors(self) -> list[psutil.Process]:
        return self.spark.executors() if self.spark else []

    def stop_mirror(self) -> None:
        """As a person does: SIGTERM."""
        self._is_down_on_purpose = True
        status: int | None = None
        try:
            status = self.run.terminate(STOP_SECONDS)
        except AssertionError:
            self.run.kill_tree()
        self._tell(after_sigterm(status, self.run.output))

    def kill_mirror(self) -> None:
        """kill -9 of the driver alone; the fault that does so starts it again."""
        self._is_down_on_purpose = True
        self.run.kill()

    def hit_mirror(self) -> None:
        """A fault is about to kill or freeze a part of the run, which may be starting."""
        self._is_hit = True

    def revive(self) -> None:
        """Start the mirror again if it ended by itself: a finding that the verdict must name."""
        status = self.run.exit_status
        if status is None or self._is_down_on_purpose:
            return
        self._tell(by_itself(status, self.run.output, self._is_hit))
        self.start_mirror()

    def _tell(self, ending: Ending | None) -> None:
        if ending is not None:
            self._recorder.note("remark", text=ending.text, by_mirror=ending.by_mirror)

    def has_remote_topics(self) -> bool:
        return all(partition_count(self.target.bootstrap, f"A.{topic}") == count for topic, count in TOPICS.items())
