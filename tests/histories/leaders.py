"""`python -m tests.histories.leaders BOOTSTRAP FIRST TOPIC=PARTITIONS ...`: other leaders for every partition.

A program of its own: while brokers are frozen, the client hangs in ways that nothing but its end cures.
"""

from __future__ import annotations

import sys

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

BROKERS = (1, 2, 3)


def wanted(first: int, topics: dict[str, int]) -> dict[tuple[str, int], list[int]]:
    """By partition the order of its replicas, of which the first is preferred as leader; all brokers have some."""
    order = [*BROKERS[first - 1 :], *BROKERS[: first - 1]]
    return {
        (topic, number): order[number % len(order) :] + order[: number % len(order)]
        for topic, partitions in topics.items()
        for number in range(partitions)
    }


def main(bootstrap: str, first: str, *topics: str) -> None:
    partitions = {name: int(count) for name, _, count in (topic.partition("=") for topic in topics)}
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","), request_timeout_ms=10_000)
    replicas = wanted(int(first), partitions)
    admin.alter_partition_reassignments({TopicPartition(*place): order for place, order in replicas.items()})
    admin.elect_leaders(0, {name: list(range(count)) for name, count in partitions.items()}, raise_errors=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
