"""Dead letters: records that a remote topic does not take, kept beside it with headers that say whence and why.

The topic is made when the first record needs it. Written at least once: an attempt that is killed between this and the new
generation leaves a record that its successor writes again, with the same coordinates in its headers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from heliograph.errors import BrokerRefused
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.ranges import Log, read_range
from heliograph.kafka.topic_writer import TopicWriter
from heliograph.model.lanes import Lane
from heliograph.replication.policies import Facts, is_as_bad
from heliograph.replication.topic_plan import CreateTopic
from heliograph.wire.plain_batch import plain_record_batch
from heliograph.wire.records import Record, read_records

_UNKNOWN_TOPIC = 3
_LOOKS = 50
_LOOK_SECONDS = 0.1
# A letter keeps its own time: the record's may be what the target refuses, or so old that retention would take it at once.
_CONFIGS = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "message.timestamp.type": "LogAppendTime",
    "max.message.bytes": "104857600",
}


@dataclass(frozen=True)
class Bad:
    """The refused record, and the neighbours in its batch that have the same fault."""

    records: tuple[Record, ...]
    first: Facts

    @property
    def last(self) -> int:
        return self.records[-1].offset


async def read_bad(client: ClusterClient, lane: Lane, node: int, code: int, offset: int, now_ms: int) -> Bad:
    """The record at `offset` from the source, and those directly after it that have the same fault."""
    log = Log(lane.id.topic, lane.source_topic_id, lane.id.partition, node)
    found: list[Record] = []
    async for seen in read_range(client, log, offset, offset + 1, committed=False):
        for record in read_records(seen.data, seen.header):
            if record.offset < offset:
                continue
            if found and not is_as_bad(code, _facts(found[0]), _facts(record), now_ms):
                break
            found.append(record)
    if not found or found[0].offset != offset:
        raise BrokerRefused(1, f"{lane.id.topic}-{lane.id.partition}: record {offset} is not there any more")
    return Bad(tuple(found), _facts(found[0]))


def _facts(record: Record) -> Facts:
    size = len(record.key or b"") + len(record.value or b"")
    size += sum(len(name) + len(value or b"") for name, value in record.headers)
    return Facts(record.offset, record.timestamp, size, record.key is not None)


class DeadLetters:
    """The dead-letter topic of one remote topic."""

    def __init__(self, client: ClusterClient, topic: str) -> None:
        self._client = client
        self._topic = topic

    async def write(self, lane: Lane, records: Sequence[Record], cause: str, cure: str, now_ms: int) -> None:
        """Append; returns when all are acknowledged."""
        if (await self._client.metadata([self._topic]))[self._topic].error == _UNKNOWN_TOPIC:
            await asyncio.to_thread(self._create)
            for _ in range(_LOOKS):  # made, but not every broker knows of it at once
                view = (await self._client.metadata([self._topic]))[self._topic]
                if not view.error and view.leaders and view.leaders[0].node >= 0:
                    break
                await asyncio.sleep(_LOOK_SECONDS)
        writer = TopicWriter(self._client, self._topic)
        for record in records:
            headers = (*record.headers, *_whence(lane, record, cause, cure))
            await writer.append_batches({0: plain_record_batch(record.key, record.value, headers, now_ms)})

    def _create(self) -> None:
        from heliograph.kafka.admin import ClusterAdmin  # the library's admin client is the driver's, and slow to load

        with ClusterAdmin(self._client.cluster) as admin:
            admin.create(dead_letter_wish(self._topic, min(3, admin.brokers())))


def dead_letter_wish(topic: str, replicas: int) -> CreateTopic:
    """The topic as it is made when the first record needs it."""
    return CreateTopic(topic, 1, replicas, _CONFIGS, "records that the remote topic refuses")


def _whence(lane: Lane, record: Record, cause: str, cure: str) -> list[tuple[bytes, bytes]]:
    """Where a letter comes from and why it is here."""
    fields = {
        "flow": lane.id.flow,
        "source.topic": lane.id.topic,
        "source.partition": str(lane.id.partition),
        "source.offset": str(record.offset),
        "source.timestamp": str(record.timestamp),
        "remote.topic": lane.remote_topic,
        "cause": cause,
        "cure": cure,
    }
    return [(f"heliograph.{name}".encode(), value.encode()) for name, value in fields.items()]
