"""Two real clusters for the benchmark: topics, end offsets, and a clean table between two runs."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from heliograph.embedded.cluster import EmbeddedCluster, start_many
from heliograph.embedded.settings import Jvm
from tests.support.topics import ANSWER_SECONDS, admin, create_topic
from tests.support.waiting import wait_until

JVM = Jvm(heap="1g", full_jit=True)
_KEPT = ("__consumer_offsets", "__transaction_state", "__share_group_state")
# Files of a deleted topic would otherwise stay for a minute and be removed during the next run.
_CONFIG = {"log.segment.delete.delay.ms": "500"}


class Lab:
    """Source and target, started inside `with`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.source = EmbeddedCluster("source", directory, config=_CONFIG, jvm=JVM)
        self.target = EmbeddedCluster("target", directory, config=_CONFIG, jvm=JVM)

    def __enter__(self) -> Self:
        start_many([self.source, self.target])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.source.stop()
        self.target.stop()

    def cpu_seconds(self) -> float:
        """What both brokers have used so far."""
        pids = [*self.source.pids.values(), *self.target.pids.values()]
        times = [psutil.Process(pid).cpu_times() for pid in pids]
        return sum(one.user + one.system for one in times)

    def create(self, topic: str, partitions: int) -> str:
        return create_topic(self.source.bootstrap, topic, partitions)

    def clear(self, keep: str = "") -> None:
        """Delete every topic of both sides but the source's `keep`, until their files are gone and the disk is quiet."""
        self._delete(self.source, keep)
        self._delete(self.target, "")
        os.sync()

    def _delete(self, cluster: EmbeddedCluster, keep: str) -> None:
        client = admin(cluster.bootstrap)
        found = set(client.list_topics(timeout=ANSWER_SECONDS).topics) - {keep, *_KEPT}
        if found:
            for future in client.delete_topics(list(found)).values():
                future.result(ANSWER_SECONDS)
        data = self.directory / f"{cluster.name}-1" / "data"
        wait_until(lambda: not _folders(data, found), f"the files of {', '.join(sorted(found))} are gone")


def _folders(data: Path, topics: set[str]) -> list[str]:
    names = [path.name for path in data.iterdir() if path.is_dir()]
    return [name for name in names if name.endswith("-delete") or name.rpartition("-")[0] in topics]


class Ends:
    """Reads how many records a topic has, over and over, with one client."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._client: AdminClient = admin(bootstrap)
        self._topic = topic
        self._partitions = 0

    def total(self) -> int:
        """The sum of the high watermarks; 0 while the topic does not exist."""
        if not self._partitions:
            found = self._client.list_topics(timeout=ANSWER_SECONDS).topics.get(self._topic)
            self._partitions = len(found.partitions) if found else 0
        wanted = {TopicPartition(self._topic, number): OffsetSpec.latest() for number in range(self._partitions)}
        if not wanted:
            return 0
        try:
            futures = self._client.list_offsets(wanted, request_timeout=ANSWER_SECONDS).values()
            return sum(future.result(ANSWER_SECONDS).offset for future in futures)
        except KafkaException:
            # A topic of this moment has partitions without a leader: nothing is in it yet.
            return 0
