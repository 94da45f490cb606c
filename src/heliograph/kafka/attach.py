"""Attach (P2): ask the target what it has, the ledger what is known, the source what lies between; prove it; begin.

The decisions are in replication/attach.py. This file only asks, and turns what cannot go on into LaneParked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from heliograph.errors import LaneParked
from heliograph.kafka.client import ClusterClient, Leader, ProducerState
from heliograph.kafka.coalesce import Coalescer
from heliograph.kafka.homecoming import Home
from heliograph.kafka.lane import Start
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.ranges import Judge, Log, Seen, fetch_once, read_range
from heliograph.kafka.refusals import topic_refused
from heliograph.kafka.sides import Side, Sides
from heliograph.kafka.walked import Position, comparable, countable, is_ours, moved, offset_of, place_of
from heliograph.model.lanes import Lane, LedgerEntry
from heliograph.replication.alignment import differs_at
from heliograph.replication.attach import (
    Ahead,
    AskLedger,
    Behind,
    Lost,
    NextSequence,
    OurBatch,
    Park,
    ReadTail,
    Remembered,
    TargetTail,
    contradiction,
    distance,
    expected_offset,
    is_guarded,
    is_overtaken,
    next_by_headers,
    next_in_sequence,
)
from heliograph.wire.rebuild import record_at
from heliograph.wire.record_batch import BatchHeader, walk


class NotCountable(LaneParked):
    """The target has more of ours than the entry says, and this source may not be counted (P8.1)."""


class PositionLost(LaneParked):
    """The source lost what lies around our position (retention): it goes on where the source begins, and says so (P9)."""

    def __init__(self, reason: str, begins: int) -> None:
        super().__init__(reason)
        self.begins = begins


class LostOnTarget(LaneParked):
    """The target has less than it acknowledged, and where to go on cannot be counted (P9)."""

    def __init__(self, lost: Lost) -> None:
        super().__init__(lost.reason)
        self.lost = lost


class NewerGeneration(LaneParked):
    """The target knows a later epoch than our entry: the ledger must be read again."""


class Overtaken(LaneParked):
    """Another attempt wrote while this one looked: look again."""


class Attacher:
    """Attaches lanes of one source and target cluster; many at a time share their questions."""

    def __init__(self, source: ClusterClient, target: ClusterClient, expiration_ms: int, home_ledger: str = "") -> None:
        """`home_ledger` is the topic id of the source's ledger, which tells what came home; empty: whichever is there."""
        self._source = source
        self._home_ledger = home_ledger
        self._homes: dict[str, Judge] = {}
        self._target = target
        self._expiration_ms = expiration_ms
        self._sources, self._targets = Sides(source, on_source=True), Sides(target, on_source=False)
        self._producers: dict[int, Coalescer[tuple[str, int], object]] = {}

    async def attach(self, lane: Lane, entry: LedgerEntry, read_committed: bool, now_ms: int) -> Start:
        """Where the lane goes on, proven; raises LaneParked, NewerGeneration, BrokerRefused or ConnectionLost."""
        (target, leader), (source, source_leader) = await self._sides(lane)
        remembered = await self.remembered(target.log, entry)
        tail = TargetTail(target.log_start, target.end, remembered)
        found = await self._next(target, tail, entry)
        position = Position(
            entry.source_next,
            entry.source_epoch,
            None,
            read_committed,
            entry.target_next,
            home=self._home(entry.rule.without),
        )
        apart = distance(entry, found.sequence)
        if (lost := contradiction(entry, tail, apart)) is not None:
            raise LostOnTarget(lost)
        match apart:
            case Ahead(records) | Behind(records) if records and lane.compacted:
                raise NotCountable(f"{records} records lie between the ledger and the target of a compacted source")
            case Ahead(records) if records and source.log_start > entry.source_next:
                position = await self._search(lane, source, target, entry, position)
            case Ahead(records):
                position = await self._walk(source, position, records) if records else position
            case Behind(records):
                position = await self._walk_back(source, entry, tail, records, position)
                entry = moved(entry, position, found.sequence, entry.target_next - records)
                records = 0
        if not found.had_state and not records and entry.sequence_next:
            position = await self._before(source, position)
        if position.last is not None:
            await self._prove(lane, target, entry, position, found.sequence)
        timestamp = remembered.last_timestamp if remembered is not None else -1
        expected = expected_offset(entry, tail, records)
        return Start(
            entry=_unsure(entry) if expected is None else moved(entry, position, found.sequence, expected),
            source_next=position.offset,
            source_epoch=position.epoch,
            sequence=found.sequence,
            target_next=expected,
            source_node=source_leader.node,
            source_leader_epoch=source_leader.epoch,
            target_node=leader.node,
            guarded=remembered is not None
            and is_guarded(timestamp, now_ms, self._expiration_ms, lane.target_append_time),
            went_back=apart.records if isinstance(apart, Behind) else 0,
        )

    async def foreign(self, lane: Lane, entry: LedgerEntry) -> BatchHeader | None:
        """The first batch after the entry's position that this flow did not write, in any of its generations."""
        target = await self.side(lane)
        begin = max(target.log_start, entry.target_next)
        async for seen in read_range(self._target, target.log, begin, target.end, committed=False):
            if seen.header.producer_id != entry.identity.producer_id:
                return seen.header
        return None

    # -- asking -----------------------------------------------------------------------------------------------------

    async def side(self, lane: Lane) -> Side:
        """The lane's end on the target."""
        side, _ = await self._targets.get((lane.remote_topic, lane.id.partition), lane.target_topic_id)
        return side

    async def _sides(self, lane: Lane) -> tuple[tuple[Side, Leader], tuple[Side, Leader]]:
        there, here = (lane.remote_topic, lane.id.partition), (lane.id.topic, lane.id.partition)
        on_target, on_source = await asyncio.gather(self._targets.ask(there), self._sources.ask(here))
        return (
            self._targets.judge(on_target, there, lane.target_topic_id),
            self._sources.judge(on_source, here, lane.source_topic_id),
        )

    async def remembered(self, log: Log, entry: LedgerEntry) -> Remembered | None:
        if log.node not in self._producers:

            async def ask(names: list[tuple[str, int]]) -> dict[tuple[str, int], object]:
                return dict(await self._target.producers(log.node, names))

            self._producers[log.node] = Coalescer(ask)
        found = await self._producers[log.node].get((log.topic, log.partition))
        if not isinstance(found, dict):
            code = found if isinstance(found, int) else 6
            where = f"cluster {self._target.cluster.alias}, {log.topic}-{log.partition}"
            raise topic_refused(code, where, "READ", log.topic, self._target.cluster.alias)
        state = found.get(entry.identity.producer_id)
        if not isinstance(state, ProducerState):
            return None
        return Remembered(state.epoch, state.last_sequence, state.last_timestamp)

    async def _next(self, target: Side, tail: TargetTail, entry: LedgerEntry) -> NextSequence:
        found = next_in_sequence(entry, tail)
        if isinstance(found, ReadTail):
            ours = [
                OurBatch(seen.header.base_offset, seen.header.base_sequence, seen.header.last_offset_delta)
                async for seen in read_range(self._target, target.log, found.offset, target.end, committed=False)
                if is_ours(seen, entry)
            ]
            found = next_by_headers(entry, tail, ours)
        match found:
            case NextSequence():
                return found
            case Lost():
                raise LostOnTarget(found)
            case Park(reason):
                raise LaneParked(reason)
            case AskLedger(epoch):
                raise NewerGeneration(f"the target knows epoch {epoch}, this attempt has an older one")
        raise AssertionError(found)

    def _home(self, flow: str) -> Judge | None:
        if flow and flow not in self._homes:
            self._homes[flow] = Home(Ledger(self._source), flow, self._home_ledger)
        return self._homes.get(flow)

    def _read(self, source: Side, first: int, after: int, rule: Position) -> AsyncIterator[Seen]:
        return read_range(self._source, source.log, first, after, committed=rule.committed, home=rule.home)

    # -- walking the source -----------------------------------------------------------------------------------------

    async def _walk(self, source: Side, begin: Position, records: int) -> Position:
        """P2.5: `records` records from `begin`, by the lane's rule; what the target has beyond the ledger's entry."""
        if source.log_start > begin.offset:
            raise PositionLost(
                f"the source begins at {source.log_start}, after the position {begin.offset} to count from",
                source.log_start,
            )
        left = records
        offset, epoch, last, gap_at = begin.offset, begin.epoch, None, -1
        async for seen in self._read(source, offset, source.end, begin):
            if seen.dropped is not None:
                offset = seen.header.next_offset
                continue
            skipped, count = countable(seen, offset)
            epoch, last = seen.header.leader_epoch, seen
            gap_at = differs_at(gap_at, (seen.header.base_offset + skipped, begin.target + records - left), -1)
            if count > left:
                offset = offset_of(seen, skipped + left)
                left = 0
            else:
                offset = seen.header.next_offset
                left -= count
            if left == 0:
                return replace(
                    begin, offset=offset, epoch=epoch, last=last, target=begin.target + records, gap_at=gap_at
                )
        raise LaneParked(f"the target has {left} records more than the source below {source.end}")

    async def _search(self, lane: Lane, source: Side, target: Side, entry: LedgerEntry, begin: Position) -> Position:
        """P2.5 where the source no longer has what would be counted: look for the target's last record of ours in it."""
        ours = await self.last_of_ours(target, entry)
        if ours is not None:
            last = ours.header.base_offset + ours.header.last_offset_delta
            wanted = comparable(lane, record_at(ours.data, last))
            async for seen in self._read(source, source.log_start, source.end, begin):
                if seen.dropped is None and (place := place_of(lane, seen, wanted)) is not None:
                    # What lies between is gone from the source: since where offsets differ cannot be told better.
                    apart = begin.offset if place + 1 != target.end else -1
                    epoch = seen.header.leader_epoch
                    return replace(begin, offset=place + 1, epoch=epoch, last=seen, target=target.end, gap_at=apart)
        raise PositionLost(
            f"the source begins at {source.log_start}, after the ledger's position {entry.source_next}",
            source.log_start,
        )

    async def _walk_back(self, source: Side, entry: LedgerEntry, tail: TargetTail, lost: int, at: Position) -> Position:
        """P2.4: the target went back. Count again from the last anchor that it still has."""
        position = entry.target_next - lost
        anchors = [(entry.source_start, entry.target_start), *entry.anchors]
        known = [anchor for anchor in anchors if anchor[1] <= position]
        if not known or tail.end < position:
            raise LostOnTarget(Lost(f"it lost {lost} records that it had acknowledged, before the first known anchor"))
        source_offset, target_offset = known[-1]
        begin = replace(at, offset=source_offset, epoch=-1, last=None, target=target_offset)
        if position == target_offset:
            return begin
        return await self._walk(source, begin, position - target_offset)

    async def _before(self, source: Side, position: Position) -> Position:
        """The position with the batch before it, where that is a batch of records: what the proof compares."""
        if position.offset <= source.log_start:
            return position
        before = position.offset - 1
        async for seen in self._read(source, before, position.offset, position):
            if seen.dropped is None and seen.header.is_dense:
                return replace(position, last=seen)
        return position

    async def _prove(self, lane: Lane, target: Side, entry: LedgerEntry, position: Position, sequence: int) -> None:
        """P2.6: the last record of ours on the target is the record before our position."""
        ours = await self.last_of_ours(target, entry)
        assert position.last is not None  # noqa: S101  the caller walked
        if ours is None:
            return  # deleted from the target since: nothing to compare with
        header = ours.header
        if is_overtaken(sequence, OurBatch(header.base_offset, header.base_sequence, header.last_offset_delta)):
            raise Overtaken("another attempt carries this lane and is ahead")
        wanted = record_at(position.last.data, position.before())
        there = record_at(ours.data, header.base_offset + header.last_offset_delta)
        if comparable(lane, wanted) != comparable(lane, there):
            raise LaneParked(
                f"attach disproved: the target's last record of this lane (offset "
                f"{header.base_offset + header.last_offset_delta}) is not the source's record {position.before()}"
            )

    async def last_of_ours(self, target: Side, entry: LedgerEntry) -> Seen | None:
        if target.end <= target.log_start:
            return None
        buffer, fetched = await fetch_once(self._target, target.log, target.end - 1, committed=False)
        last: Seen | None = None
        view = memoryview(buffer)
        for at, header in walk(buffer, fetched.start, fetched.end):
            seen = Seen(header, view[at : at + header.size], None)
            last = seen if is_ours(seen, entry) and header.count else last
        if last is not None:
            return last
        begin = max(target.log_start, entry.target_next)
        async for seen in read_range(self._target, target.log, begin, target.end, committed=False):
            last = seen if is_ours(seen, entry) and seen.header.count else last
        return last


def _unsure(entry: LedgerEntry) -> LedgerEntry:
    """Somebody else's records lie behind the entry's position: from there on offsets may differ, and sooner or later they do."""
    return replace(entry, differs_at=differs_at(entry.differs_at, (0, 0), entry.source_next))
