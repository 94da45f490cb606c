"""How large partitions are on their leaders' disks, asked of all brokers at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from kafka.protocol.admin import DescribeLogDirsRequest, DescribeLogDirsResponse

from heliograph.errors import HeliographError
from heliograph.kafka.client import ClusterClient, Partition

_VERSION = 4


async def partition_sizes(client: ClusterClient, wanted: Iterable[Partition]) -> dict[Partition, int]:
    """Bytes of one replica; those that no broker tells of (DESCRIBE on the cluster is missing) are left out."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(set(wanted)):
        topics.setdefault(topic, []).append(partition)
    answers = await asyncio.gather(*(_sizes(client, node, topics) for node in sorted(client.brokers)))
    found: dict[Partition, int] = {}
    for answer in answers:
        for place, size in answer.items():
            found[place] = max(size, found.get(place, 0))
    return found


async def _sizes(client: ClusterClient, node: int, topics: dict[str, list[int]]) -> dict[Partition, int]:
    kind = DescribeLogDirsRequest.DescribableLogDirTopic
    request = DescribeLogDirsRequest(topics=[kind(topic=name, partitions=parts) for name, parts in topics.items()])
    try:
        connection = await client.connection(node)
        version = connection.version(DescribeLogDirsRequest.API_KEY, _VERSION)
        answer = await connection.ask(request, DescribeLogDirsResponse, version)
    except (HeliographError, TimeoutError):
        return {}  # another replica tells the same
    return {
        (topic.name, part.partition_index): part.partition_size
        for directory in answer.results
        for topic in directory.topics
        for part in topic.partitions
    }
