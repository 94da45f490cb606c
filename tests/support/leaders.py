"""Who leads and who replicates the partitions of a test cluster of several brokers, and moving them about."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from confluent_kafka import ElectionType, KafkaError, TopicPartition
from kafka.protocol.admin import AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse

from heliograph.kafka.client import ClusterClient
from heliograph.model.clusters import Cluster
from tests.support.topics import ANSWER_SECONDS, admin
from tests.support.waiting import wait_until

Replicas = Mapping[int, Sequence[int]]
"""The brokers of each partition, the preferred leader first."""


def leaders(bootstrap: str, topic: str) -> dict[int, int]:
    """By partition; -1 where there is none."""
    found = admin(bootstrap).list_topics(timeout=ANSWER_SECONDS).topics[topic]
    return {number: partition.leader for number, partition in found.partitions.items()}


def in_sync(bootstrap: str, topic: str) -> dict[int, set[int]]:
    found = admin(bootstrap).list_topics(timeout=ANSWER_SECONDS).topics[topic]
    return {number: set(partition.isrs) for number, partition in found.partitions.items()}


def out_of_sync(bootstrap: str, topic: str, broker: int) -> bool:
    """The others have gone on without it."""
    return all(broker not in brokers for brokers in in_sync(bootstrap, topic).values())


def wait_until_in_sync(bootstrap: str, brokers: set[int], *topics: str) -> None:
    """Every replica has caught up: the next fault meets a healthy cluster."""
    for topic in topics:
        wait_until(
            lambda topic=topic: all(found == brokers for found in in_sync(bootstrap, topic).values()),  # type: ignore[misc]
            f"{topic} is in sync on {sorted(brokers)}",
            every=0.3,
        )


def reassign(bootstrap: str, topic: str, replicas: Replicas) -> None:
    """Ask for these replicas; the brokers copy in the background."""
    entry = AlterPartitionReassignmentsRequest.ReassignableTopic
    wish = entry(
        name=topic,
        partitions=[
            entry.ReassignablePartition(partition_index=number, replicas=list(brokers))
            for number, brokers in replicas.items()
        ],
    )

    async def alter() -> list[int]:
        client = ClusterClient(Cluster("by-hand", tuple(bootstrap.split(","))))
        try:
            request = AlterPartitionReassignmentsRequest(timeout_ms=30_000, topics=[wish])
            answer = await client.ask_controller(request, AlterPartitionReassignmentsResponse, 0)
            return [part.error_code for one in answer.responses for part in one.partitions]
        finally:
            client.close()

    assert asyncio.run(alter()) == [0] * len(replicas)


def elect_preferred(bootstrap: str, topic: str, partitions: Sequence[int]) -> None:
    """Leadership goes to the first replica of each partition."""
    client = admin(bootstrap)
    wanted = [TopicPartition(topic, number) for number in partitions]
    found = client.elect_leaders(ElectionType.PREFERRED, wanted).result(ANSWER_SECONDS)
    for error in found.values():
        assert error is None or error.code() == KafkaError.ELECTION_NOT_NEEDED, error
