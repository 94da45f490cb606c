"""Attach (P2): ask the target what it has, the ledger what is known, the source what lies between; prove it; begin.

The decisions are in replication/attach.py. This file only asks, and turns what cannot go on into LaneParked. Whoever awaits an
attach may cancel it at any time: it writes nothing but what it has read so far (target_scan.py).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from heliograph.errors import LaneParked
from heliograph.kafka.attach_findings import (
    Disproved,
    LostOnTarget,
    NewerGeneration,
    NotCountable,
    Overtaken,
    PositionLost,
    SourceCutBack,
)
from heliograph.kafka.client import ClusterClient, Leader, ProducerState
from heliograph.kafka.coalesce import Coalescer
from heliograph.kafka.common_end import common_end
from heliograph.kafka.homecoming import Home
from heliograph.kafka.lane import Start
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.ranges import Diverged, Judge, Log, Seen
from heliograph.kafka.refusals import topic_refused
from heliograph.kafka.sides import Side, Sides
from heliograph.kafka.source_walk import RUN, SourceWalk, Wanted, cleaned
from heliograph.kafka.target_scan import Found, TargetScan, among_others
from heliograph.kafka.walked import Position, alike, moved, our_batch
from heliograph.model.lanes import Lane, LedgerEntry
from heliograph.replication.attach import (
    Ahead,
    AskLedger,
    Behind,
    Lost,
    NextSequence,
    Park,
    ReadTail,
    Remembered,
    TargetTail,
    contradiction,
    distance,
    expected_offset,
    is_guarded,
    is_overtaken,
    lost_before,
    lost_records,
    next_by_headers,
    next_in_sequence,
    tail_begins,
)
from heliograph.wire.rebuild import record_at
from heliograph.wire.record_batch import BatchHeader

__all__ = ["Attacher", "LostOnTarget", "NewerGeneration", "NotCountable", "Overtaken", "PositionLost", "SourceCutBack"]


class Attacher:
    """Attaches lanes of one source and target cluster; many at a time share their questions."""

    def __init__(
        self,
        source: ClusterClient,
        target: ClusterClient,
        expiration_ms: int,
        home_ledger: str = "",
        ledger: Ledger | None = None,
    ) -> None:
        """`home_ledger` is the topic id of the source's ledger, which tells what came home; empty: whichever is there.
        `ledger` is the target's, where it is noted how far a remote partition was read; None: nowhere."""
        self._source = source
        self._home_ledger = home_ledger
        self._homes: dict[str, Judge] = {}
        self._target = target
        self._expiration_ms = expiration_ms
        self._sources, self._targets = Sides(source, on_source=True), Sides(target, on_source=False)
        self._producers: dict[int, Coalescer[tuple[str, int], object]] = {}
        self._scan, self._walk = TargetScan(target, ledger), SourceWalk(source)

    async def attach(self, lane: Lane, entry: LedgerEntry, read_committed: bool, now_ms: int) -> Start:
        """Where the lane goes on, proven; raises LaneParked, NewerGeneration, BrokerRefused or ConnectionLost."""
        (target, leader), (source, source_leader) = await self._sides(lane)
        remembered = await self.remembered(target.log, entry)
        tail = TargetTail(target.log_start, target.end, remembered)
        # On a compacted source nothing is noted: a zombie's entry could be believed, and repeat records (P8).
        look = _Look(lane, source, target, tail, 0 if lane.compacted else now_ms)
        found, there = await self._next(look, entry)
        apart = distance(entry, found.sequence)
        if (lost := contradiction(entry, tail, apart)) is not None:
            raise LostOnTarget(lost)
        if isinstance(apart, Behind) and lane.compacted:
            raise LostOnTarget(lost_records(apart.records))
        if apart.records and lane.compacted:
            raise NotCountable(f"{apart.records} records lie between the ledger and the target of a compacted source")
        if apart.records and there is None:
            there = await self._scan.last(target, tail_begins(entry, tail), entry, look.note_ms)
        rule = Position(
            entry.source_next,
            entry.source_epoch,
            committed=read_committed,
            target=entry.target_next,
            home=self._home(entry.rule.without),
        )
        try:
            position = await self._place(look, entry, found, rule, there)
        except Disproved:
            await self._blame_the_source(look, entry, rule, apart, there)
            raise
        ahead = apart.records if isinstance(apart, Ahead) else 0
        if isinstance(apart, Behind):
            entry = moved(entry, position, found.sequence, entry.target_next - apart.records)
        expected = expected_offset(entry, tail, ahead)
        timestamp = remembered.last_timestamp if remembered is not None else -1
        return Start(
            entry=among_others(entry, position, found.sequence, there)
            if expected is None
            else moved(entry, position, found.sequence, expected),
            source_next=position.offset,
            source_epoch=position.epoch,
            sequence=found.sequence,
            target_next=expected,
            source_node=source_leader.node,
            source_leader_epoch=source_leader.epoch,
            target_node=leader.node,
            guarded=is_guarded(timestamp, now_ms, self._expiration_ms),
            last_timestamp=timestamp,
            went_back=apart.records if isinstance(apart, Behind) else 0,
        )

    async def take_over(self, lane: Lane, entry: LedgerEntry, now_ms: int) -> Start:
        """Where a lane of a compacted source starts in a generation that is yet to be opened (P8): nothing is counted.

        What the last attempt wrote after `entry` is copied again; what the target lost of it is found out.
        """
        (target, leader), (_, source_leader) = await self._sides(lane)
        remembered = await self.remembered(target.log, entry)
        tail = TargetTail(target.log_start, target.end, remembered)
        if (lost := lost_before(entry, tail)) is not None:
            raise LostOnTarget(lost)
        timestamp = remembered.last_timestamp if remembered is not None else -1
        return Start(
            entry=entry,
            source_next=entry.source_next,
            source_epoch=entry.source_epoch,
            sequence=0,
            target_next=expected_offset(entry, tail, 0),
            source_node=source_leader.node,
            source_leader_epoch=source_leader.epoch,
            target_node=leader.node,
            guarded=is_guarded(timestamp, now_ms, self._expiration_ms),
            last_timestamp=timestamp,
        )

    async def foreign(self, lane: Lane, entry: LedgerEntry) -> BatchHeader | None:
        """The first batch after the entry's position that this flow did not write, in any of its generations."""
        return await self._scan.first_of_others(await self.side(lane), entry)

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

    async def _next(self, look: _Look, entry: LedgerEntry) -> tuple[NextSequence, Found | None]:
        """The next number, and where the log was read for it what was found there."""
        found = next_in_sequence(entry, look.tail)
        there: Found | None = None
        if isinstance(found, ReadTail):
            there = await self._scan.last(look.target, found.offset, entry, look.note_ms)
            ours = [] if there.last is None else [our_batch(there.last)]
            found = next_by_headers(entry, look.tail, ours, there.known_to)
        match found:
            case NextSequence():
                return found, there
            case Lost():
                raise LostOnTarget(found)
            case Park(reason):
                raise LaneParked(reason)
            case AskLedger(epoch):
                raise NewerGeneration(f"the target knows epoch {epoch}, this attempt has an older one")
        raise AssertionError(found)

    async def last_of_ours(self, target: Side, entry: LedgerEntry) -> Seen | None:
        """The last batch of the entry's generation, from its position on."""
        begin = max(target.log_start, entry.target_next)
        return (await self._scan.last(target, begin, entry)).last

    def _home(self, flow: str) -> Judge | None:
        if flow and flow not in self._homes:
            self._homes[flow] = Home(Ledger(self._source), flow, self._home_ledger)
        return self._homes.get(flow)

    # -- walking the source -----------------------------------------------------------------------------------------

    async def _place(
        self, look: _Look, entry: LedgerEntry, found: NextSequence, rule: Position, there: Found | None
    ) -> Position:
        """Where on the source the next number is, proven."""
        position, last = rule, there.last if there is not None else None
        match distance(entry, found.sequence):
            case Behind(records):
                position = await self._walk_back(look, entry, records, rule)
                entry = moved(entry, position, found.sequence, entry.target_next - records)
            case Ahead(records) if records:
                position = await self._forward(look, records, rule, last)
        if position.last is None and not found.had_state and entry.sequence_next:
            position = await self._walk.before(look.source, position)
        if position.last is not None:
            await self._prove(look, entry, position, found.sequence, last)
        return position

    async def _blame_the_source(
        self, look: _Look, entry: LedgerEntry, rule: Position, apart: Ahead | Behind, there: Found | None
    ) -> None:
        """P10.2: a source that was cut back, and has grown again or not, disproves every position: SourceCutBack tells where it
        and the copy part. Returns where that is not what happened."""
        position = entry.source_next + (apart.records if isinstance(apart, Ahead) else 0)
        last = there.last if there is not None else None
        ends = max(entry.target_next, -1 if last is None else last.header.next_offset)
        try:
            await self._walk.check(look.source, entry.source_next, entry.source_epoch)
        except Diverged as cut:
            clients, nodes = (self._source, self._target), (look.source.log.node, look.target.log.node)
            shown = cut.epoch == entry.source_epoch or await common_end(look.lane, entry, clients, nodes, cut.ends_at)
            agrees_to = cut.ends_at if shown else look.source.log_start
            raise SourceCutBack(position, cut.ends_at, agrees_to, cut.epoch if shown else -1, ends) from cut
        parting = await self._walk.parts_at(look.source, rule, self._scan.copies(look.target, entry))
        if parting is not None:
            raise SourceCutBack(position, parting.offset, parting.offset, parting.epoch, ends)

    async def _forward(self, look: _Look, records: int, begin: Position, last: Seen | None) -> Position:
        """P2.5: over what the target has beyond the ledger's entry."""
        if look.source.log_start <= begin.offset:
            return await self._count(look, begin, records)
        run = [] if last is None else await self._scan.run_before(look.target, last, RUN)
        place = await self._walk.by_content(look.source, begin, Wanted(run, records))
        # What lies between is gone from the source: since where offsets differ cannot be told better.
        apart = begin.offset if place.offset != look.target.end else -1
        return replace(place, target=look.target.end, gap_at=apart)

    async def _walk_back(self, look: _Look, entry: LedgerEntry, lost: int, at: Position) -> Position:
        """P2.4: the target went back. Count again from the last anchor that it still has."""
        position = entry.target_next - lost
        anchors = [(entry.source_start, entry.target_start), *entry.anchors]
        known = [anchor for anchor in anchors if anchor[1] <= position]
        if not known or look.tail.end < position:
            raise LostOnTarget(Lost(f"it lost {lost} records that it had acknowledged, before the first known anchor"))
        source_offset, target_offset = known[-1]
        begin = replace(at, offset=source_offset, epoch=-1, last=None, target=target_offset)
        if position == target_offset:
            return begin
        return await self._count(look, begin, position - target_offset)

    async def _count(self, look: _Look, begin: Position, records: int) -> Position:
        lane = look.lane

        async def look_again() -> Side:
            return (await self._sources.get((lane.id.topic, lane.id.partition), lane.source_topic_id))[0]

        return await self._walk.by_count(look.source, begin, records, look_again)

    async def _prove(
        self, look: _Look, entry: LedgerEntry, position: Position, sequence: int, ours: Seen | None
    ) -> None:
        """P2.6: the last record of ours on the target is the record before our position."""
        if ours is None and entry.target_next > look.target.log_start:
            ours = await self._scan.batch_before(look.target.log, entry)
        assert position.last is not None  # noqa: S101  the caller walked
        if ours is None or not ours.header.count:
            return  # deleted from the target since: nothing to compare with
        if is_overtaken(sequence, our_batch(ours)):
            raise Overtaken("another attempt carries this lane and is ahead")
        if our_batch(ours).next_sequence != sequence:
            raise Overtaken("the target's leader has records of this lane that are not replicated yet")
        at, before = ours.header.next_offset - 1, position.before()
        if not alike(record_at(position.last.data, before), record_at(ours.data, at), ours.header.is_append_time):
            raise Disproved(
                f"attach disproved: the target's last record of this lane (offset {at}) is not the source's record "
                f"{before}{cleaned(position)}"
            )


@dataclass(frozen=True)
class _Look:
    """Both ends of a lane as an attach found them."""

    lane: Lane
    source: Side
    target: Side
    tail: TargetTail
    note_ms: int
    """The time under which it is noted how far the target was read; 0: it is not."""
