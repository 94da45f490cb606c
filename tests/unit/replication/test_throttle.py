"""Limits hold on average whatever the helpings are, and are shared out so that nobody's part lies idle."""

from __future__ import annotations

from math import inf

import pytest

from heliograph.model.lanes import LaneId
from heliograph.replication.throttle import Bucket, Spending, Throttle, Use, belongs, shares, topic_key

ORDERS = LaneId("A->B", "orders", 0)
OTHERS = LaneId("A->B", "others", 0)
ELSEWHERE = LaneId("A->C", "orders", 0)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def carried(bucket: Bucket, helping: int, seconds: float) -> int:
    """What passes when helpings of this size are taken whenever the bucket allows."""
    now, total = 0.0, 0
    while True:
        now += bucket.wait(now)
        if now >= seconds:
            return total
        bucket.spend(helping, now)
        total += helping


@pytest.mark.parametrize("helping", [10, 999, 5_000, 100_000])
def test_the_average_is_the_rate_however_large_the_helpings(helping: int) -> None:
    total = carried(Bucket(1_000, 0.0), helping, 1_000)
    assert 1_000 * 1_000 * 0.9 <= total <= 1_000 * 1_000 + 100 + helping


def test_an_idle_bucket_saves_a_tenth_of_a_second_and_no_more() -> None:
    bucket = Bucket(1_000, 0.0)
    assert bucket.level(3_600) == 100
    bucket.spend(100, 3_600)
    assert bucket.level(3_600) == 0
    assert bucket.wait(3_600) == pytest.approx(0.05)
    assert bucket.level(3_600.05) == pytest.approx(50)
    assert bucket.wait(3_600.05) == 0


def test_a_debt_is_paid_at_the_new_rate() -> None:
    bucket = Bucket(1_000, 0.0)
    bucket.spend(1_100, 0.0)
    assert bucket.wait(0.0) == pytest.approx(1.05)
    bucket.change(10_000, 0.0)
    assert bucket.wait(0.0) == pytest.approx(0.15)
    bucket.change(100, 10.0)
    assert bucket.level(10.0) == 10


def test_without_a_limit_everything_passes() -> None:
    throttle = Throttle(Clock())
    throttle.spend(ORDERS, 10**12)
    assert throttle.allowance(ORDERS) == inf
    assert throttle.wait([ORDERS]) == 0
    assert throttle.wait([]) == 0
    assert throttle.take_spending() == Spending({}, ())


def test_a_flow_and_a_topic_each_have_their_limit() -> None:
    clock = Clock()
    throttle = Throttle(clock, {"A->B": 1_000, "A->B/orders": 100})
    assert throttle.allowance(ORDERS) == 10
    assert throttle.allowance(OTHERS) == 100
    assert throttle.allowance(ELSEWHERE) == inf
    throttle.spend(ORDERS, 20)
    assert throttle.allowance(ORDERS) == 0
    assert throttle.allowance(OTHERS) == 80
    assert throttle.wait([ORDERS]) == pytest.approx(0.15)
    assert throttle.wait([ORDERS, OTHERS]) == 0
    throttle.spend(OTHERS, 80)
    assert throttle.allowance(OTHERS) == 0
    assert throttle.take_spending() == Spending({"A->B": 100, "A->B/orders": 20}, ("A->B", "A->B/orders"))
    assert throttle.take_spending() == Spending({}, ())


def test_changed_limits_replace_all_that_were() -> None:
    clock = Clock()
    throttle = Throttle(clock, {"A->B": 1_000, "A->B/orders": 100})
    throttle.spend(ORDERS, 1_000)
    throttle.change({"A->B": 9_000, "A->C": 10})
    assert throttle.wait([ORDERS]) == pytest.approx(0.15)
    assert throttle.allowance(ELSEWHERE) == 1
    throttle.change({})
    assert throttle.allowance(ORDERS) == inf


def test_a_lane_belongs_to_its_flow_and_its_topic() -> None:
    assert belongs(ORDERS.key, "A->B")
    assert belongs(ORDERS.key, topic_key("A->B", "orders"))
    assert not belongs(ORDERS.key, topic_key("A->B", "order"))
    assert not belongs(ELSEWHERE.key, "A->B")


def test_who_uses_little_leaves_the_rest_to_who_is_held_back() -> None:
    shared = shares(
        1_000, {"idle": Use(0, False), "busy": Use(400, True), "calm": Use(100, False), "new": Use(0, True)}
    )
    assert shared == {"idle": 25, "calm": 175, "busy": 400, "new": 400}


def test_nobody_gets_more_than_a_fair_part_for_being_modest() -> None:
    assert shares(1_000, {"a": Use(490, False), "b": Use(500, True)}) == {"a": 500, "b": 500}


def test_with_nobody_held_back_the_parts_are_equal() -> None:
    assert shares(900, {"a": Use(10, False), "b": Use(200, False), "c": Use(0, False)}) == {
        "a": 300,
        "b": 300,
        "c": 300,
    }
    assert shares(900, {}) == {}


def test_a_task_knows_whether_anything_limits_it() -> None:
    throttle = Throttle(Clock(), {"A->B": 10})
    assert throttle.has_limits
    throttle.change({})
    assert not throttle.has_limits
