from __future__ import annotations

from heliograph.replication.lag_limits import LagLimit, Verdict


def test_a_flow_becomes_late_once_and_the_longest_wait_is_named() -> None:
    limit = LagLimit()
    assert limit.look({"orders-0": 60_000, "orders-1": 0}, 60, 0) is None
    verdict = limit.look({"orders-0": 61_000, "orders-1": 75_000}, 60, 1_000)
    assert verdict == Verdict(
        True, "orders-1: a record waits for 75 s; lag.limit.seconds is 60, and 1 more lanes are late"
    )
    assert limit.look({"orders-0": 62_000, "orders-1": 76_000}, 60, 2_000) is None


def test_it_is_over_when_no_record_waited_too_long_for_a_while() -> None:
    limit = LagLimit()
    late = limit.look({"t-0": 61_000}, 60, 0)
    assert late is not None and late.sentence == "t-0: a record waits for 61 s; lag.limit.seconds is 60"
    assert limit.look({}, 60, 5_000) is None
    assert limit.look({"t-0": 61_000}, 60, 9_000) is None, "it was the same lateness all the time"
    assert limit.look({"t-0": 10}, 60, 10_000) is None
    assert limit.look({}, 60, 19_999) is None
    over = limit.look({}, 60, 20_000)
    assert over == Verdict(False, "no record waits longer than lag.limit.seconds = 60; it was so for 10 s")
    assert limit.look({}, 60, 40_000) is None
    assert limit.look({"t-0": 61_000}, 60, 50_000) is not None, "the next one is news"


def test_without_a_limit_nothing_is_late() -> None:
    assert LagLimit().look({"t-0": 10**9}, 0, 0) is None
