"""Attach over two logs in memory: what it reads, where it continues, and what it says where it cannot."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from heliograph.errors import LaneParked
from heliograph.kafka.attach import Attacher, LostOnTarget, Overtaken, SourceCutBack
from heliograph.kafka.client import Leader
from heliograph.kafka.lane import Start
from heliograph.kafka.sides import Side
from heliograph.model.lanes import LedgerEntry, Scanned
from heliograph.replication.attach import Remembered
from tests.unit.kafka.fetched_log import FetchedLog, fetches
from tests.unit.kafka.lanes import DAY_MS, IDENTITY, NOW, entry, lane

__all__ = ["fetches"]

pytestmark = pytest.mark.usefixtures("fetches")
OURS = (IDENTITY.producer_id, IDENTITY.producer_epoch)
KNOWN = replace(entry(source_next=40), source_start=0)
"""Forty records were copied, and each has the offset of its source."""


class Pair:
    """A source and its copy; `last` is the last sequence that the target's leader remembers, None: it forgot the lane."""

    def __init__(self, last: int | None = None) -> None:
        self.source, self.target = FetchedLog(), FetchedLog()
        self.last = last
        self.leader_epoch = 4
        self._attacher = Attacher(self.source, self.target, DAY_MS)  # type: ignore[arg-type]  # stand in
        self._attacher._sides = self._sides  # type: ignore[method-assign]  # no cluster to ask
        self._attacher.remembered = self._remembered  # type: ignore[method-assign]  # no cluster to ask
        self._attacher._sources.get = self._source_side  # type: ignore[method-assign]  # no cluster to ask
        for _ in range(4):
            self.copy(10)

    def copy(self, count: int, **shape: Any) -> None:
        """Records of the source that the lane copied; the same values lie at the same places in both."""
        values = [b"%d" % (self.source.end + at) for at in range(count)]
        sequence = self.source.end
        self.source.add(values=values)
        self.target.add(values=values, since=sequence, producer=(*OURS, sequence), **shape)

    def others(self, count: int = 20) -> None:
        self.target.add(count)

    async def _sides(self, _: object) -> tuple[tuple[Side, Leader], tuple[Side, Leader]]:
        return (self.target.side(), Leader(2, 1)), (self._source(), Leader(1, self.leader_epoch))

    def _source(self) -> Side:
        side = self.source.side()
        return replace(side, log=replace(side.log, leader_epoch=self.leader_epoch))

    async def _source_side(self, *_: object) -> tuple[Side, Leader]:
        return self._source(), Leader(1, self.leader_epoch)

    async def _remembered(self, *_: object) -> Remembered | None:
        return None if self.last is None else Remembered(IDENTITY.producer_epoch, self.last, NOW)

    def attach(self, known: LedgerEntry = KNOWN) -> Start:
        self.source.fetched.clear()
        self.target.fetched.clear()
        return asyncio.run(self._attacher.attach(lane(), known, False, NOW))


def place(start: Start) -> tuple[int, int, int | None]:
    return start.source_next, start.sequence, start.target_next


def test_what_others_wrote_is_read_by_one_attach_only() -> None:
    """H4: each began at 40, for ever."""
    pair, known = Pair(), KNOWN
    reads = []
    for _ in range(3):
        pair.others()
        start = pair.attach(known)
        assert place(start) == (40, 40, None)
        known = start.entry
        reads.append(pair.target.fetched[2 if reads else 1])
    assert reads == [40, 60, 80], "each began where the one before it ended"
    assert (known.source_next, known.target_next, known.scanned) == (40, 40, Scanned(100, 4))


def test_records_of_ours_among_others_move_the_entry_to_the_last_of_them() -> None:
    pair = Pair()
    pair.others()
    pair.copy(5, leader_epoch=6)
    pair.others()
    start = pair.attach()
    assert place(start) == (45, 45, None)
    moved = start.entry
    assert (moved.source_next, moved.target_next, moved.sequence_next, moved.differs_at) == (45, 65, 45, 40)
    assert moved.scanned == Scanned(85, 4)
    pair.others()
    again = pair.attach(moved)
    assert place(again) == (45, 45, None)
    assert min(pair.target.fetched) == 64, "the record before the position was compared, the rest is known"


