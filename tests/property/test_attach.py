"""Attach over the whole range of sequences: the wrap at 2^31 is a number like any other."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from heliograph.model.lanes import Identity, next_sequence
from heliograph.replication.attach import (
    Ahead,
    Behind,
    Lost,
    NextSequence,
    OurBatch,
    ReadTail,
    Remembered,
    TargetTail,
    distance,
    expected_offset,
    next_by_headers,
    next_in_sequence,
)
from tests.support.entries import FRESH

WRAP = 2**31
SEQUENCES = st.one_of(st.integers(0, WRAP - 1), st.integers(0, 20), st.integers(WRAP - 20, WRAP - 1))
RECORDS = st.one_of(st.integers(0, 100), st.integers(0, 2**30 - 1))
ENTRY = replace(FRESH, identity=Identity(9, 3), source_epoch=-1, target_next=100)


@given(SEQUENCES, RECORDS)
@example(WRAP - 1, 1)
@example(0, 2**30 - 1)
def test_what_was_written_since_the_entry_is_counted_over_the_wrap(first: int, records: int) -> None:
    assert distance(replace(ENTRY, sequence_next=first), (first + records) % WRAP) == Ahead(records)


@given(SEQUENCES, st.integers(1, 2**30))
@example(0, 1)
@example(0, 2**30)
def test_what_the_target_lost_is_counted_over_the_wrap(first: int, lost: int) -> None:
    assert distance(replace(ENTRY, sequence_next=first), (first - lost) % WRAP) == Behind(lost)


@given(SEQUENCES, st.lists(st.integers(1, 5000), min_size=1, max_size=8))
def test_memory_and_headers_come_to_the_same_next_sequence(first: int, counts: list[int]) -> None:
    """Whether the leader remembers or only its log does, the lane goes on at the same number."""
    here = replace(ENTRY, sequence_next=first)
    batches = []
    sequence, offset = first, here.target_next
    for count in counts:
        batches.append(OurBatch(offset, sequence, count - 1))
        sequence, offset = (sequence + count) % WRAP, offset + count
    last = (sequence - 1) % WRAP
    remembered = next_in_sequence(here, TargetTail(0, offset, Remembered(3, last, 0)))
    read = next_by_headers(here, TargetTail(0, offset, None), batches)
    assert isinstance(remembered, NextSequence)
    assert isinstance(read, NextSequence)
    assert remembered.sequence == read.sequence == sequence
    assert distance(here, sequence) == Ahead(sum(counts))
    assert expected_offset(here, TargetTail(0, offset, None), sum(counts)) == offset


@given(SEQUENCES, st.lists(st.integers(1, 5000), min_size=1, max_size=8), st.data())
def test_a_target_that_lost_its_end_is_found_at_what_is_left_or_lost(
    first: int, counts: list[int], data: st.DataObject
) -> None:
    """However many of the last batches are gone, the lane goes on right behind the last one left, or not at all."""
    here = replace(ENTRY, sequence_next=(first + sum(counts)) % WRAP, target_next=100 + sum(counts))
    left = data.draw(st.integers(0, len(counts) - 1))
    batches = []
    sequence, offset = first, 100
    for count in counts[:left]:
        batches.append(OurBatch(offset, sequence, count - 1))
        sequence, offset = (sequence + count) % WRAP, offset + count
    tail = TargetTail(100, offset, None)
    lost = sum(counts[left:])
    assert next_in_sequence(here, tail) == ReadTail(100)
    found = next_by_headers(here, tail, batches)
    if not batches:
        assert isinstance(found, Lost)
        return
    assert isinstance(found, NextSequence)
    assert found.sequence == sequence
    assert not found.had_state
    assert distance(here, sequence) == Behind(lost)
    assert expected_offset(here, tail, -lost) == offset


@given(SEQUENCES, st.lists(st.integers(1, 2**20), max_size=10))
def test_sequences_add_up_however_the_records_are_cut(first: int, counts: list[int]) -> None:
    step = first
    for count in counts:
        step = next_sequence(step, count)
        assert 0 <= step < WRAP
    assert step == next_sequence(first, sum(counts)) == (first + sum(counts)) % WRAP
