"""`heliograph top`: what its tables say of a flow, a lane and an event."""

from __future__ import annotations

from typing import Any

from heliograph.cli.top import _flow, _lane, _subject

FLOW: dict[str, Any] = {
    "flow": "A->B", "state": "running", "reason": "", "lanes": 2, "lanes_by_state": {"following": 2}, "records_per_s": 0, "bytes_per_s": 0,
    "lag_records": 0, "lag_ms": 0, "latency_ms": {"p50": None, "p99": None}, "raw_batches": 0, "rebuilt_batches": 0, "dropped_batches": 0,
    "throttle_bytes_per_s": 0,
}  # fmt: skip
ROW: dict[str, Any] = {
    "flow": "A->B", "topic": "orders", "partition": 0, "state": "paused", "records_per_s": 0, "lag": 0, "lag_ms": 0, "delta": 0, "reason": "",
}  # fmt: skip


def test_a_lag_that_is_not_known_is_not_zero() -> None:
    assert _flow(FLOW)[5:7] == ["0", "-"]
    standby = FLOW | {"state": "standby", "reason": "carried by north, process 7", "lag_records": None, "lag_ms": None}
    assert _flow(standby)[1] == "standby: carried by north, process 7"
    assert _flow(standby)[5:7] == ["?", "-"]


def test_a_lane_that_is_behind_says_for_how_long_from_the_first_moment_on() -> None:
    assert _lane(ROW)[3:5] == ["0", "-"]
    assert _lane(ROW | {"lag": 165})[3:5] == ["165", "0.0 s"]


def test_an_event_names_what_it_is_about_and_a_flow_once() -> None:
    assert _subject({"flow": "A->B", "subject": "orders"}) == "A->B orders"
    assert _subject({"flow": "A->B", "subject": "A->B"}) == "A->B"
