"""`offsets.align`: which lanes are filled, what is to be done next, and since when offsets differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heliograph.model.lanes import SEQUENCE_MASK, Lane, LaneId
from heliograph.replication.alignment import (
    Align,
    Aligned,
    CutOff,
    Disturbed,
    Fill,
    MayNot,
    NeedNot,
    alignment,
    differs_at,
    filled_first,
    next_step,
    shows_filler,
)
from tests.support.entries import FRESH

LANE = Lane(LaneId("A->B", "orders", 0), "A", "B", "A.orders", "s", "t")
ENTRY = filled_first(replace(FRESH, source_start=5_000, source_next=5_000, differs_at=5_000))


def test_a_lane_whose_remote_partition_is_empty_is_filled() -> None:
    assert alignment(LANE, 5_000, 0) == Align()


@pytest.mark.parametrize("start", [0, 5_000])
def test_a_remote_partition_that_ends_where_the_lane_begins_needs_no_filler(start: int) -> None:
    assert alignment(LANE, start, start) == NeedNot()


@pytest.mark.parametrize("end", [1, 4_999, 5_001])
def test_a_remote_partition_that_has_or_had_records_is_refused_with_what_to_do(end: int) -> None:
    found = alignment(LANE, 5_000, end)
    assert isinstance(found, MayNot)
    assert f"A.orders-0 has or had records: it ends at {end}, the lane begins at source offset 5000" in found.reason
    assert found.what_to_do == "delete the remote topic to begin anew, or write offsets.align = false"


@pytest.mark.parametrize("changes", [{"compacted": True}, {"target_compacted": True}])
def test_a_compacted_topic_is_copied_unaligned_and_it_is_said(changes: dict[str, bool]) -> None:
    found = alignment(replace(LANE, **changes), 5_000, 0)
    assert isinstance(found, NeedNot) and "a compacted topic has gaps" in found.reason


def test_invariant_f_the_claim_counts_the_filler_as_written_with_its_offset_as_its_number() -> None:
    assert (ENTRY.target_start, ENTRY.target_next, ENTRY.sequence_next) == (5_000, 5_000, 5_000)
    assert (ENTRY.source_start, ENTRY.source_next, ENTRY.filling, ENTRY.differs_at) == (5_000, 5_000, True, -1)
    assert ENTRY.filler_to == 5_000
    far = filled_first(replace(FRESH, source_start=SEQUENCE_MASK + 11, source_next=SEQUENCE_MASK + 11))
    assert (far.target_next, far.sequence_next) == (SEQUENCE_MASK + 11, 10)


def test_a_fill_goes_on_where_it_stopped_then_the_filler_is_cut_off_then_the_lane_may_begin() -> None:
    assert next_step(ENTRY, 0, 0, 0) == Fill(0, 5_000)
    assert next_step(ENTRY, 0, 1_200, 1_200) == Fill(1_200, 5_000)
    assert next_step(ENTRY, 700, 1_200, 1_200) == Fill(1_200, 5_000)
    assert next_step(ENTRY, 0, 5_000, 5_000) == CutOff(5_000)
    assert next_step(ENTRY, 5_000, 5_000, 5_000) == Aligned()


def test_what_lies_behind_the_cut_is_not_looked_at() -> None:
    assert next_step(ENTRY, 5_000, 5_017, 5_017) == Aligned()
    assert next_step(ENTRY, 5_009, 5_017, 0) == Aligned()


def test_filler_that_a_broker_shows_again_is_noticed() -> None:
    assert shows_filler(ENTRY, 0, 5_000) and shows_filler(ENTRY, 4_999, 6_000)
    assert not shows_filler(ENTRY, 5_000, 6_000)
    assert not shows_filler(ENTRY, 0, 4_000), "the target lost more than that: on.target.loss"
    assert not shows_filler(FRESH, 0, 10)


def test_numbers_wrap_as_kafka_wraps_them() -> None:
    far = filled_first(replace(FRESH, source_start=SEQUENCE_MASK + 11))
    assert next_step(far, 0, SEQUENCE_MASK + 6, 5) == Fill(SEQUENCE_MASK + 6, SEQUENCE_MASK + 11)


@pytest.mark.parametrize(
    ("end", "sequence"),
    [(1, 0), (1_201, 1_200), (5_001, 5_000), (5_000, 4_999), (0, 7)],
    ids=["before the first", "in the middle", "after the last", "one of the last", "cut back"],
)
def test_a_record_of_somebody_else_shows_because_numbers_and_offsets_part(end: int, sequence: int) -> None:
    found = next_step(ENTRY, 0, end, sequence)
    assert isinstance(found, Disturbed) and f"it ends at {end}" in found.reason
    assert "delete the remote topic" in found.what_to_do


@pytest.mark.parametrize(
    ("known", "pair", "gap_at", "since"),
    [(-1, (7, 7), -1, -1), (-1, (7, 7), 9, 9), (-1, (7, 6), 9, 7), (3, (7, 6), 9, 3), (3, (7, 7), -1, 3)],
    ids=["the same", "a gap among them", "elsewhere from the first", "known before", "once is for ever"],
)
def test_since_when_offsets_differ(known: int, pair: tuple[int, int], gap_at: int, since: int) -> None:
    assert differs_at(known, pair, gap_at) == since
