"""The scene: views merged, rates over the last seconds, the last hour."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from heliograph.errors import Refused
from heliograph.rest.scene import Scene
from heliograph.rest.summaries import flow_summary, topic_rows

FLOW = {
    "flow": "A->B",
    "source": "A",
    "target": "B",
    "bootstrap": {"A": "a:1", "B": "b:1"},
    "opened": True,
    "held": True,
    "trouble": "",
    "trouble_since_ms": 0,
    "topics": {"orders": "A.orders"},
    "throttle": 0,
    "throttle_topics": {},
    "jobs": [],
    "latency_ms": {"p50": 1.5, "p99": 9.0},
}


def lane(partition: int, records: int, **more: Any) -> dict[str, Any]:
    place = {"flow": "A->B", "topic": "orders", "partition": partition, "remote_topic": "A.orders"}
    totals = {"records": records, "bytes": records * 10}
    return {"lane": f"A->B/orders/{partition}", "state": "following", **place, "totals": totals, **more}


def scene() -> Scene:
    made = Scene()
    made.merge({"parts": {"run": {"time_ms": 5}}, "flows": {"A->B": FLOW}, "lanes": [lane(0, 0), lane(1, 0)]}, 100.0)
    return made


def test_rates_are_over_the_last_seconds_and_end_with_the_reports() -> None:
    made = scene()
    for second in range(1, 9):
        made.merge({"lanes": [lane(0, 100 * second)]}, 100.0 + second)
    assert made.lanes["A->B/orders/0"]["records_per_s"] == pytest.approx(100.0)
    assert made.lanes["A->B/orders/1"]["records_per_s"] == 0
    assert flow_summary(made, "A->B")["bytes_per_s"] == 1000
    for second in range(9, 15):
        made.merge({}, 100.0 + second)
    assert made.lanes["A->B/orders/0"]["records_per_s"] == 0


def test_a_run_that_counts_from_the_beginning_has_no_negative_rate() -> None:
    made = scene()
    made.merge({"lanes": [lane(0, 500)]}, 101.0)
    made.merge({"lanes": [lane(0, 3)]}, 102.0)
    assert made.lanes["A->B/orders/0"]["records_per_s"] >= 0


def test_a_lane_that_its_task_said_nothing_of_has_every_field() -> None:
    row = scene().lanes["A->B/orders/1"]
    assert (row["position"], row["source_end"], row["totals"]["dropped"], row["lag_ms"]) == (-1, -1, {}, 0)


def test_what_is_gone_is_gone() -> None:
    made = scene()
    made.merge({"gone": ["A->B/orders/1"]}, 101.0)
    assert list(made.lanes) == ["A->B/orders/0"]
    made.merge({"flows": {"A->B": None}}, 102.0)
    assert made.flows == {}


def test_the_sums_of_a_flow_and_its_topics() -> None:
    made = scene()
    more = {"position": 40, "source_end": 50, "target_next": 39, "lag_ms": 7}
    made.merge({"lanes": [lane(0, 40, **more), lane(1, 2, state="parked", reason="why")]}, 101.0)
    found = flow_summary(made, "A->B")
    assert (found["lag_records"], found["lag_ms"], found["records"], found["lanes"]) == (10, 7, 42, 2)
    assert found["lanes_by_state"] == {"following": 1, "parked": 1}
    (topic,) = topic_rows(made, "A->B")
    assert (topic["lag"], topic["partitions"], topic["states"]) == (10, 2, {"following": 1, "parked": 1})


@pytest.mark.parametrize(
    ("flow", "holds", "state"),
    [
        ({}, [], "running"),
        ({"trouble": "gone", "trouble_since_ms": 3}, [], "trouble"),
        ({"opened": False}, [], "opening"),
        ({}, [{"topic": "", "partition": -1}], "paused"),
        ({}, [{"topic": "orders", "partition": -1}], "running"),
    ],
)
def test_a_flow_is_in_one_state(flow: dict[str, Any], holds: list[dict[str, Any]], state: str) -> None:
    made = scene()
    held = [{"flow": "A->B", "reason": "why", "since_ms": 1, **hold} for hold in holds]
    made.merge({"flows": {"A->B": {**FLOW, **flow}}, "parts": {"holds": {"holds": held}}}, 101.0)
    assert flow_summary(made, "A->B")["state"] == state


def test_the_last_hour_has_a_point_every_five_seconds() -> None:
    made = scene()
    for second in range(1, 21):
        made.merge({"lanes": [lane(0, 10 * second)]}, 100.0 + second)
    hour = made.history.of("A->B", 3600)
    assert len(hour["records_per_s"]) == 5
    assert hour["latency_p99_ms"] == [9.0] * 5
    assert len(made.history.of("A->B", 10)["time_ms"]) == 2
    assert made.history.of("B->A", 3600)["time_ms"] == []


def test_who_asks_a_run_that_is_gone_is_told_so() -> None:
    async def ask() -> None:
        with pytest.raises(Refused) as caught:
            await Scene().ask("plan")
        assert caught.value.status == 503

    asyncio.run(ask())


def test_a_flow_of_which_a_part_is_paused_runs_and_says_so() -> None:
    made = scene()
    made.merge({"lanes": [lane(0, 0, state="paused", reason="lag test")]}, 101.0)
    found = flow_summary(made, "A->B")
    assert (found["state"], found["reason"], found["bottleneck"]) == ("running", "1 partition paused", "paused")


CARRIER = {"host": "north", "process": 7, "since_ms": 3}


@pytest.mark.parametrize(
    ("more", "state", "reason", "by"),
    [
        ({"standing_by": True, "carried_by": CARRIER}, "standby", "carried by north, process 7", CARRIER),
        ({"standing_by": True, "carried_by": None}, "standby", "this run cannot say that it holds the flow", None),
        ({"trouble": "cluster A: gone", "trouble_since_ms": 3}, "trouble", "cluster A: gone", None),
        ({}, "opening", "both clusters are read", None),
    ],
)
def test_what_a_run_does_not_see_of_a_flow_is_not_zero(
    more: dict[str, Any], state: str, reason: str, by: dict[str, Any] | None
) -> None:
    made = Scene()
    unseen = {**FLOW, "opened": False, "held": False, "topics": {}, **more}
    made.merge({"parts": {"run": {"time_ms": 5}}, "flows": {"A->B": unseen}}, 100.0)
    found = flow_summary(made, "A->B")
    assert (found["state"], found["carried_by"]) == (state, by)
    assert found["reason"].startswith(reason)
    unknown = ("lag_records", "lag_ms", "at_risk_records", "at_risk_seconds")
    assert ({found[name] for name in unknown}, found["bottleneck"]) == ({None}, "")
    assert made.history.of("A->B", 10)["lag_records"] == [None]


def test_the_run_that_holds_a_flow_is_named() -> None:
    made = scene()
    made.merge({"parts": {"run": {"time_ms": 5, "host": "here", "process": 4, "since_ms": 2}}}, 101.0)
    assert flow_summary(made, "A->B")["carried_by"] == {"host": "here", "process": 4, "since_ms": 2}
