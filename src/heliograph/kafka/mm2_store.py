"""MirrorMaker 2's offsets topic on a target, read to its end and written as MirrorMaker 2 writes it.

What the entries mean is decided in replication/mm2_progress.py; their bytes are in wire/mm2.py.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence

from heliograph.errors import BrokerRefused, HeliographError
from heliograph.kafka.client import EARLIEST, LATEST, ClusterClient
from heliograph.kafka.ranges import Log, read_range
from heliograph.kafka.topic_writer import Record as Row
from heliograph.kafka.topic_writer import TopicWriter
from heliograph.replication.mm2_progress import HandBack, Stored
from heliograph.wire.error_codes import describe
from heliograph.wire.mm2 import StoredOffset, decode_stored_offset, encode_stored_offset, partition_of
from heliograph.wire.records import Record, read_records

_CONNECTOR_KEY = "connector-"


async def read_stored(client: ClusterClient, topics: Sequence[str], source: str) -> list[Stored]:
    """Every entry of these topics that tells of the source cluster, each topic's partition in the order of its log."""
    found = []
    for topic in topics:
        async for record in _records(client, topic):
            try:
                stored = decode_stored_offset(record.key, record.value)
            except HeliographError:
                continue  # another connector's: a Connect cluster keeps the progress of all its connectors in one topic
            if stored is not None and stored.cluster == source:
                place = (stored.topic, stored.partition)
                found.append(Stored(stored.connector, place, stored.offset, record.timestamp, topic))
    return found


async def write_stored(client: ClusterClient, entries: Sequence[HandBack], source: str, now_ms: int) -> None:
    """Write entries where MirrorMaker 2 looks for them; the topics exist."""
    for topic in sorted({entry.topic for entry in entries}):
        writer = TopicWriter(client, topic)
        await writer.learn()
        rows: dict[int, list[Row]] = {}
        for entry in entries:
            if entry.topic == topic:
                stored = StoredOffset(entry.connector, source, *entry.partition, entry.offset)
                key, value = encode_stored_offset(stored)
                rows.setdefault(partition_of(key, len(writer.leaders)), []).append((key, value))
        await writer.append(rows, now_ms)


async def connector_configs(client: ClusterClient, topics: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """By name, the configurations of the connectors that these topics of Connect's tell of: one for each that has the name."""
    found: dict[str, list[dict[str, str]]] = {}
    for topic in topics:
        latest: dict[str, dict[str, str]] = {}
        try:
            async for record in _records(client, topic):
                key = (record.key or b"").decode(errors="replace")
                if key.startswith(_CONNECTOR_KEY):
                    latest[key.removeprefix(_CONNECTOR_KEY)] = _properties(record.value)
        except BrokerRefused:
            continue  # gone, or not ours to read: nothing is known, and the check has a line for it
        for name, config in latest.items():
            if config:
                found.setdefault(name, []).append(config)
    return found


def _properties(value: bytes | None) -> dict[str, str]:
    """Empty where the connector was removed, or the record is not Connect's."""
    try:
        return {str(name): str(said) for name, said in json.loads(value or b"{}").get("properties", {}).items()}
    except (ValueError, AttributeError):
        return {}


async def _records(client: ClusterClient, topic: str) -> AsyncIterator[Record]:
    """The committed records of all partitions, one partition after the other."""
    view = (await client.metadata([topic]))[topic]
    if view.error:
        raise BrokerRefused(view.error, f"cluster {client.cluster.alias}, topic {topic}: {describe(view.error)}")
    for partition, leader in sorted(view.leaders.items()):
        name = (topic, partition)
        starts = await client.offsets(leader.node, [name], EARLIEST)
        ends = await client.offsets(leader.node, [name], LATEST, committed=True)
        if name not in starts or name not in ends:
            raise BrokerRefused(5, f"cluster {client.cluster.alias}, {topic}-{partition}: {describe(5)}")
        log = Log(topic, view.topic_id, partition, leader.node)
        async for seen in read_range(client, log, starts[name], ends[name], committed=True):
            if seen.dropped is None:
                for record in read_records(seen.data, seen.header):
                    yield record
