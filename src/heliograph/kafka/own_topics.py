"""Small topics as plain logs: Heliograph's own and MirrorMaker 2's, read whole; our own cut off or deleted, by `forget` only.

What the records mean is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka.protocol.admin import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

from heliograph.errors import BrokerRefused
from heliograph.kafka.client import EARLIEST, LATEST, ClusterClient
from heliograph.kafka.ranges import Log, read_range
from heliograph.kafka.refusals import topic_refused
from heliograph.wire.records import read_records

_TIMEOUT_MS = 10_000
_MISSING = {3, 100}
_UNKNOWN_TOPIC = 3
_NOT_ALLOWED = 29
_NAMES_VERSION = 5  # the last one that knows topics by name only


@dataclass(frozen=True)
class PlainRecord:
    offset: int
    key: bytes | None
    value: bytes | None


async def read_topic(client: ClusterClient, topic: str) -> dict[int, list[PlainRecord]] | None:
    """Every record by partition, up to the ends of this moment; None if the topic does not exist."""
    view = (await client.metadata([topic]))[topic]
    if view.error in _MISSING:
        return None
    if view.error:
        raise BrokerRefused(view.error, f"cluster {client.cluster.alias}: topic {topic}{_needed('READ', view.error)}")
    found: dict[int, list[PlainRecord]] = {}
    for partition, leader in sorted(view.leaders.items()):
        log = Log(topic, view.topic_id, partition, leader.node)
        found[partition] = await _read_from(client, log, 0)
    return found


async def _read_from(client: ClusterClient, log: Log, first: int) -> list[PlainRecord]:
    where = (log.topic, log.partition)
    start = await client.offsets(log.node, [where], EARLIEST)
    end = await client.offsets(log.node, [where], LATEST)
    if where not in start or where not in end:
        raise BrokerRefused(5, f"cluster {client.cluster.alias}: {log.topic}-{log.partition}")
    begin = max(start[where], first)
    return [
        PlainRecord(record.offset, _bytes(record.key), _bytes(record.value))
        async for seen in read_range(client, log, begin, end[where], committed=True)
        if seen.dropped is None
        for record in read_records(seen.data, seen.header)
        if record.offset >= begin
    ]


class TopicTail:
    """Partition 0 of a topic, read on from where the last look ended."""

    def __init__(self, client: ClusterClient, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._topic_id = ""
        self._next = 0

    async def read_on(self) -> tuple[list[PlainRecord], bool] | None:
        """What came since, and whether that is all of it because the topic is another one; None: it does not exist."""
        alias = self._client.cluster.alias
        view = (await self._client.metadata([self._topic]))[self._topic]
        if view.error in _MISSING:
            self._topic_id, self._next = "", 0
            return None
        if view.error or 0 not in view.leaders:
            raise topic_refused(view.error or 5, f"cluster {alias}: topic {self._topic}", "READ", self._topic, alias)
        anew = view.topic_id != self._topic_id
        if anew:
            self._topic_id, self._next = view.topic_id, 0
        found = await _read_from(self._client, Log(self._topic, view.topic_id, 0, view.leaders[0].node), self._next)
        if found:
            self._next = found[-1].offset + 1
        return found, anew


def _bytes(value: bytes | memoryview | None) -> bytes | None:
    return None if value is None else bytes(value)


async def cut_off(client: ClusterClient, topic: str, partition: int, before: int) -> None:
    """DeleteRecords: the log begins at `before` afterwards."""
    leader = (await client.metadata([topic]))[topic].leaders[partition]
    kind = DeleteRecordsRequest.DeleteRecordsTopic
    part = kind.DeleteRecordsPartition(partition_index=partition, offset=before)
    request = DeleteRecordsRequest(topics=[kind(name=topic, partitions=[part])], timeout_ms=_TIMEOUT_MS)
    connection = await client.connection(leader.node)
    answer = await connection.ask(request, DeleteRecordsResponse, connection.version(request.API_KEY, 2))
    for result in answer.topics:
        for told in result.partitions:
            if told.error_code:
                raise _refused_to_delete(client, topic, told.error_code)


async def delete_topic(client: ClusterClient, topic: str) -> None:
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=_TIMEOUT_MS)
    answer = await client.ask_controller(request, DeleteTopicsResponse, _NAMES_VERSION)
    for result in answer.responses:
        if result.error_code not in (0, _UNKNOWN_TOPIC):
            raise _refused_to_delete(client, topic, result.error_code)


def _refused_to_delete(client: ClusterClient, topic: str, code: int) -> BrokerRefused:
    return BrokerRefused(code, f"cluster {client.cluster.alias}: deleting from topic {topic}{_needed('DELETE', code)}")


def _needed(operation: str, code: int) -> str:
    return f" (this needs {operation} on the topic)" if code == _NOT_ALLOWED else ""