def test_a_target_that_remembers_is_asked_for_the_last_record_only_where_some_were_copied_since() -> None:
    pair = Pair(last=39)
    pair.others()
    assert place(pair.attach()) == (40, 40, None)
    assert pair.target.fetched == []
    pair.copy(5)
    pair.last = 44
    start = pair.attach()
    assert place(start) == (45, 45, None)
    assert pair.target.fetched == [64], "our record is the last one"
    assert (start.entry.target_next, start.entry.scanned) == (65, None)


def test_where_nobody_else_writes_the_next_offset_is_known() -> None:
    pair = Pair()
    pair.copy(5)
    start = pair.attach()
    assert place(start) == (45, 45, 45)
    assert (start.entry.source_next, start.entry.target_next, start.entry.last) == (45, 45, (44, 44))


def test_another_attempt_that_is_ahead_alarms_nobody() -> None:
    pair = Pair(last=41)
    pair.copy(5)
    with pytest.raises(Overtaken, match="is ahead"):
        pair.attach()


def test_records_that_are_not_replicated_yet_are_waited_for() -> None:
    """The leader remembers 49, of which a reader sees 44: comparing those two would disprove everything."""
    pair = Pair(last=49)
    pair.copy(5)
    pair.source.add(5)
    with pytest.raises(Overtaken, match="not replicated yet"):
        pair.attach()


def test_timestamps_are_compared_by_the_batchs_own_bit() -> None:
    """L6: the remote topic was LogAppendTime when it was written, and is CreateTime now."""
    pair = Pair()
    pair.copy(5, attributes=0x08, max_timestamp=NOW + 999)
    assert place(pair.attach()) == (45, 45, 45)


def test_a_record_that_is_not_the_sources_disproves() -> None:
    pair = Pair()
    pair.source.add(values=[b"a"])
    pair.target.add(values=[b"b"], producer=(*OURS, 40))
    with pytest.raises(LaneParked, match=r"attach disproved: .* \(offset 40\) is not the source's record 40$"):
        pair.attach()


# -- a source that was cut back -------------------------------------------------------------------------------------------


def test_a_source_cut_back_behind_the_ledgers_position_parts_where_the_other_leader_began() -> None:
    """L7: the ledger knew 40, five more were copied, and the source lost three of those."""
    pair = Pair()
    pair.copy(2)
    pair.copy(3)
    pair.source.cut_back(42)
    pair.source.add(9, values=[b"other %d" % n for n in range(9)], leader_epoch=7)
    with pytest.raises(SourceCutBack) as caught:
        pair.attach(replace(KNOWN, source_epoch=4))
    cut = caught.value
    assert (cut.position, cut.ends_at, cut.agrees_to, cut.epoch, cut.target_next) == (45, 42, 42, 4, 45)


def test_a_source_cut_back_before_the_ledgers_position_says_where() -> None:
    pair = Pair()
    pair.source.cut_back(30)
    pair.source.add(values=[b"other %d" % n for n in range(20)], leader_epoch=7)
    with pytest.raises(SourceCutBack) as caught:
        pair.attach(replace(KNOWN, source_epoch=4))
    assert (caught.value.position, caught.value.ends_at, caught.value.agrees_to, caught.value.epoch) == (40, 30, 30, 4)


def test_a_source_that_is_shorter_than_its_copy_was_cut_back() -> None:
    pair = Pair()
    pair.copy(5)
    pair.source.cut_back(40)
    pair.leader_epoch = 7
    with pytest.raises(SourceCutBack, match="ends what was copied at 40, the copy goes up to 45"):
        pair.attach(replace(KNOWN, source_epoch=4))


def test_a_target_that_went_back_is_written_again_from_there() -> None:
    pair = Pair()
    pair.target.cut_back(30)
    start = pair.attach(replace(KNOWN, scanned=Scanned(90, 4)))
    assert (place(start), start.went_back) == ((30, 30, 30), 10)
    assert start.entry.scanned is None


def test_a_compacted_lane_does_not_begin_behind_records_that_the_target_lost() -> None:
    """L9: the target lost its tail and others wrote over the old end; with a new epoch nothing is counted."""
    pair = Pair(last=29)
    pair.target.cut_back(30)
    pair.others()

    def take_over() -> Start:
        return asyncio.run(pair._attacher.take_over(lane(compacted=True), KNOWN, NOW))

    with pytest.raises(LostOnTarget, match="lost 10 records"):
        take_over()
    pair.last = 39
    assert place(take_over()) == (40, 0, None)
