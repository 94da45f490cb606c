"""A partition's batches as the bytes that lie in its log."""

from __future__ import annotations

import asyncio

from heliograph.kafka.client import EARLIEST, LATEST, ClusterClient
from heliograph.kafka.ranges import Log, read_range
from heliograph.model.clusters import Cluster


def read_batches(bootstrap: str, topic: str, partition: int = 0) -> list[bytes]:
    """Every batch of the partition, control batches too."""
    return asyncio.run(_read(Cluster("reader", (bootstrap,)), topic, partition))


async def _read(cluster: Cluster, topic: str, partition: int) -> list[bytes]:
    client = ClusterClient(cluster)
    try:
        view = (await client.metadata([topic]))[topic]
        node = view.leaders[partition].node
        name = (topic, partition)
        start = (await client.offsets(node, [name], EARLIEST))[name]
        end = (await client.offsets(node, [name], LATEST))[name]
        log = Log(topic, view.topic_id, partition, node)
        return [bytes(seen.data) async for seen in read_range(client, log, start, end, committed=False)]
    finally:
        client.close()
