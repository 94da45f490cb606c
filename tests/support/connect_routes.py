"""Every route of Connect's with a right and a wrong way to ask it. A route without a row fails both tests that walk them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CONFIG = {"connector.class": "MirrorSource"}
OFFSETS = {"offsets": [{"partition": {"topic": "orders", "partition": 0}, "offset": {"offset": 1}}]}


@dataclass(frozen=True)
class Asked:
    """A path, what is sent there, and the status of the answer."""

    path: str
    status: int
    body: Any = None


def of(rest: str, good: int, bad: Asked | None, body: Any = None) -> tuple[Asked, Asked | None]:
    """Rightly of connector x; wrongly as it says, None where Connect has no wrong way to ask either."""
    return Asked(f"/connectors/x{rest}", good, body), bad


def nope(rest: str, body: Any = None) -> Asked:
    return Asked(f"/connectors/nope{rest}", 404, body)


ROUTES: Mapping[tuple[str, str], tuple[Asked, Asked | None]] = {
    ("GET", "/"): (Asked("/", 200), None),
    ("GET", "/health"): (Asked("/health", 200), None),
    ("GET", "/connector-plugins"): (Asked("/connector-plugins", 200), None),
    ("GET", "/connector-plugins/{java_class}/config"): (
        Asked("/connector-plugins/MirrorSource/config", 200),
        Asked("/connector-plugins/Nope/config", 404),
    ),
    ("PUT", "/connector-plugins/{java_class}/config/validate"): (
        Asked("/connector-plugins/MirrorSource/config/validate", 200, CONFIG),
        Asked("/connector-plugins/MirrorSource/config/validate", 400, {}),
    ),
    ("GET", "/connectors"): (Asked("/connectors?expand=status", 200), None),
    ("POST", "/connectors"): (
        Asked("/connectors", 201, {"name": "y", "config": CONFIG}),
        Asked("/connectors", 409, {"name": "x", "config": CONFIG}),
    ),
    ("GET", "/connectors/{name}"): of("", 200, nope("")),
    ("DELETE", "/connectors/{name}"): of("", 204, nope("")),
    ("GET", "/connectors/{name}/config"): of("/config", 200, nope("/config")),
    ("PUT", "/connectors/{name}/config"): of("/config", 200, Asked("/connectors/x/config", 400, []), CONFIG),
    ("PATCH", "/connectors/{name}/config"): of("/config", 200, nope("/config", {"a": "b"}), {"a": None}),
    ("GET", "/connectors/{name}/status"): of("/status", 200, nope("/status")),
    ("GET", "/connectors/{name}/tasks"): of("/tasks", 200, nope("/tasks")),
    ("GET", "/connectors/{name}/tasks/{task:int}/status"): of("/tasks/1/status", 200, nope("/tasks/0/status")),
    ("POST", "/connectors/{name}/tasks/{task:int}/restart"): of(
        "/tasks/0/restart", 204, Asked("/connectors/x/tasks/9/restart", 404)
    ),
    ("GET", "/connectors/{name}/topics"): of("/topics", 200, None),
    ("PUT", "/connectors/{name}/topics/reset"): of("/topics/reset", 202, None),
    ("GET", "/connectors/{name}/offsets"): of("/offsets", 200, nope("/offsets")),
    ("PATCH", "/connectors/{name}/offsets"): of(
        "/offsets", 200, Asked("/connectors/x/offsets", 400, {"offsets": []}), OFFSETS
    ),
    ("DELETE", "/connectors/{name}/offsets"): of("/offsets", 200, nope("/offsets")),
    ("PUT", "/connectors/{name}/pause"): of("/pause", 202, nope("/pause")),
    ("PUT", "/connectors/{name}/resume"): of("/resume", 202, nope("/resume")),
    ("PUT", "/connectors/{name}/stop"): of("/stop", 204, nope("/stop")),
    ("POST", "/connectors/{name}/restart"): of("/restart?includeTasks=true", 202, nope("/restart")),
}
