"""Compares a copy with its source record by record, through a client that shares no code with Heliograph.

Reads both sides with confluent-kafka, partition by partition and in step, so memory stays bounded whatever the topics
hold. Key, value, headers (order, nulls, repeats), timestamp, partition and order must be equal. Must not know how the copy
was made.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType, TracebackType
from typing import Any, Self

from heliograph.errors import ClusterUnreachable, SetupError
from heliograph.operations.align import Alignment, Chunk, Finding, Record, Side

Progress = Callable[[str, int, int], None]
"""Called with topic, partition and the records compared so far in all."""
Ends = Mapping[tuple[str, int], int]
"""Source topic and partition to the offset before which the comparison ends."""

MOST_DIFFERENCES = 20
"""The comparison ends when so many are found."""

_ANSWER_SECONDS = 30.0
_CHUNK_BYTES = 8 << 20
# Few enough that a chunk is gone before Python's garbage collector counts it among the old objects: 1.5 times the speed.
_CHUNK_RECORDS = 500
_FIRST_RECORDS = 100
_POLL_SECONDS = 0.05
_AGAIN_SECONDS = 0.2
_MOVING = {5, 6, 74, 75, 78}
"""No leader, not the leader, two epochs of leaders that differ, a leader that does not know its end yet."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not equal. `index` is the source record's place in its partition, from 0; -1 for none."""

    topic: str
    partition: int
    index: int
    what: str
    source: Record | None = None
    target: Record | None = None

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}: {self.what}"


@dataclass(frozen=True)
class Comparison:
    """How many source records were compared, and the first differences found."""

    records: int
    differences: list[Difference] = field(default_factory=list)

    @property
    def identical(self) -> bool:
        return not self.differences


