"""Ages, latencies, and since when the oldest record waits."""

from __future__ import annotations

from heliograph.metrics.lane_times import LaneTimes, Spread

NOW = 1_700_000_000_000


def copied(times: LaneTimes, timestamp: int) -> None:
    """One batch was acknowledged, and summed up."""
    times.acks.append((timestamp, NOW, 1, 100))
    times.stuck_ms = 0
    assert len(times.take_acks()) == 1


def test_a_spread_knows_the_last_the_least_the_most_and_the_mean() -> None:
    spread = Spread()
    assert spread.figures() is None
    spread.add([5.0, 1.0])
    spread.add([9.0])
    assert spread.figures() == [9.0, 1.0, 9.0, 5.0]


def test_an_age_is_never_negative_and_a_record_without_timestamp_has_none() -> None:
    times = LaneTimes()
    times.read(-1, NOW)
    assert times.age.figures() is None
    times.read(NOW - 20, NOW)
    times.read(NOW + 5000, NOW)
    assert times.age.figures() == [0, 0, 20, 10]


def test_a_latency_is_told_and_kept_unless_nobody_knows_it() -> None:
    times = LaneTimes()
    for timestamp in (-1, NOW - 12, NOW + 3):
        copied(times, timestamp)
    assert times.take_samples() == [12, 0]
    assert times.take_samples() == []
    assert times.latency.figures() == [0, 0, 12, 6]


def test_of_very_many_latencies_some_are_told() -> None:
    times = LaneTimes()
    times.acks = [(NOW - 1, NOW, 1, 100)] * 5000
    times.take_acks()
    assert 200 < len(times.take_samples()) < 600
    assert times.latency.count == 5000


def test_what_is_caught_up_does_not_wait() -> None:
    times = LaneTimes()
    times.began(NOW)
    copied(times, NOW - 5)
    assert times.waiting_since(None, is_behind=False) == 0


def test_the_oldest_that_was_read_counts() -> None:
    assert LaneTimes().waiting_since(NOW - 700, is_behind=True) == NOW - 700


def test_what_is_still_to_be_read_is_as_old_as_what_was_copied_last() -> None:
    times = LaneTimes()
    times.acks.append((NOW - 900, NOW, 1, 100))
    assert times.waiting_since(None, is_behind=True) == NOW - 900
    times.take_acks()
    assert times.waiting_since(None, is_behind=True) == NOW - 900


def test_nothing_waits_for_longer_than_since_the_source_had_nothing_new() -> None:
    """A producer may write timestamps of last year: its records have not waited since then."""
    times = LaneTimes()
    copied(times, NOW - 31_536_000_000)
    times.at_end_ms = NOW - 50
    assert times.waiting_since(None, is_behind=True) == NOW - 50


def test_a_lane_whose_records_have_no_timestamps_waits_since_it_began() -> None:
    times = LaneTimes()
    times.began(NOW)
    times.began(NOW + 60_000)
    assert times.waiting_since(-1, is_behind=True) == NOW
    assert times.waiting_since(None, is_behind=True) == NOW


def test_what_a_lane_stopped_at_waits_until_something_is_copied() -> None:
    times = LaneTimes()
    times.stuck_at(None)
    times.stuck_at(NOW - 30)
    times.stuck_at(NOW - 20)
    assert times.waiting_since(NOW - 10, is_behind=True) == NOW - 30
    copied(times, NOW)
    assert times.waiting_since(NOW - 10, is_behind=True) == NOW - 10
