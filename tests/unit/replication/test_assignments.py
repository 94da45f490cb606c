"""Lanes to slots; the letters are the invariants of `assignments`."""

from __future__ import annotations

import math

import pytest

from heliograph.model.lanes import Lane, LaneId
from heliograph.replication.assignments import balance


def lane(number: int, topic: str = "t") -> Lane:
    return Lane(LaneId("A->B", topic, number), "A", "B", f"A.{topic}", "source-id", "target-id")


def lanes(count: int) -> list[Lane]:
    return [lane(number) for number in range(count)]


def numbers(slots: list[tuple[Lane, ...]]) -> list[list[int]]:
    return [[each.id.partition for each in slot] for slot in slots]


def loads(*values: float) -> dict[LaneId, float]:
    return {lane(number).id: value for number, value in enumerate(values)}


def placed(*slots: list[int]) -> dict[LaneId, int]:
    return {lane(number).id: slot for slot, members in enumerate(slots) for number in members}


def test_no_lanes_need_no_slots() -> None:
    assert balance([], {}, 4, {}) == []


@pytest.mark.parametrize(("count", "slots", "expected"), [(3, 8, 3), (8, 3, 3), (1, 1, 1), (2, 0, 1), (2, -1, 1)])
def test_b_there_are_never_more_slots_than_lanes_and_at_least_one(count: int, slots: int, expected: int) -> None:
    found = balance(lanes(count), {}, slots, {})
    assert len(found) == expected and all(found)


def test_the_longest_lanes_are_placed_first() -> None:
    found = balance(lanes(5), loads(9, 7, 6, 5, 4), 2, {})
    assert numbers(found) == [[0, 3], [1, 2, 4]]


def test_lanes_without_any_load_are_spread_by_number() -> None:
    assert sorted(len(slot) for slot in balance(lanes(10), {}, 3, {})) == [3, 3, 4]


def test_idle_lanes_are_spread_too_beside_a_busy_one() -> None:
    found = balance(lanes(201), loads(*[0.0] * 200, 1000.0), 2, {})
    alone = next(slot for slot in found if lane(200) in slot)
    assert len(alone) < 80, "200 idle lanes together cost something, one busy lane more"


def test_a_lane_of_unknown_load_counts_as_average() -> None:
    found = balance(lanes(3), loads(10, 10), 3, {})
    assert numbers(found) == [[0], [1], [2]]


@pytest.mark.parametrize("load", [math.nan, math.inf, -5.0])
def test_a_load_that_is_no_rate_counts_as_none(load: float) -> None:
    found = balance(lanes(3), loads(load, 10, 10), 2, {})
    assert sorted(len(slot) for slot in found) == [1, 2]


def test_d_a_placement_within_a_quarter_of_greedy_stays() -> None:
    previous = placed([0, 3], [1, 2])
    assert numbers(balance(lanes(4), loads(12, 10, 10, 12), 2, previous)) == [[0, 3], [1, 2]]


def test_c_a_placement_more_than_a_quarter_off_is_repaired_and_only_what_must_move_moves() -> None:
    previous = placed([0, 1, 2], [3])
    found = numbers(balance(lanes(4), loads(10, 10, 10, 10), 2, previous))
    assert sorted(map(len, found)) == [2, 2] and 3 in found[1] and 0 in found[0] and 1 in found[0]


def test_one_hot_lane_does_not_make_the_others_move() -> None:
    previous = placed([0, 1], [2, 3])
    assert numbers(balance(lanes(4), loads(1000, 1, 1, 1), 2, previous)) == [[0, 1], [2, 3]]


def test_a_new_lane_joins_without_moving_another() -> None:
    previous = placed([0, 1], [2])
    assert numbers(balance(lanes(4), loads(5, 5, 5, 5), 2, previous)) == [[0, 1], [2, 3]]


def test_a_new_heavy_lane_does_not_push_an_old_one_away() -> None:
    previous = placed([0, 1], [2])
    assert numbers(balance(lanes(4), loads(5, 5, 5, 6), 2, previous)) == [[0, 1], [2, 3]]


def test_c_a_new_lane_too_heavy_to_join_has_all_placed_anew() -> None:
    previous = placed([0, 1], [2, 3])
    assert numbers(balance(lanes(5), loads(5, 5, 5, 5, 20), 2, previous)) == [[4], [0, 1, 2, 3]]


def test_b_a_slot_that_is_new_gets_lanes() -> None:
    previous = placed([0, 1, 2])
    assert all(balance(lanes(3), loads(100, 0.1, 0.1), 2, previous))


def test_lanes_of_a_slot_that_is_gone_are_placed_anew() -> None:
    previous = placed([0], [1], [2])
    found = numbers(balance(lanes(3), loads(5, 5, 5), 2, previous))
    assert found[0][0] == 0 and 1 in found[1]


def test_a_lane_that_is_gone_is_forgotten() -> None:
    assert numbers(balance(lanes(1), {}, 2, placed([0], [7]))) == [[0]]


def test_e_the_order_of_the_lanes_does_not_matter() -> None:
    some = lanes(9)
    weights = loads(*range(9))
    assert balance(some, weights, 3, {}) == balance(list(reversed(some)), weights, 3, {})
