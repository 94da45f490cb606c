"""Connectors over a steering that keeps nothing yet: what is shown, and what is refused before anything is written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from heliograph.control.amendments import Amendments, amendments, load_amended
from heliograph.control.connectors import Connectors
from heliograph.control.steering import Steering
from heliograph.errors import Refused

FILE = (
    "clusters = A, C\nA.bootstrap.servers = a:1\nC.bootstrap.servers = c:1\nA->C.enabled = true\n"
    "A->C.topics = orders\nA.ssl.key.password = hunter2\n"
)
CONFIG = {
    "connector.class": "MirrorSource",
    "source.cluster.alias": "A",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.alias": "B",
    "target.cluster.bootstrap.servers": "b:1",
}


def rows(**connectors: dict[str, str]) -> dict[str, Any]:
    kept = {"who": "me", "since_ms": 1}
    return {f"connector/{name}": {"name": name, "config": config, **kept} for name, config in connectors.items()}


def made(tmp_path: Path, rows: dict[str, Any] | None = None) -> Connectors:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE)
    steering = Steering(str(file), None)
    steering.amended = amendments(rows or {})
    settings = load_amended(str(file), steering.amended)
    steering.unfit = settings.unfit
    return Connectors(steering, lambda: settings)


def refused(connectors: Connectors, name: str, config: dict[str, str], new: bool = True) -> Refused:
    with pytest.raises(Refused) as error:
        asyncio.run(connectors.put(name, config, "RUNNING", new, "me"))
    return error.value


def test_the_files_flows_are_shown_with_what_they_set_and_without_secrets(tmp_path: Path) -> None:
    shown = made(tmp_path).shown()
    assert sorted(shown) == [f"Mirror{kind}Connector-A-C" for kind in ("Checkpoint", "Heartbeat", "Source")]
    source = shown["MirrorSourceConnector-A-C"]
    assert (source["origin"], source["state"], source["config"]["topics"]) == ("file", "RUNNING", "orders")
    assert "hunter2" not in str(shown)
    assert shown["MirrorCheckpointConnector-A-C"]["topics"] == ["A.checkpoints.internal"]
    assert shown["MirrorHeartbeatConnector-A-C"]["topics"] == ["heartbeats"]


def test_those_of_rest_stand_beside_them_and_one_that_does_not_fit_says_why(tmp_path: Path) -> None:
    filed = {**CONFIG, "target.cluster.alias": "C", "target.cluster.bootstrap.servers": "c:1"}
    connectors = made(tmp_path, rows(good=CONFIG, bad=filed))
    shown = connectors.shown()
    assert (shown["good"]["flow"], shown["good"]["origin"], shown["good"]["trace"]) == ("A->B", "rest", "")
    assert "the file has flow A->C" in shown["bad"]["trace"]
    assert connectors.shown() is shown, "made anew only when something changed"


def test_states_are_those_of_the_flow_or_of_the_job(tmp_path: Path) -> None:
    hold = {
        "flow": "A->B",
        "topic": "",
        "partition": -1,
        "kind": "pause",
        "reason": "",
        "who": "",
        "since_ms": 1,
        "ends": [],
    }
    kept = {
        **rows(good=CONFIG),
        "hold/A->B": hold,
        "connector-state/MirrorHeartbeatConnector-A-C": {"name": "MirrorHeartbeatConnector-A-C", "state": "STOPPED"},
    }
    shown = made(tmp_path, kept).shown()
    assert shown["good"]["state"] == "PAUSED", "somebody paused the flow by other ways"
    assert shown["MirrorHeartbeatConnector-A-C"]["state"] == "STOPPED", "it is still listed, or it could not be resumed"
    stopped = {**kept, "connector-state/good": {"name": "good", "state": "STOPPED"}}
    assert made(tmp_path, stopped).shown()["good"]["state"] == "STOPPED"
    without_hold = {key: row for key, row in stopped.items() if not key.startswith("hold/")}
    assert made(tmp_path, without_hold).shown()["good"]["state"] == "RUNNING", "somebody resumed the flow by other ways"


@pytest.mark.parametrize(
    ("name", "change", "status", "words"),
    [
        ("good", {}, 409, "Connector good already exists"),
        ("MirrorSourceConnector-A-C", {}, 409, "already exists"),
        ("x", {"name": "y"}, 400, "Connector name configuration (y) doesn't match connector name in the URL (x)"),
        ("a/b", {}, 400, "can stand in a path"),
        ("a\nb", {}, 400, "can stand in a path"),
        ("x", {"connector.class": "Nope"}, 400, "matches Nope, expected one of"),
        ("x", {"offset.lag.max": "x"}, 400, "contains the following 1 error(s):\nInvalid value x"),
        ("x", {"target.cluster.alias": "C", "target.cluster.bootstrap.servers": "c:1"}, 400, "the file has flow A->C"),
        ("x", {"source.cluster.bootstrap.servers": "z:1"}, 400, "the file has a:1"),
        ("x", {"topics": "${env:NOT_THERE_AT_ALL}"}, 400, "NOT_THERE_AT_ALL is not set"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(
    tmp_path: Path, name: str, change: dict[str, str], status: int, words: str
) -> None:
    connectors = made(tmp_path, rows(good=CONFIG) if name == "good" else None)
    before = connectors.shown()
    error = refused(connectors, name, {**CONFIG, **change})
    assert (error.status, words in str(error)) == (status, True), str(error)
    assert connectors.shown() is before


def test_a_configuration_without_a_class_and_one_of_the_file_are_refused(tmp_path: Path) -> None:
    connectors = made(tmp_path)
    assert str(refused(connectors, "x", {})) == "Connector config {name=x} contains no connector type"
    error = refused(connectors, "MirrorSourceConnector-A-C", CONFIG, new=False)
    assert (error.status, "change it there" in str(error)) == (409, True)
    with pytest.raises(Refused, match="Connector nope not found"):
        asyncio.run(connectors.delete("nope", "me"))


def test_what_is_kept_is_read_and_what_cannot_be_read_is_passed_over() -> None:
    found = amendments(
        {**rows(x=CONFIG), "connector/y": {"name": "y"}, "connector-state/x": {"name": "x", "state": "?"}}
    )
    assert [one.name for one in found.connectors] == ["x"]
    assert found.states == ()
    assert Amendments().connectors == ()
