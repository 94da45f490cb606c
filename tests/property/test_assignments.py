"""Invariants A to E of `assignments`, for any lanes, loads and previous placement."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heliograph.model.lanes import Lane, LaneId
from heliograph.replication.assignments import SLACK, balance

LANES = st.lists(st.tuples(st.sampled_from("tu"), st.integers(0, 20)), unique=True, max_size=25).map(
    lambda names: [Lane(LaneId("A->B", *name), "A", "B", f"A.{name[0]}", "s", "t") for name in names]
)
LOADS = st.dictionaries(
    st.builds(LaneId, st.just("A->B"), st.sampled_from("tu"), st.integers(0, 20)), st.floats(0, 1e9)
)
PREVIOUS = st.dictionaries(
    st.builds(LaneId, st.just("A->B"), st.sampled_from("tu"), st.integers(0, 20)), st.integers(-1, 8)
)
SLOTS = st.integers(0, 8)


def heaviest(slots: list[tuple[Lane, ...]], loads: dict[LaneId, float]) -> float:
    return max((sum(loads[lane.id] for lane in slot) for slot in slots), default=0.0)


@given(LANES, LOADS, SLOTS, PREVIOUS)
def test_a_every_lane_is_in_exactly_one_slot(
    lanes: list[Lane], loads: dict[LaneId, float], slots: int, previous: dict[LaneId, int]
) -> None:
    found = [lane.id for slot in balance(lanes, loads, slots, previous) for lane in slot]
    assert sorted(found) == sorted(lane.id for lane in lanes)


@given(LANES, LOADS, SLOTS, PREVIOUS)
def test_b_no_slot_is_empty_and_there_are_as_many_as_can_be(
    lanes: list[Lane], loads: dict[LaneId, float], slots: int, previous: dict[LaneId, int]
) -> None:
    found = balance(lanes, loads, slots, previous)
    assert all(found) and len(found) == (max(1, min(slots, len(lanes))) if lanes else 0)


@given(LANES, st.integers(2, 4), st.data())
def test_c_the_heaviest_slot_is_at_most_a_quarter_over_plain_greedy(
    lanes: list[Lane], slots: int, data: st.DataObject
) -> None:
    loads = {lane.id: data.draw(st.sampled_from([1.0, 5.0, 20.0, 100.0])) for lane in lanes}
    previous = {lane.id: data.draw(st.integers(0, slots)) for lane in lanes}
    plain = heaviest(balance(lanes, loads, slots, {}), loads)
    # Every lane also weighs a hundredth of the mean load, so that idle ones count: that is the tolerance.
    idle = 0.01 * sum(loads.values())
    assert heaviest(balance(lanes, loads, slots, previous), loads) <= SLACK * (plain + idle) + 1e-6


@given(LANES, LOADS, SLOTS, PREVIOUS)
def test_d_a_result_put_in_as_previous_comes_back_unchanged(
    lanes: list[Lane], loads: dict[LaneId, float], slots: int, previous: dict[LaneId, int]
) -> None:
    first = balance(lanes, loads, slots, previous)
    places = {lane.id: slot for slot, members in enumerate(first) for lane in members}
    assert balance(lanes, loads, slots, places) == first


@given(LANES, LOADS, SLOTS, PREVIOUS, st.randoms())
def test_e_the_order_of_the_lanes_does_not_matter(
    lanes: list[Lane], loads: dict[LaneId, float], slots: int, previous: dict[LaneId, int], chance: object
) -> None:
    shuffled = list(lanes)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert balance(shuffled, loads, slots, previous) == balance(lanes, loads, slots, previous)
