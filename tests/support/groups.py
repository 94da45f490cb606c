"""Consumer groups through confluent-kafka: commit for one, read what it committed, and the turns of the jobs that look after them."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaException, TopicPartition

from heliograph.control.checkpoints import CheckpointJob
from heliograph.control.clock import Clock
from heliograph.control.group_offsets import GroupOffsetsJob
from heliograph.control.group_positions import GroupPositions
from heliograph.control.jobs import Found, Job, JobRunner
from heliograph.control.planner import FlowPlan
from heliograph.kafka.slot import Warm
from heliograph.model.events import Event
from tests.integration.protocol.harness import with_warm
from tests.support.reading import messages
from tests.support.topics import ANSWER_SECONDS

Partition = tuple[str, int]
Answer = TypeVar("Answer")
_COORDINATOR_LOOKS = 600
_COORDINATOR_COMES = {14, 15, 16}
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR"""


class Checkpointed(NamedTuple):
    """One record of a checkpoints topic, taken apart by hand."""

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str


def checkpoints(bootstrap: str, topic: str) -> list[Checkpointed]:
    """All records of a checkpoints topic, oldest first."""
    found = []
    for message in messages(bootstrap, topic):
        group, rest = _string(message.key())
        remote, rest = _string(rest)
        (partition,) = struct.unpack(">i", rest)
        version, upstream, downstream = struct.unpack_from(">hqq", message.value())
        metadata, rest = _string(message.value()[18:])
        assert (version, rest) == (0, b"")
        # confluent-kafka, which commits in these tests, adds the NUL of a string in C.
        found.append(Checkpointed(group, remote, partition, upstream, downstream, metadata.rstrip("\0")))
    return found


def _string(data: bytes) -> tuple[str, bytes]:
    (length,) = struct.unpack_from(">h", data)
    return data[2 : 2 + length].decode(), data[2 + length :]


def commit(bootstrap: str, group: str, offsets: Mapping[Partition, int], metadata: str = "") -> None:
    """As a consumer that is assigned by hand does: the group has no members."""
    commit_as({"bootstrap.servers": bootstrap}, group, offsets, metadata)


def commit_as(
    client_config: Mapping[str, Any], group: str, offsets: Mapping[Partition, int], metadata: str = ""
) -> None:
    """The same through any door: a coordinator that is still loading its group is asked again, as applications do."""
    client = Consumer({**client_config, "group.id": group, "enable.auto.commit": False})
    places = [TopicPartition(topic, number, offset, metadata) for (topic, number), offset in offsets.items()]
    try:
        for done in _once_there_is_a_coordinator(lambda: client.commit(offsets=places, asynchronous=False)) or []:
            assert done.error is None, done.error
    finally:
        client.close()


def _once_there_is_a_coordinator(ask: Callable[[], Answer]) -> Answer:
    for _ in range(_COORDINATOR_LOOKS):
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in _COORDINATOR_COMES:
                raise
            time.sleep(0.1)
    return ask()


def committed(bootstrap: str, group: str) -> dict[Partition, int]:
    """Of every topic that is there.

    Asked as a consumer asks: the admin client's own call ends the whole process (confluent-kafka 2.16.1, SIGSEGV) where the
    coordinator is still loading, which it is when a cluster meets its first group.
    """
    client = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 2})
    try:
        topics = client.list_topics(timeout=ANSWER_SECONDS).topics
        places = [TopicPartition(name, number) for name, topic in topics.items() for number in topic.partitions]
        found = _once_there_is_a_coordinator(lambda: client.committed(places, ANSWER_SECONDS))
        return {(place.topic, place.partition): place.offset for place in found if place.offset >= 0}
    finally:
        client.close()


@dataclass
class Turns:
    """A job of a flow, as a run would do it, without Spark. Every turn has a job of its own: nothing is kept in memory."""

    plan: FlowPlan
    make: Callable[[Turns, Warm], Job[Any]]
    events: list[Event] = field(default_factory=list)
    standing: Mapping[str, Any] = field(default_factory=dict)

    def turn(self) -> bool:
        """True: nothing stood against it."""

        async def once(warm: Warm) -> bool:
            runner = JobRunner(self.plan.name, lambda: True, self.events.append, Clock())
            done = await runner.once(self.make(self, warm))
            (self.standing,) = runner.standing()
            return done

        return with_warm(once)

    def look(self) -> Found[Any]:
        return with_warm(lambda warm: self.make(self, warm).look())

    def pending(self) -> list[str]:
        return [f"{each.subject}: {each.what} ({each.why})" for each in self.look().actions]


def checkpoint_job(turns: Turns, warm: Warm) -> CheckpointJob:
    return CheckpointJob(turns.plan.settings, _positions(turns, warm), warm, Clock(), turns.events.append)


def group_offsets_job(turns: Turns, warm: Warm) -> GroupOffsetsJob:
    return GroupOffsetsJob(turns.plan.settings, _positions(turns, warm), warm, Clock())


def _positions(turns: Turns, warm: Warm) -> GroupPositions:
    return GroupPositions(turns.plan.settings, lambda: turns.plan, warm, Clock())
