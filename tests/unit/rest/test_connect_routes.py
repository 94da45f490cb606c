"""Connect's routes on a real server, over a scene that a run showed: what is asked, and every way to ask wrongly."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from heliograph.config.flows import ServerSettings
from heliograph.rest.app import build
from heliograph.rest.connect_views import PART
from heliograph.rest.scene import Scene
from tests.support.rest import Rest
from tests.unit.rest.test_connect_views import scene as shown


@contextmanager
def serving(scene: Scene) -> Iterator[Rest]:
    door = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(build(scene, ServerSettings()), log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[door])), daemon=True)
    thread.start()
    yield Rest(f"http://127.0.0.1:{door.getsockname()[1]}")
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def rest() -> Iterator[Rest]:
    """Nothing changes a scene that has no run behind it: what must be asked of one is refused with 503."""
    with serving(made()) as found:
        yield found


def made() -> Scene:
    found = shown()
    found.parts[PART]["cluster_id"] = "abc"
    return found


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/", {"version": "0.9", "commit": "Unknown", "kafka_cluster_id": "abc"}),
        ("/connectors", ["x"]),
        ("/connectors/", ["x"]),
        ("/connectors?expand=bogus", {"x": {}}),
        ("/connectors/x/config", {"name": "x", "tasks.max": "2"}),
        ("/connectors/x/topics", {"x": {"topics": ["A.orders"]}}),
        ("/connectors/nope/topics", {"nope": {"topics": []}}),
        (
            "/connectors/x/tasks/1/status",
            {"id": 1, "state": "RUNNING", "worker_id": "127.0.0.1:8083", "version": "0.9"},
        ),
    ],
)
def test_what_there_is(rest: Rest, path: str, body: Any) -> None:
    assert rest.get(path) == body


def test_expanded_connectors_have_what_each_route_says(rest: Rest) -> None:
    whole = rest.get("/connectors?expand=status&expand=info")
    assert whole == {"x": {"status": rest.get("/connectors/x/status"), "info": rest.get("/connectors/x")}}
    assert [task["id"] for task in rest.get("/connectors/x/tasks")] == [
        {"connector": "x", "task": 0},
        {"connector": "x", "task": 1},
    ]


def test_classes_and_their_fields(rest: Rest) -> None:
    assert [one["class"].rpartition(".")[2] for one in rest.get("/connector-plugins")] == [
        "MirrorCheckpointConnector",
        "MirrorHeartbeatConnector",
        "MirrorSourceConnector",
    ]
    fields = rest.get("/connector-plugins/MirrorSource/config")
    assert {"name", "topics"} <= {field["name"] for field in fields}
    path = "/connector-plugins/MirrorSourceConnector/config/validate"
    status, answer = rest.ask("PUT", path, {"connector.class": "MirrorSource", "topics": "("})
    assert (status, answer["error_count"]) == (200, 5)


@pytest.mark.parametrize(
    ("method", "path", "body", "expected", "message"),
    [
        ("GET", "/connectors/nope", None, 404, "Connector nope not found"),
        ("GET", "/connectors/nope/status", None, 404, "No status found for connector nope"),
        ("GET", "/connectors/x/tasks/2/status", None, 404, "No status found for task x-2"),
        ("GET", "/connectors/x/tasks/y/status", None, 404, "HTTP 404 Not Found"),
        ("GET", "/connectors/x/tasks/-1/status", None, 404, "HTTP 404 Not Found"),
        ("PUT", "/connectors", None, 405, "HTTP 405 Method Not Allowed"),
        ("PUT", "/connectors/nope/pause", None, 404, "Unknown connector nope"),
        ("POST", "/connectors/nope/restart", None, 404, "Unknown connector: nope"),
        ("POST", "/connectors/x/tasks/9/restart", None, 404, "Unknown task: x-9"),
        ("DELETE", "/connectors/nope", None, 404, "Connector nope not found"),
        ("POST", "/connectors", {"name": "x", "config": {}}, 409, "Connector x already exists"),
        ("POST", "/connectors", {"name": "y", "config": 5}, 400, "config is a number"),
        ("PATCH", "/connectors/x/offsets", {"offsets": []}, 400, "Partitions / offsets need to be provided"),
        ("GET", "/connector-plugins/Nope/config", None, 404, "Unknown plugin Nope."),
        ("PUT", "/connector-plugins/MirrorSource/config/validate", {}, 400, "contains no connector type"),
        ("PUT", "/connector-plugins/MirrorSource/config/validate", {"connector.class": "X"}, 400, "does not match"),
        ("PUT", "/connector-plugins/Nope/config/validate", {"connector.class": "Nope"}, 404, "Unknown plugin Nope."),
        ("PUT", "/connectors/x/pause", None, 503, "the run does not answer"),
        ("GET", "/connectors/x/offsets", None, 503, "the run does not answer"),
    ],
)
def test_what_is_refused(rest: Rest, method: str, path: str, body: Any, expected: int, message: str) -> None:
    status, answer = rest.ask(method, path, body)
    assert (status, answer.keys()) == (expected, {"error_code", "message"}), answer
    assert answer["error_code"] == expected
    assert message in answer["message"]


def test_a_browser_is_not_given_json_at_the_root(rest: Rest) -> None:
    status, answer = rest.ask("GET", "/", headers={"Accept": "text/html,application/xhtml+xml"})
    assert not (isinstance(answer, dict) and "kafka_cluster_id" in answer), "the page has this path for browsers"
    assert status in (200, 404)
