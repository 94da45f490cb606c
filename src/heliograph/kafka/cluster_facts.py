"""What a cluster tells about itself, for checks only: its brokers and their versions, its clock, its disks, its writers.

Asks and changes nothing. What the answers mean is decided in `replication.preflight` and `replication.other_writers`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from kafka.protocol.admin import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)

from heliograph.errors import BrokerRefused, ConnectionLost, HeliographError
from heliograph.kafka.client import LATEST, ClusterClient, Partition
from heliograph.kafka.ranges import Log, read_range
from heliograph.replication.other_writers import RemoteWriters
from heliograph.replication.preflight import BrokerFacts, ClockFacts, SpaceFacts

_METADATA_LOG = "__cluster_metadata"
_SPACE_VERSION = 4  # KIP-827
_AT_ONCE = 20


async def broker_facts(client: ClusterClient) -> tuple[BrokerFacts, ...]:
    """Every broker of the last metadata, dialled where it says that it is."""
    return tuple(await asyncio.gather(*(_broker(client, node) for node in sorted(client.brokers))))


async def _broker(client: ClusterClient, node: int) -> BrokerFacts:
    host, port = client.brokers[node]
    address = f"{host}:{port}"
    try:
        connection = await client.connection(node)
    except HeliographError as error:
        return BrokerFacts(node, address, str(error))
    return BrokerFacts(node, address, versions=dict(connection.versions))


async def clock(client: ClusterClient, now_ms: Callable[[], int]) -> ClockFacts:
    """The active controller's clock: in a description of the metadata quorum the leader states its own time (KIP-836)."""
    kind = DescribeQuorumRequest.TopicData
    topic = kind(topic_name=_METADATA_LOG, partitions=[kind.PartitionData(partition_index=0)])
    await client.ask_any(DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse, 2)  # connections are open now
    before = now_ms()
    answer = await client.ask_any(DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse, 2)
    after = now_ms()
    if answer.error_code:
        raise BrokerRefused(answer.error_code, "DescribeQuorum")
    parts = [part for told in answer.topics for part in told.partitions]
    if not parts:
        raise ConnectionLost("the controller tells nothing of its quorum")
    part = parts[0]
    if part.error_code:
        raise BrokerRefused(part.error_code, "DescribeQuorum")
    told = [voter.last_caught_up_timestamp for voter in part.current_voters if voter.replica_id == part.leader_id]
    if not told or told[0] < 0:
        raise ConnectionLost("the controller does not tell its time")
    return ClockFacts(told[0] - (before + after) // 2, (after - before + 1) // 2)


async def space(client: ClusterClient) -> SpaceFacts | None:
    """All log directories together; None where brokers do not tell. Directories on one disk are counted once each."""
    total = usable = 0
    for node in sorted(client.brokers):
        connection = await client.connection(node)
        version = connection.version(DescribeLogDirsRequest.API_KEY, _SPACE_VERSION)
        answer = await connection.ask(DescribeLogDirsRequest(topics=[]), DescribeLogDirsResponse, version)
        if version >= 3 and answer.error_code:
            raise BrokerRefused(answer.error_code, "DescribeLogDirs")
        if version < _SPACE_VERSION or not answer.results or any(found.usable_bytes < 0 for found in answer.results):
            return None
        # Two directories with the same figures are one disk as far as anybody can tell from here.
        disks = {(found.total_bytes, found.usable_bytes) for found in answer.results if not found.error_code}
        total += sum(size for size, _ in disks)
        usable += sum(free for _, free in disks)
    return SpaceFacts(total, usable)


async def remote_writers(client: ClusterClient, topics: Iterable[str]) -> tuple[RemoteWriters, ...]:
    """Of every partition of these topics that can be asked: whom its leader remembers, and who wrote its last batch."""
    views = await client.metadata(topics)
    by_node: dict[int, list[Partition]] = {}
    for topic, view in views.items():
        for partition, leader in view.leaders.items():
            if leader.node >= 0:
                by_node.setdefault(leader.node, []).append((topic, partition))
    gate = asyncio.Semaphore(_AT_ONCE)
    found: list[RemoteWriters] = []
    for node, here in by_node.items():
        states = await client.producers(node, here)
        ends = await client.offsets(node, here, LATEST)
        known = [name for name in here if isinstance(states.get(name), Mapping) and name in ends]
        logs = [Log(topic, views[topic].topic_id, partition, node) for topic, partition in known]
        lasts = await asyncio.gather(*(_last(client, log, ends[log.topic, log.partition], gate) for log in logs))
        for (topic, partition), last in zip(known, lasts, strict=True):
            state = states[topic, partition]
            remembered = frozenset(state) if isinstance(state, Mapping) else frozenset()
            found.append(RemoteWriters(f"{topic}-{partition}", remembered, last))
    return tuple(found)


async def _last(client: ClusterClient, log: Log, end: int, gate: asyncio.Semaphore) -> int | None:
    if end == 0:
        return None
    last: int | None = None
    async with gate:
        try:
            async for seen in read_range(client, log, end - 1, end, committed=False):
                last = seen.header.producer_id
        except BrokerRefused:
            return None  # emptied by retention
    return last