def compare_topics(
    source_bootstrap: str,
    target_bootstrap: str,
    pairs: Mapping[str, str],
    *,
    isolation: str = "read_committed",
    ends: Ends | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare every source topic of `pairs` with its remote topic, up to both ends as they are now.

    With `ends` the source is read up to there, and the target may hold more than that: a mirror that still runs.
    """
    records = 0
    differences: list[Difference] = []
    with _Reader(source_bootstrap, isolation) as source, _Reader(target_bootstrap, isolation) as target:
        for topic, remote in pairs.items():
            ours, theirs = source.spans(topic), target.spans(remote)
            if len(ours) != len(theirs) or not ours:
                differences.append(_partitions_differ(topic, len(ours), remote, len(theirs)))
                continue
            for partition, (start, end) in ours.items():
                until = min(end, ends.get((topic, partition), end)) if ends is not None else end
                alignment = Alignment(
                    Side(source.chunks(topic, partition, start, until)),
                    Side(target.chunks(remote, partition, *theirs[partition])),
                    limit=max(0, MOST_DIFFERENCES - len(differences)),
                    prefix=ends is not None,
                )
                records += _walk(alignment, progress, (topic, partition, records))
                differences += [_difference(topic, partition, finding) for finding in alignment.findings]
    return Comparison(records, differences)


def _walk(alignment: Alignment, progress: Progress | None, place: tuple[str, int, int]) -> int:
    topic, partition, before = place
    while alignment.step():
        if progress:
            progress(topic, partition, before + alignment.records)
    return alignment.records


def _difference(topic: str, partition: int, finding: Finding) -> Difference:
    return Difference(topic, partition, finding.index, finding.what, finding.source, finding.target)


def _partitions_differ(topic: str, ours: int, remote: str, theirs: int) -> Difference:
    if not ours:
        what = f"the source has no topic {topic}"
    elif not theirs:
        what = f"the target has no topic {remote}"
    else:
        what = f"the source topic has {ours} partitions, the remote topic {remote} has {theirs}"
    return Difference(topic, -1, -1, what)


class _Reader:
    """One side: a consumer that reads one partition at a time, without a group's offsets."""

    def __init__(self, bootstrap: str, isolation: str) -> None:
        self._bootstrap = bootstrap
        self._kafka = _confluent("confluent_kafka")
        self._admin_module = _confluent("confluent_kafka.admin")
        self._committed_only = isolation == "read_committed"
        # What goes wrong is raised here; the client's own log lines would only repeat it on stderr.
        common = {"bootstrap.servers": bootstrap, "log_level": 2}
        self._admin = self._admin_module.AdminClient(common)
        self._consumer = self._kafka.Consumer(
            common
            | {
                "group.id": "heliograph-comparison",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "check.crcs": True,
                # The client waits a second before it fetches again once its queue is full, unless told otherwise.
                "fetch.queue.backoff.ms": 2,
                "fetch.wait.max.ms": 20,
                "fetch.max.bytes": 64 << 20,
                "max.partition.fetch.bytes": 16 << 20,
                "queued.max.messages.kbytes": 32 << 10,
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def spans(self, topic: str) -> dict[int, tuple[int, int]]:
        """Partition to (first offset, end); the end is the last stable offset for a reader of committed records."""
        partitions = self._partitions(topic)
        starts = self._offsets(topic, partitions, self._admin_module.OffsetSpec.earliest())
        ends = self._offsets(topic, partitions, self._admin_module.OffsetSpec.latest())
        return {partition: (starts[partition], ends[partition]) for partition in partitions}

    def _partitions(self, topic: str) -> list[int]:
        try:
            # Asked through the consumer, which then knows the leaders when it is given the partitions.
            metadata = self._consumer.list_topics(topic, timeout=_ANSWER_SECONDS).topics[topic]
        except self._kafka.KafkaException as error:
            raise ClusterUnreachable(f"{self._bootstrap} does not answer: {error.args[0].str()}") from error
        return sorted(metadata.partitions)

    def _offsets(self, topic: str, partitions: list[int], spec: object) -> dict[int, int]:
        """Leaders that move meanwhile are asked again: their new place may not be known everywhere yet."""
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            try:
                return self._offsets_now(topic, partitions, spec)
            except self._kafka.KafkaException as error:
                if error.args[0].code() not in _MOVING or time.monotonic() > deadline:
                    raise
                time.sleep(_AGAIN_SECONDS)

    def _offsets_now(self, topic: str, partitions: list[int], spec: object) -> dict[int, int]:
        level = self._kafka.IsolationLevel
        futures = self._admin.list_offsets(
            {self._kafka.TopicPartition(topic, partition): spec for partition in partitions},
            isolation_level=level.READ_COMMITTED if self._committed_only else level.READ_UNCOMMITTED,
            request_timeout=_ANSWER_SECONDS,
        )
        return {where.partition: future.result(_ANSWER_SECONDS).offset for where, future in futures.items()}

    def chunks(self, topic: str, partition: int, start: int, end: int) -> Iterator[Chunk]:
        """The partition's records from `start` to before `end`, in order, a few megabytes at a time."""
        if start >= end:
            return
        self._consumer.assign([self._kafka.TopicPartition(topic, partition, start)])
        wanted, last_progress, at_end = min(_FIRST_RECORDS, end - start), time.monotonic(), False
        while not at_end:
            messages = self._consumer.consume(wanted, _POLL_SECONDS)
            if messages and (messages[0].partition() != partition or messages[0].topic() != topic):
                # What the client had queued for the partition before this one may still come out.
                messages = [m for m in messages if m.partition() == partition and m.topic() == topic]
            messages, at_end = self._good_messages(messages, end)
            if messages:
                contents = [(m.timestamp()[1], m.key(), m.value(), m.headers()) for m in messages]
                yield [m.offset() for m in messages], contents
                last_progress = time.monotonic()
                size = sum(map(len, messages)) // len(messages) + 1
                left = end - messages[-1].offset() - 1
                wanted = max(1, min(_CHUNK_RECORDS, _CHUNK_BYTES // size, left))
                at_end = at_end or not left
            elif time.monotonic() - last_progress > _ANSWER_SECONDS:
                raise ClusterUnreachable(f"{self._bootstrap} sent nothing of {topic}-{partition} for 30 s.")
        self._consumer.unassign()

    def _good_messages(self, messages: list[Any], end: int) -> tuple[list[Any], bool]:
        """The records before `end` among them, and whether the end was reached."""
        at_end = False
        if not all(message.error() is None for message in messages):
            at_end = self._check_errors(messages)
            messages = [message for message in messages if not message.error()]
        if messages and messages[-1].offset() >= end:
            at_end = True
            messages = [message for message in messages if message.offset() < end]
        return messages, at_end

    def _check_errors(self, messages: list[Any]) -> bool:
        """True for the end of the partition; other errors that the client does not mend itself are raised."""
        errors = [message.error() for message in messages if message.error()]
        for error in errors:
            if error.code() != self._kafka.KafkaError._PARTITION_EOF and not error.retriable():
                raise ClusterUnreachable(f"{self._bootstrap} could not be read: {error.str()}")
        return any(error.code() == self._kafka.KafkaError._PARTITION_EOF for error in errors)


def _confluent(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SetupError("The comparison needs confluent-kafka: pip install 'heliograph[demo]'.") from error
