"""What a task notes: where a reader's time goes, sizes and latencies, and a slot's time shared out."""

from __future__ import annotations

import pytest

from heliograph.metrics.lane_times import LaneTimes
from heliograph.metrics.meters import (
    BUSY,
    KINDS,
    SOURCE,
    TARGET,
    THROTTLED,
    FlowMeter,
    Stopwatch,
    TimeSplit,
    WriterMeter,
)
from tests.unit.control.fakes import FakeClock

NOW = 1_700_000_000_000


def test_time_counts_for_what_was_entered_last() -> None:
    clock = FakeClock()
    watch = Stopwatch(clock)
    clock.now += 100
    for kind, seconds in ((SOURCE, 3), (BUSY, 10), (TARGET, 4), (THROTTLED, 5), (SOURCE, 1)):
        watch.enter(kind)
        clock.now += seconds
    assert watch.waits() == {SOURCE: 4, TARGET: 4, THROTTLED: 5}


def test_what_goes_on_counts_too_and_only_once() -> None:
    clock = FakeClock()
    watch = Stopwatch(clock)
    watch.enter(TARGET)
    clock.now += 7
    assert watch.waits()[TARGET] == 7
    clock.now += 1
    assert watch.waits()[TARGET] == 8
    watch.stop()
    clock.now += 50
    assert watch.waits() == {SOURCE: 0, TARGET: 8, THROTTLED: 0}


def test_a_wait_may_turn_out_to_have_been_for_something_else() -> None:
    clock = FakeClock()
    watch = Stopwatch(clock)
    watch.enter(SOURCE)
    clock.now += 2
    watch.enter(SOURCE)
    clock.now += 5
    watch.enter(BUSY)
    watch.blame(THROTTLED)
    watch.blame(TARGET)
    assert watch.waits() == {SOURCE: 2, TARGET: 5, THROTTLED: 0}


def test_a_flow_sums_its_reads_and_batches_and_tells_peaks_once() -> None:
    meter = FlowMeter()
    meter.fetched(100, 130, 0)
    meter.fetched(300, 320, 25)
    meter.fetched(10, 15, 5)
    meter.note(LaneTimes(), (NOW - 12, NOW, 10, 200))
    meter.note(LaneTimes(), (-1, NOW, 5, 90))
    told = meter.take()
    assert (told["fetches"], told["fetched_bytes"], told["wan_bytes"], told["fetch_throttle_ms"]) == (3, 410, 465, 30)
    assert (told["records"], told["batches"], told["batch_bytes"]) == (15, 2, 290)
    assert (sum(told["latency"]), told["latency_ms"]) == (10, 120)
    assert told["peaks"] == {"fetch_bytes": 300, "fetch_throttle_ms": 25, "batch_bytes": 200}
    again = meter.take()
    assert again["peaks"] == {"fetch_bytes": 0, "fetch_throttle_ms": 0, "batch_bytes": 0}
    assert again["fetches"] == 3


def test_very_many_batches_are_summed_up_in_between() -> None:
    meter, lane, other = FlowMeter(), LaneTimes(), LaneTimes()
    for _ in range(5000):
        meter.note(lane, (NOW - 3, NOW, 2, 10))
    meter.note(other, (NOW - 3, NOW, 1, 10))
    assert len(lane.acks) < 5000
    assert meter.take()["records"] == 10_001
    assert (lane.latency.count, other.latency.count, lane.acks, other.acks) == (5000, 1, [], [])


def test_a_writer_sums_its_requests_and_tells_the_slowest_once() -> None:
    meter = WriterMeter()
    meter.answered(0.5, 0)
    meter.answered(0.1, 40)
    assert meter.take() == {
        "requests": 2,
        "request_seconds": pytest.approx(0.6),
        "throttle_ms": 40,
        "peaks": {"request_seconds": 0.5},
    }
    assert meter.take()["peaks"] == {"request_seconds": 0.0}


def test_sleep_is_shared_out_as_readers_waited_and_the_rest_is_work() -> None:
    split = TimeSplit(100.0, 5.0)
    split.add(110.0, 13.0, {"A->B": {SOURCE: 6.0, TARGET: 2.0, THROTTLED: 0.0}})
    assert split.slot == pytest.approx({SOURCE: 6.0, TARGET: 2.0, THROTTLED: 0.0, BUSY: 2.0})
    assert split.flows == {"A->B": pytest.approx(split.slot)}


def test_each_flow_of_a_slot_has_its_own_split_over_the_same_time() -> None:
    split = TimeSplit(0.0, 0.0)
    split.add(10.0, 8.0, {"A->B": {SOURCE: 9.0}, "A->C": {THROTTLED: 3.0}})
    assert split.flows["A->B"] == pytest.approx({SOURCE: 8.0, TARGET: 0, THROTTLED: 0, BUSY: 2.0})
    assert split.flows["A->C"] == pytest.approx({SOURCE: 0, TARGET: 0, THROTTLED: 8.0, BUSY: 2.0})
    assert split.slot == pytest.approx({SOURCE: 6.0, TARGET: 0, THROTTLED: 2.0, BUSY: 2.0})
    for seconds in (split.slot, *split.flows.values()):
        assert sum(seconds.values()) == pytest.approx(10)


def test_only_what_is_new_counts_and_blame_that_comes_late_takes_nothing_back() -> None:
    split = TimeSplit(0.0, 0.0)
    split.add(1.0, 1.0, {"A->B": {SOURCE: 1.0, TARGET: 0.0}})
    split.add(2.0, 2.0, {"A->B": {SOURCE: 0.5, TARGET: 1.5}})
    assert split.slot == pytest.approx({SOURCE: 1.0, TARGET: 1.0, THROTTLED: 0, BUSY: 0})


def test_a_slot_without_readers_waits_for_the_source() -> None:
    split = TimeSplit(0.0, 0.0)
    split.add(3.0, 2.0, {})
    assert split.slot == pytest.approx(dict.fromkeys(KINDS, 0.0) | {SOURCE: 2.0, BUSY: 1.0})
