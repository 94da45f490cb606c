"""Which pairs of offsets a lane keeps."""

from __future__ import annotations

from itertools import pairwise

import pytest

from heliograph.replication.anchors import ANCHOR_MS, MAX_ANCHORS, STRIDE, Anchor, keep_anchor, over_a_jump


def kept(pairs: list[Anchor], step_ms: int = ANCHOR_MS) -> list[Anchor]:
    anchors: list[Anchor] = []
    began = 0
    for number, pair in enumerate(pairs):
        began = keep_anchor(anchors, pair, 1_000_000 + number * step_ms, began)
    return anchors


def test_the_first_pair_and_every_change_of_the_delta_are_kept() -> None:
    assert kept([(0, 0), (10, 10), (20, 21), (30, 31)]) == [(0, 0), (20, 21)]


def test_of_several_in_one_second_the_last_is_kept() -> None:
    assert kept([(0, 0), (10, 11), (20, 22), (30, 33)], step_ms=10) == [(0, 0), (30, 33)]


def test_a_long_run_with_one_delta_is_anchored_now_and_then() -> None:
    assert kept([(0, 5), (STRIDE - 1, STRIDE + 4), (STRIDE, STRIDE + 5)]) == [(0, 5), (STRIDE, STRIDE + 5)]


def test_many_anchors_are_thinned_out_further_back() -> None:
    anchors = kept([(number * 100, number * 99) for number in range(2_000)])
    assert len(anchors) == MAX_ANCHORS
    assert anchors[0] == (0, 0)
    assert anchors == sorted(anchors)
    assert anchors[-16:] == [(number * 100, number * 99) for number in range(1_984, 2_000)]
    end = anchors[-1][0]
    widest = max((after - before) / (end - before) for (before, _), (after, _) in pairwise(anchors[:-1]))
    assert widest < 0.6, "no gap is wider than a good half of what lies behind it"


def test_a_lane_that_went_back_in_the_source_thins_too() -> None:
    pairs = [(number * 100, number * 101) for number in range(30)] + [
        (number, 4_000 + number * 2) for number in range(30)
    ]
    anchors = kept(pairs)
    assert len(anchors) == MAX_ANCHORS
    assert anchors[-1] == pairs[-1]


def test_a_jump_in_the_source_is_kept_with_both_its_ends() -> None:
    assert over_a_jump(((0, 0),), (10, 8), 12) == ((0, 0), (10, 8), (12, 8))


@pytest.mark.parametrize("begins", [10, 9, 0])
def test_a_lane_that_goes_on_where_it_was_or_goes_back_jumps_over_nothing(begins: int) -> None:
    assert over_a_jump(((0, 0),), (10, 8), begins) == ((0, 0),)


def test_more_anchors_than_are_kept_are_thinned_with_the_next_one() -> None:
    anchors = [(number * 10, number * 9) for number in range(MAX_ANCHORS + 2)]
    keep_anchor(anchors, (5_000, 4_000), 1_000, 0)
    assert len(anchors) == MAX_ANCHORS
    assert anchors[-1] == (5_000, 4_000)


def test_any_number_of_jumps_is_kept_in_as_few_anchors() -> None:
    anchors: tuple[Anchor, ...] = ((0, 0),)
    for number in range(200):
        anchors = over_a_jump(anchors, (number * 10 + 5, number * 9), number * 10 + 6)
    assert len(anchors) == MAX_ANCHORS
    assert anchors[0] == (0, 0)
    assert anchors[-2:] == ((1_995, 1_791), (1_996, 1_791))
