"""Reads the end of a remote partition and the same stretch of its source, so that both can be compared (take-over).

The comparison is replication/tail.py. Nobody may write to the remote partition meanwhile: a MirrorMaker 2 that lives is
refused before, and a transaction that is open there is waited for.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from heliograph.errors import BrokerRefused, LaneParked
from heliograph.kafka.client import EARLIEST, LATEST, ClusterClient
from heliograph.kafka.ranges import Judge, Log, read_range
from heliograph.kafka.refusals import topic_refused
from heliograph.model.lanes import Lane
from heliograph.replication.tail import LookFurther, SourceRecord, Stopped, Tail, Unlike, find_end, mark
from heliograph.wire.error_codes import describe
from heliograph.wire.records import read_records

FIRST_LOOK = 4_096
_GROWTH = 8
_MOST = 1_000_000
_BEFORE = 256
"""Source records before the known offset: with them the tail is recognised also where nothing was written since."""


@dataclass(frozen=True)
class _Side:
    log: Log
    start: int
    end: int
    stable: int


@dataclass(frozen=True)
class Compared:
    """What the comparison found, with the spans it was made in."""

    found: Stopped | Unlike | None
    """None: the remote partition is empty, there is nothing to compare."""
    source_start: int
    source_end: int
    target_end: int


class TailReader:
    """Compares lanes of one source and target cluster."""

    def __init__(self, source: ClusterClient, target: ClusterClient, home: Judge | None = None) -> None:
        self._source = source
        self._home = home
        self._target = target
        self._far = asyncio.Lock()

    async def compare(self, lane: Lane, copied: int | None) -> Compared:
        """Where the other mirror stopped; `copied` is the source offset up to which all is known to be copied."""
        target = await _side(self._target, lane.remote_topic, lane.target_topic_id, lane.id.partition)
        source = await _side(self._source, lane.id.topic, lane.source_topic_id, lane.id.partition)
        if target.stable < target.end:
            raise LaneParked(
                f"a transaction is open on {lane.remote_topic}-{lane.id.partition} since offset {target.stable}: the "
                "take-over waits until it has ended"
            )
        found = await self._find(lane, source, target, copied) if target.end > target.start else None
        return Compared(found, source.start, source.end, target.end)

    async def _find(self, lane: Lane, source: _Side, target: _Side, copied: int | None) -> Stopped | Unlike:
        found = await self._look(lane, source, target, copied, FIRST_LOOK)
        look = FIRST_LOOK
        while isinstance(found, LookFurther):
            if look == _MOST:
                raise LaneParked(
                    f"the last {_MOST:,} records of {lane.remote_topic}-{lane.id.partition} do not reach back to source "
                    f"offset {copied}, the progress that MirrorMaker 2 stored: start it once more and stop it with "
                    "SIGTERM, so that it stores its progress"
                )
            look = min(look * _GROWTH, _MOST)
            async with self._far:  # one lane at a time: a million records take some hundred megabytes
                found = await self._look(lane, source, target, copied, look)
        return found

    async def _look(
        self, lane: Lane, source: _Side, target: _Side, copied: int | None, look: int
    ) -> Stopped | Unlike | LookFurther:
        begin = max(target.start, target.end - look)
        records = await self._tail(lane, target, begin)
        tail = Tail([found for _, found in records], begin == target.start)
        first = await self._first(lane, source, copied, min((time for time, _ in records), default=0))
        return await self._against(lane, source, first, tail, copied)

    async def _against(
        self, lane: Lane, source: _Side, first: int, tail: Tail, copied: int | None
    ) -> Stopped | Unlike | LookFurther:
        """The tail beside the source from `first`; more of the source is read while the tail fills all of it."""
        wanted = len(tail.marks) + _BEFORE
        while True:
            records = await self._stretch(lane, source, first, wanted)
            found = find_end(tail, records, copied, lane.compacted or lane.target_compacted)
            if not isinstance(found, Stopped) or len(records) < wanted or found.position <= records[-1].offset:
                return found
            wanted *= 2

    async def _tail(self, lane: Lane, target: _Side, begin: int) -> list[tuple[int, bytes]]:
        """Timestamps and marks of the remote records from `begin` on; aborted ones were never there."""
        found = []
        async for seen in read_range(self._target, target.log, begin, target.end, committed=True):
            if seen.dropped is None:
                for record in read_records(seen.data, seen.header):
                    if record.offset >= begin:
                        timestamp = None if lane.target_append_time else record.timestamp
                        found.append((record.timestamp, mark(timestamp, record.key, record.value)))
        return found

    async def _first(self, lane: Lane, source: _Side, copied: int | None, oldest_ms: int) -> int:
        """Where the stretch of the source begins: before the known offset, or at the tail's oldest moment."""
        if copied is not None:
            return max(source.start, copied - _BEFORE + 1)
        if lane.target_append_time:
            return source.start
        name = (lane.id.topic, lane.id.partition)
        offset = (await self._source.offsets(source.log.node, [name], max(0, oldest_ms))).get(name, -1)
        return max(source.start, offset - _BEFORE) if offset >= 0 else source.end

    async def _stretch(self, lane: Lane, source: _Side, first: int, wanted: int) -> list[SourceRecord]:
        """Records of the source, open and aborted transactions too: MirrorMaker 2 copies them by default."""
        found: list[SourceRecord] = []
        async for seen in read_range(self._source, source.log, first, source.end, committed=False, home=self._home):
            if seen.dropped is not None:
                continue
            header = seen.header
            for record in read_records(seen.data, header):
                if record.offset >= first:
                    timestamp = None if lane.target_append_time else record.timestamp
                    known = mark(timestamp, record.key, record.value)
                    found.append(SourceRecord(record.offset, known, header.leader_epoch, header.is_transactional))
            if len(found) >= wanted:
                break
        return found


async def _side(client: ClusterClient, topic: str, topic_id: str, partition: int) -> _Side:
    where = f"cluster {client.cluster.alias}, {topic}-{partition}"
    view = (await client.metadata([topic]))[topic]
    leader = view.leaders.get(partition)
    if view.error or leader is None or leader.node < 0:
        what = f"{where}: {describe(view.error or 5)}"
        raise topic_refused(view.error or 5, what, "READ", topic, client.cluster.alias)
    if view.topic_id != topic_id:
        raise LaneParked(f"{where}: the topic was deleted and created again")
    name = (topic, partition)
    start = await client.offsets(leader.node, [name], EARLIEST)
    end = await client.offsets(leader.node, [name], LATEST)
    stable = await client.offsets(leader.node, [name], LATEST, committed=True)
    if name not in start or name not in end or name not in stable:
        raise BrokerRefused(6, f"{where}: {describe(6)}")
    return _Side(Log(topic, topic_id, partition, leader.node, leader.epoch), start[name], end[name], stable[name])
