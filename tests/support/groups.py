"""Consumer groups through confluent-kafka: commit for one, read what it committed, and the turns of the jobs that look after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition

from heliograph.control.clock import Clock
from heliograph.control.jobs import Found, Job, JobRunner
from heliograph.control.planner import FlowPlan
from heliograph.kafka.slot import Warm
from heliograph.model.events import Event
from tests.integration.protocol.harness import with_warm
from tests.support.topics import ANSWER_SECONDS, admin

Partition = tuple[str, int]


def commit(bootstrap: str, group: str, offsets: Mapping[Partition, int], metadata: str = "") -> None:
    """As a consumer that is assigned by hand does: the group has no members."""
    client = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    places = [TopicPartition(topic, number, offset, metadata) for (topic, number), offset in offsets.items()]
    try:
        for done in client.commit(offsets=places, asynchronous=False) or []:
            assert done.error is None, done.error
    finally:
        client.close()


def committed(bootstrap: str, group: str) -> dict[Partition, int]:
    client = admin(bootstrap)
    future = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group]
    found = future.result(ANSWER_SECONDS).topic_partitions
    return {(place.topic, place.partition): place.offset for place in found or []}


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
