"""Flows as Kafka Connect shows connectors: info, status, tasks and topics, in its fields and words.

A task carries as many lanes as its share of `tasks.max` is; it is FAILED where one of them is parked, with the reasons as trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from heliograph.config.connectors import PACKAGE, ConnectorKind

if TYPE_CHECKING:
    from heliograph.rest.scene import Scene

Row = dict[str, Any]
PART = "connectors"
_TYPE = "source"
_RUNNING, _PAUSED, _STOPPED, _FAILED, _UNASSIGNED = "RUNNING", "PAUSED", "STOPPED", "FAILED", "UNASSIGNED"
_WAITING = ("waiting", "attaching")
_JOBS: dict[str, tuple[str, ...]] = {
    ConnectorKind.CHECKPOINT: ("checkpoints", "group offsets"),
    ConnectorKind.HEARTBEAT: ("heartbeats on ",),
}
"""The names, or how they begin, of the jobs that do a connector's work."""


def connectors(scene: Scene) -> dict[str, Row]:
    """All of them by name, as the driver shows them."""
    found: dict[str, Row] = scene.part(PART).get("connectors", {})
    return found


def worker_id(scene: Scene) -> str:
    """Where this worker is reached."""
    return urlsplit(scene.listens_on[0]).netloc if scene.listens_on else ""


def info(scene: Scene, name: str) -> Row:
    row = connectors(scene)[name]
    ids = range(len(_shares(scene, row)))
    return {
        "name": name,
        "config": row["config"],
        "tasks": [{"connector": name, "task": number} for number in ids],
        "type": _TYPE,
    }


def status(scene: Scene, name: str) -> Row:
    row = connectors(scene)[name]
    shares = _shares(scene, row)
    return {
        "name": name,
        "connector": {**_state(scene, row), "worker_id": worker_id(scene), "version": _version(scene)},
        "tasks": [_task(scene, row, number, lanes) for number, lanes in enumerate(shares)],
        "type": _TYPE,
    }


def restarting(shown: Row, only_failed: bool) -> Row:
    """The status as Connect answers it to a restart: what is to begin anew is RESTARTING."""
    connector = shown["connector"]
    again = connector if only_failed and connector["state"] != _FAILED else {**connector, "state": "RESTARTING"}
    tasks = [
        task if only_failed and task["state"] != _FAILED else {**task, "state": "RESTARTING"} for task in shown["tasks"]
    ]
    return {**shown, "connector": again, "tasks": tasks}


def task_configs(scene: Scene, name: str) -> list[Row]:
    row = connectors(scene)[name]
    kind = ConnectorKind(row["kind"])
    task_class = f"{PACKAGE}.{kind.removesuffix('Connector')}Task"
    return [
        {
            "id": {"connector": name, "task": number},
            "config": {**row["config"], "task.class": task_class, **_assigned(kind, number, lanes)},
        }
        for number, lanes in enumerate(_shares(scene, row))
    ]


def _assigned(kind: ConnectorKind, number: int, share: Sequence[Row]) -> dict[str, str]:
    if kind is ConnectorKind.HEARTBEAT:
        return {}
    if kind is ConnectorKind.CHECKPOINT:
        return {"task.index": str(number), "task.assigned.groups": ",".join(group["group"] for group in share)}
    named = ",".join(f"{lane['topic']}-{lane['partition']}" for lane in share)
    return {"task.index": str(number), "task.assigned.partitions": named}


def topics(scene: Scene, name: str) -> list[str]:
    """The topics that it writes; none of one that is not known, as in Connect."""
    row = connectors(scene).get(name)
    if row is None or row["flow"] not in scene.flows:
        return []
    if row["kind"] == ConnectorKind.SOURCE:
        return sorted(scene.flows[row["flow"]]["topics"].values())
    return list(row["topics"])


# -- states ---------------------------------------------------------------------------------------------------------------


def _version(scene: Scene) -> str:
    return str(scene.run.get("version", ""))


def _state(scene: Scene, row: Row) -> Row:
    """Of the connector itself: its flow as a whole."""
    flow = scene.flows.get(row["flow"])
    trace = row["trace"] or (flow["trouble"] if flow is not None else "")
    if row["state"] == _STOPPED:
        return {"state": _STOPPED}
    if trace:
        return {"state": _FAILED, "trace": trace}
    if flow is None or not flow["opened"]:
        return {"state": _UNASSIGNED}
    return {"state": row["state"]}


def _shares(scene: Scene, row: Row) -> list[list[Row]]:
    """What each task carries: lanes dealt out in turn, groups in runs, as MirrorMaker 2 does; heartbeats are one task's."""
    flow = scene.flows.get(row["flow"])
    if row["state"] == _STOPPED or row["trace"] or flow is None or not flow["opened"]:
        return []
    if row["kind"] == ConnectorKind.HEARTBEAT:
        return [[]]
    if row["kind"] == ConnectorKind.CHECKPOINT:
        return _shared_groups(scene, row)
    lanes = sorted(scene.lanes_of(row["flow"]), key=lambda lane: (lane["topic"], lane["partition"]))
    tasks = min(_tasks_max(row["config"]), len(lanes))
    return [lanes[number::tasks] for number in range(tasks)]


def _shared_groups(scene: Scene, row: Row) -> list[list[Row]]:
    """No group, no task. While it is paused nobody looks for groups: then one task stands for all."""
    if row["state"] == _PAUSED:
        return [[]]
    names = sorted({found["group"] for found in scene.part("groups").get(row["flow"], ())})
    tasks = min(_tasks_max(row["config"]), len(names))
    each, more = divmod(len(names), tasks) if tasks else (0, 0)
    cuts = [each * number + min(number, more) for number in range(tasks + 1)]
    return [[{"group": name} for name in names[begin:end]] for begin, end in pairwise(cuts)]


def _tasks_max(config: Row) -> int:
    given = str(config.get("tasks.max", "1"))
    return max(1, int(given)) if given.isdecimal() else 1


def _task(scene: Scene, row: Row, number: int, share: Sequence[Row]) -> Row:
    found: Row = {"id": number, "state": row["state"], "worker_id": worker_id(scene), "version": _version(scene)}
    if row["kind"] == ConnectorKind.SOURCE:
        found["state"] = _state_of(row["state"], share)
        trace = _trace(share)
    else:
        trace = _trouble_of_jobs(scene.flows[row["flow"]], row["kind"])
        found["state"] = _FAILED if trace else row["state"]
    return {**found, "trace": trace} if trace else found


def _trouble_of_jobs(flow: Row, kind: str) -> str:
    """Of a connector that copies nothing: its jobs try again by themselves, and say meanwhile what keeps them from it."""
    mine = [job for job in flow["jobs"] if job["name"].startswith(_JOBS[kind])]
    return "\n".join(f"{job['name']}: {job['trouble']}" for job in mine if job["trouble"])


def _state_of(wanted: str, lanes: Iterable[Row]) -> str:
    states = {lane["state"] for lane in lanes}
    if "parked" in states:
        return _FAILED
    if wanted == _PAUSED and states <= {"paused"}:
        return _PAUSED
    return _UNASSIGNED if states <= set(_WAITING) else _RUNNING


def _trace(lanes: Iterable[Row]) -> str:
    return "\n".join(f"{lane['lane']}: {lane['reason']}" for lane in lanes if lane["state"] == "parked")
