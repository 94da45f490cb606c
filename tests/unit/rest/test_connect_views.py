"""Flows as Connect shows connectors: tasks of their share of lanes, FAILED where one is parked, states as they are."""

from __future__ import annotations

from typing import Any

import pytest

from heliograph.rest.connect_views import PART, info, restarting, status, task_configs, topics, worker_id
from heliograph.rest.scene import Scene
from tests.unit.rest.test_scene import FLOW, lane


def connector(kind: str = "MirrorSourceConnector", **more: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "flow": "A->B",
        "origin": "rest",
        "config": {"name": "x", "tasks.max": "2"},
        "state": "RUNNING",
        "trace": "",
        "topics": ["heartbeats"],
        **more,
    }


def scene(lanes: list[dict[str, Any]] | None = None, flow: dict[str, Any] | None = None, **more: Any) -> Scene:
    made = Scene()
    shown = {PART: {"connectors": {"x": connector(**more)}}, "run": {"version": "0.9"}}
    rows = [lane(number, 0) for number in range(3)] if lanes is None else lanes
    made.merge({"parts": shown, "flows": {"A->B": {**FLOW, **(flow or {})}}, "lanes": rows}, 1.0)
    made.listens_on = ["http://127.0.0.1:8083"]
    return made


def states(made: Scene) -> list[str]:
    found = status(made, "x")
    return [found["connector"]["state"], *(task["state"] for task in found["tasks"])]


def test_lanes_are_dealt_out_to_as_many_tasks_as_it_may_have() -> None:
    made = scene()
    assert states(made) == ["RUNNING", "RUNNING", "RUNNING"]
    assigned = [task["config"]["task.assigned.partitions"] for task in task_configs(made, "x")]
    assert assigned == ["orders-0,orders-2", "orders-1"]
    assert info(made, "x")["tasks"] == [{"connector": "x", "task": 0}, {"connector": "x", "task": 1}]
    assert len(info(scene(lanes=[lane(0, 0)]), "x")["tasks"]) == 1
    assert info(scene(lanes=[]), "x")["tasks"] == []
    assert len(info(scene(config={"tasks.max": "${env:N}"}), "x")["tasks"]) == 1, "what a provider gives is not shown"


def test_a_parked_lane_is_a_failed_task_with_its_reason() -> None:
    made = scene(lanes=[lane(0, 0), lane(1, 0, state="parked", reason="too large"), lane(2, 0)])
    assert states(made) == ["RUNNING", "RUNNING", "FAILED"]
    tasks = status(made, "x")["tasks"]
    assert tasks[1]["trace"] == "A->B/orders/1: too large"
    assert "trace" not in tasks[0]
    assert {"id", "state", "worker_id", "version"} == tasks[0].keys()


@pytest.mark.parametrize(
    ("lanes", "expected"),
    [("paused", "PAUSED"), ("draining", "RUNNING"), ("parked", "FAILED")],
)
def test_a_paused_connector_pauses_its_tasks_when_they_have_drained(lanes: str, expected: str) -> None:
    made = scene(lanes=[lane(0, 0, state=lanes)], state="PAUSED")
    assert states(made) == ["PAUSED", expected]


def test_a_stopped_connector_has_no_tasks_whatever_its_flow_does() -> None:
    assert states(scene(state="STOPPED", flow={"trouble": "out of reach"})) == ["STOPPED"]


def test_what_is_not_there_yet_and_what_cannot_be() -> None:
    assert states(scene(flow={"opened": False})) == ["UNASSIGNED"]
    assert states(scene(lanes=[lane(0, 0, state="waiting")])) == ["RUNNING", "UNASSIGNED"]
    assert states(scene(kind="MirrorSourceConnector", trace="does not fit")) == ["FAILED"]
    assert status(scene(trace="does not fit"), "x")["connector"]["trace"] == "does not fit"
    assert states(scene(flow={"trouble": "A is out of reach"}))[0] == "FAILED"
    gone = scene(flow={})
    gone.flows.clear()
    assert states(gone) == ["UNASSIGNED"]


def test_other_kinds_have_one_task_and_their_own_topics() -> None:
    made = scene(kind="MirrorHeartbeatConnector")
    assert states(made) == ["RUNNING", "RUNNING"]
    (task,) = task_configs(made, "x")
    assert task["config"]["task.class"] == "org.apache.kafka.connect.mirror.MirrorHeartbeatTask"
    assert "task.index" not in task["config"]
    assert topics(made, "x") == ["heartbeats"]
    assert topics(scene(), "x") == ["A.orders"]
    assert topics(made, "nope") == []


def with_groups(made: Scene, *names: str) -> Scene:
    made.parts["groups"] = {"A->B": [{"group": name, "partition": number} for name in names for number in range(2)]}
    return made


def test_groups_are_dealt_out_in_runs_to_the_tasks_of_a_checkpoint_connector() -> None:
    made = with_groups(scene(kind="MirrorCheckpointConnector"), "c", "a", "b")
    assert states(made) == ["RUNNING", "RUNNING", "RUNNING"]
    found = [task["config"] for task in task_configs(made, "x")]
    assert [(task["task.index"], task["task.assigned.groups"]) for task in found] == [("0", "a,b"), ("1", "c")]
    assert found[0]["task.class"] == "org.apache.kafka.connect.mirror.MirrorCheckpointTask"
    assert states(scene(kind="MirrorCheckpointConnector")) == ["RUNNING"], "no group, no task"
    assert states(scene(kind="MirrorCheckpointConnector", state="PAUSED")) == ["PAUSED", "PAUSED"]


def test_a_job_in_trouble_is_a_failed_task() -> None:
    jobs = [
        {"name": "heartbeats on B", "trouble": "not allowed"},
        {"name": "checkpoints", "trouble": ""},
        {"name": "group offsets", "trouble": "B is out of reach"},
    ]
    beats = scene(kind="MirrorHeartbeatConnector", flow={"jobs": jobs})
    assert status(beats, "x")["tasks"][0]["trace"] == "heartbeats on B: not allowed"
    assert states(beats) == ["RUNNING", "FAILED"]
    points = with_groups(scene(kind="MirrorCheckpointConnector", flow={"jobs": jobs}), "a")
    assert status(points, "x")["tasks"][0]["trace"] == "group offsets: B is out of reach"
    assert states(scene(flow={"jobs": jobs})) == ["RUNNING", "RUNNING", "RUNNING"], "a source connector copies"


def test_a_restart_names_what_begins_anew() -> None:
    made = scene(lanes=[lane(0, 0), lane(1, 0, state="parked", reason="why")])
    shown = status(made, "x")
    every = restarting(shown, only_failed=False)
    assert [every["connector"]["state"], *(task["state"] for task in every["tasks"])] == ["RESTARTING"] * 3
    failed = restarting(shown, only_failed=True)
    assert [failed["connector"]["state"], *(task["state"] for task in failed["tasks"])] == [
        "RUNNING",
        "RUNNING",
        "RESTARTING",
    ]


def test_a_worker_is_where_it_listens() -> None:
    assert worker_id(scene()) == "127.0.0.1:8083"
    assert worker_id(Scene()) == ""
