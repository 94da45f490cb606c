"""What tasks measured, summed over attempts: by flow, slot and target, with the figures of the last seconds."""

from __future__ import annotations

from typing import Any

import pytest

from heliograph.control.meters import Meters
from heliograph.metrics.lane_times import LaneTimes
from heliograph.metrics.meters import FlowMeter, TimeSplit, WriterMeter
from heliograph.metrics.series import GAP_BOUNDS_S

FLOW = "A->B"
NOW = 1_700_000_000_000


class Task:
    """A task that measures as a real one does."""

    def __init__(self, slot: int = 0) -> None:
        self.flow, self.writer = FlowMeter(), WriterMeter()
        self.lane = LaneTimes()
        self.split = TimeSplit(0.0, 0.0)
        self._slot = slot

    def report(self, seconds: float, slept: float, **waits: float) -> dict[str, Any]:
        self.split.add(seconds, slept, {FLOW: waits})
        return {
            "slot": self._slot,
            "epoch": 3,
            "process": 77,
            "memory_peak": 1 << 20,
            "seconds": seconds,
            "io_seconds": seconds / 10,
            "time": dict(self.split.slot),
            "flows": {FLOW: {**self.flow.take(), "time": dict(self.split.flows[FLOW])}},
            "targets": {"B": self.writer.take()},
        }


def test_tasks_of_one_place_follow_each_other_and_their_counts_add_up() -> None:
    meters = Meters()
    for attempt in ("one", "two"):
        task = Task()
        for _ in range(2):
            task.flow.fetched(1000, 1100, 0)
            task.flow.note(task.lane, (NOW - 5, NOW, 10, 900))
            meters.take(attempt, task.report(4.0, 3.0, source=3.0), 0.0)
        meters.forget_attempts(set())
    totals = meters.flows[FLOW]
    assert (totals["fetches"], totals["records"], totals["wan_bytes"]) == (4, 40, 4400)
    assert sum(totals["latency"]) == 40
    view = meters.view(10.0, {})
    assert view["slots"]["0"]["seconds"] == 8.0
    assert view["slots"]["0"]["time"] == pytest.approx({"source": 6.0, "target": 0, "throttled": 0, "busy": 2.0})
    assert view["slots"]["0"]["process"] == 77


def test_figures_are_those_of_the_last_seconds() -> None:
    meters, task = Meters(), Task()
    task.flow.fetched(10, 10, 0)
    meters.take("one", task.report(1.0, 1.0, source=1.0), 1.0)
    for second in range(1, 40):
        meters.tick(float(second))
    for _ in range(6):
        task.flow.fetched(5000, 5000, 20)
        task.flow.note(task.lane, (NOW - 40, NOW, 100, 4000))
        task.writer.answered(0.5, 3)
    task.flow.retried += 30
    meters.take("one", task.report(11.0, 2.0, source=1.5, target=1.5), 39.0)
    found = meters.window_of(FLOW, 40.0)
    assert found["fetch_rate"] == pytest.approx(6 / 16)
    assert (found["fetch_size_avg"], found["fetch_size_max"]) == (5000, 5000)
    assert (found["fetch_throttle_avg_ms"], found["fetch_throttle_max_ms"]) == (20, 20)
    assert (found["batch_size_avg"], found["batch_size_max"]) == (4000, 4000)
    assert found["retry_rate"] == pytest.approx(30 / 16)
    assert found["records_per_s"] == pytest.approx(600 / 16)
    assert found["time"]["busy"] == pytest.approx(0.9)
    assert sum(found["time"].values()) == pytest.approx(1)
    assert 20 < found["latency_p50_ms"] <= 50
    slot = meters.view(40.0, {})["slots"]["0"]
    assert (slot["io_ratio"], slot["io_wait_ratio"]) == (pytest.approx(0.1), pytest.approx(0.1))
    target = meters.view(40.0, {})["targets"]["B"]["window"]
    assert target["requests_in_flight"] == pytest.approx(3.0 / 16)
    assert (target["request_seconds_avg"], target["request_seconds_max"]) == (0.5, 0.5)
    assert target["throttle_avg_ms"] == 3


def test_without_news_figures_are_0() -> None:
    meters, task = Meters(), Task()
    task.flow.fetched(10, 10, 0)
    meters.take("one", task.report(1.0, 1.0, source=1.0), 1.0)
    for second in range(1, 100):
        meters.tick(float(second))
    found = meters.window_of(FLOW, 100.0)
    assert (found["fetch_rate"], found["fetch_size_avg"], found["fetch_size_max"]) == (0, 0, 0)
    assert found["latency_p99_ms"] is None


def test_nothing_is_known_of_a_flow_that_no_task_carried() -> None:
    meters = Meters()
    meters.take("one", {"process": 1, "slot": 0}, 1.0)
    assert meters.window_of(FLOW, 2.0) == {}
    assert meters.view(2.0, {})["flows"] == {}


def test_gaps_and_epochs_are_counted() -> None:
    meters, task = Meters(), Task()
    meters.take("one", task.report(1.0, 1.0, source=1.0), 1.0)
    assert meters.view(1.0, {})["flows"][FLOW]["gaps"]["counts"] == [0] * (len(GAP_BOUNDS_S) + 1)
    for seconds in (0.004, 0.03, 200.0):
        meters.gap("A->B/orders/0", seconds)
    for seconds in (45.0, 44.0):
        meters.epoch_ended(seconds)
    view = meters.view(1.0, {(FLOW, "parked"): 2})
    gaps = view["flows"][FLOW]["gaps"]
    assert (gaps["counts"][0], gaps["counts"][3], gaps["counts"][-1]) == (1, 1, 1)
    assert (gaps["last_s"], gaps["seconds"]) == (200.0, pytest.approx(200.034))
    assert view["epochs"] == {"ended": 2, "seconds": 89.0, "last_s": 44.0}
    assert view["events"] == [[FLOW, "parked", 2]]
