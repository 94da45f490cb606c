"""The clocks of this machine."""

from __future__ import annotations

import time

import pytest

from heliograph.control import clock
from heliograph.control.clock import Clock


def test_what_we_may_count_on_is_measured_by_a_clock_that_runs_on_while_the_machine_is_suspended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """H6: the monotonic one stands still then."""
    asked: list[int] = []

    def clock_gettime(which: int) -> float:
        asked.append(which)
        return 7.0

    monkeypatch.setattr(time, "clock_gettime", clock_gettime)
    assert Clock().awake_or_not() == 7.0
    assert asked == [time.CLOCK_BOOTTIME]


def test_where_the_system_has_none_the_monotonic_one_must_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_RUNS_ON", None)
    before = time.monotonic()
    assert before <= Clock().awake_or_not() <= time.monotonic()
    assert before <= Clock().monotonic() and Clock().now_ms() > 1_700_000_000_000
