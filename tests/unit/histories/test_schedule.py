"""Faults by a seed, and how long delivery stood still after each."""

from __future__ import annotations

import pytest

from tests.histories.history import Arrival, Fault
from tests.histories.leaders import wanted
from tests.histories.schedule import CLUSTER_KINDS, KINDS, LEAD_SECONDS, plan
from tests.histories.standstill import by_kind, standstills

LANE = ("orders", 0)
OTHER = ("orders", 1)


def test_the_same_seed_plans_the_same_faults() -> None:
    assert plan(7, 600) == plan(7, 600)
    assert plan(7, 600) != plan(8, 600)


@pytest.mark.parametrize("seed", range(20))
def test_two_faults_of_one_part_never_overlap_and_all_end_in_time(seed: int) -> None:
    busy: dict[str, float] = {}
    for fault in plan(seed, 600):
        assert LEAD_SECONDS <= fault.at <= fault.at + fault.lasts <= 600.1
        assert busy.get(fault.kind.part, 0.0) <= fault.at
        busy[fault.kind.part] = fault.at + fault.lasts


def test_every_kind_of_fault_is_drawn_sometimes() -> None:
    for kinds in (KINDS, CLUSTER_KINDS):
        assert {fault.kind.name for seed in range(5) for fault in plan(seed, 600, kinds)} == {k.name for k in kinds}


def test_a_fault_says_which_broker_and_how_long() -> None:
    said = {fault.what for seed in range(5) for fault in plan(seed, 600)}
    assert any(what.startswith("kill -9 of source broker ") and what[-1] in "123" for what in said)
    assert any(what.startswith("target broker ") and " frozen for " in what for what in said)
    assert any(what.startswith("a Python worker frozen for ") for what in said)
    assert "kill -9 of the JVM" in said


def a_fault(at: float, kind: str = "kill") -> Fault:
    return Fault(at, kind, f"{kind} 2", True)


def arrivals(place: tuple[str, int], *times: float) -> list[Arrival]:
    return [Arrival(at, place, number) for number, at in enumerate(times)]


def test_a_standstill_is_the_longest_pause_of_any_partition_after_the_fault() -> None:
    seen = arrivals(LANE, 0, 1, 2, 5, 6, 7) + arrivals(OTHER, 0, 1, 2, 3, 4, 5, 6, 7)
    assert standstills([a_fault(2.5)], seen) == [(a_fault(2.5), 2.5)]


def test_a_pause_belongs_to_the_fault_before_it() -> None:
    seen = arrivals(LANE, 0, 1, 4, 5, 6, 6.5, 7)
    found = [seconds for _, seconds in standstills([a_fault(1), a_fault(5.5)], seen)]
    assert found == [3.0, 0.5]


def test_a_pause_in_which_other_faults_happen_is_counted_once() -> None:
    seen = arrivals(LANE, 0, 1, 9, 10, 11)
    found = [seconds for _, seconds in standstills([a_fault(1), a_fault(4), a_fault(6)], seen)]
    assert found == [8.0, 0.0, 1.0]


def test_standstills_are_told_by_kind() -> None:
    found = by_kind([(a_fault(1), 2.0), (a_fault(2, "freeze"), 3.0), (a_fault(3), 4.0)])
    assert found == {"kill": [2.0, 4.0], "freeze": [3.0]}


def test_without_arrivals_nothing_is_said_to_have_stood_still() -> None:
    assert standstills([a_fault(1)], []) == [(a_fault(1), 0.0)]


def test_leaders_are_spread_over_all_brokers_beginning_with_the_one_that_is_named() -> None:
    found = wanted(2, {"orders": 4})
    assert [order[0] for order in found.values()] == [2, 3, 1, 2]
    assert all(sorted(order) == [1, 2, 3] for order in found.values())
