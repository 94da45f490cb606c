"""A group's place on the target: an exact pair, or the reason why there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heliograph.model.lanes import Lane, Rule
from heliograph.replication.group_positions import NoPair, Pair, not_before, pair_of, pair_without_reading
from heliograph.replication.translation import Answer, Exact, Gone, NeverCopied, NotKnown, NotYetCopied, Point
from tests.support.entries import FRESH

ENTRY = replace(FRESH, source_next=100, target_next=80, source_topic_id="1", target_topic_id="2")
LANE = Lane(ENTRY.lane, "A", "B", "A.orders", "1", "2")


@pytest.mark.parametrize(
    ("answer", "pair"),
    [
        (Exact(40), Pair(50, 40)),
        (Exact(40, is_record=False), Pair(50, 40)),
        (Gone("source", "deleted", 45), Pair(50, 45)),
        (NeverCopied("a marker", 46), Pair(50, 46)),
        (NotYetCopied(7), Pair(100, 80, 7)),
        (Gone("source", "deleted"), NoPair("deleted")),
        (NeverCopied("a marker"), NoPair("a marker")),
        (NotKnown("who knows"), NoPair("who knows")),
    ],
)
def test_every_answer_is_a_pair_or_a_reason(answer: Answer, pair: Pair | NoPair) -> None:
    assert pair_of(answer, 50, Point(100, 80)) == pair


def test_what_the_target_has_deleted_is_passed_over() -> None:
    assert not_before(Pair(50, 40, 3), 41) == Pair(50, 41, 3)
    assert not_before(Pair(50, 40), 40) == Pair(50, 40)
    assert not_before(NoPair("why"), 40) == NoPair("why")


def test_at_the_lanes_position_nothing_has_to_be_read() -> None:
    assert pair_without_reading(LANE, 100, ENTRY) == Pair(100, 80)
    assert pair_without_reading(LANE, 99, ENTRY) is None
    assert pair_without_reading(LANE, 101, ENTRY) is None


def test_what_was_never_copied_or_is_another_topic_now_has_no_pair() -> None:
    assert pair_without_reading(LANE, 100, None) == NoPair("nothing of this partition was ever copied")
    source = pair_without_reading(replace(LANE, source_topic_id="3"), 100, ENTRY)
    assert source == NoPair("the source topic was deleted and created again since it was copied")
    target = pair_without_reading(replace(LANE, target_topic_id="3"), 100, ENTRY)
    assert target == NoPair("the remote topic was deleted and created again since it was written to")


def test_a_group_of_an_empty_partition_stands_at_the_beginning_of_its_copy() -> None:
    empty = replace(ENTRY, source_next=0, target_next=0)
    assert pair_without_reading(LANE, 0, empty) == Pair(0, 0)


def test_of_a_lane_that_has_only_just_begun_the_ledger_says_how_much_is_to_come() -> None:
    begun = replace(ENTRY, source_start=ENTRY.source_next)
    assert pair_without_reading(LANE, 107, begun) == Pair(100, 80, behind=7)
    assert pair_without_reading(LANE, 99, begun) is None


def test_with_the_same_names_both_ways_no_place_of_a_group_is_exact() -> None:
    both = replace(ENTRY, rule=Rule(without="B->A"))
    for offset in (50, 100):
        assert isinstance(found := pair_without_reading(LANE, offset, both), NoPair)
        assert "both directions keep the same names" in found.reason
