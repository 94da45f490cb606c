"""Every route of Connect's, asked rightly and wrongly: a route without a row here fails. What it does to a run is shown by
tests/integration/test_connect_rest.py."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

from heliograph.rest import connect, connect_plugins, health
from heliograph.rest.connect_views import PART
from heliograph.rest.scene import Scene
from tests.support.connect_routes import ROUTES
from tests.support.rest import Rest
from tests.unit.rest.test_connect_routes import made, serving
from tests.unit.rest.test_connect_views import connector

ALL = ("GET", "POST", "PUT", "PATCH", "DELETE")


class Run:
    """A run that does whatever it is asked: the routes' own part is what is looked at."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        scene.merged_at = time.monotonic() + 3_600  # it shows itself all the time
        scene.connect(self)  # type: ignore[arg-type]  the part of a line that is used

    def send(self, message: Mapping[str, Any]) -> None:
        name = message["args"].get("name", "x")
        found = {"x": connector(), name: connector()}
        body = {"offsets": []} if message["what"] == "connector-offsets" else {PART: {"connectors": found}}
        asyncio.get_running_loop().call_soon(self._scene.answered, {"id": message["id"], "body": body})


@pytest.fixture(scope="module")
def rest() -> Iterator[Rest]:
    scene = made()
    Run(scene)
    with serving(scene) as found:
        yield found


def routers() -> list[APIRouter]:
    scene = Scene()
    return [connect.router(scene), connect_plugins.router(scene), health.router(scene)]


def served() -> set[tuple[str, str]]:
    """What Connect's routes are, by the document that is made of them."""
    found: set[tuple[str, str]] = set()
    for api in routers():
        for route in api.routes:
            if isinstance(route, APIRoute) and route.include_in_schema:
                found |= {(method, route.path) for method in route.methods}
    return found


def test_every_route_has_a_row() -> None:
    assert served() | {("GET", "/")} == set(ROUTES), "the root is a router of its own"


@pytest.mark.parametrize("route", sorted(ROUTES), ids=" ".join)
def test_asked_rightly_and_wrongly(rest: Rest, route: tuple[str, str]) -> None:
    good, bad = ROUTES[route]
    assert rest.ask(route[0], good.path, good.body)[0] == good.status
    if bad is not None:
        status, body = rest.ask(route[0], bad.path, bad.body)
        assert (status, body["error_code"]) == (bad.status, bad.status)
        assert body["message"]


@pytest.mark.parametrize("path", sorted({path for _, path in ROUTES}))
def test_every_path_says_what_it_takes_and_refuses_the_rest(rest: Rest, path: str) -> None:
    mine = {method: asked for (method, at), (asked, _) in ROUTES.items() if at == path}
    allowed = {*mine, "OPTIONS", *(["HEAD"] if "GET" in mine else [])}
    where = next(iter(mine.values())).path
    status, headers, body = rest.whole("OPTIONS", where)
    assert (status, set(headers["Allow"].split(",")), set(body.decode().split(", "))) == (200, allowed, allowed)
    for method in {*ALL} - {*mine}:
        status, headers, body = rest.whole(method, where)
        assert (status, set(headers["Allow"].split(","))) == (405, allowed), method
        assert b"HTTP 405 Method Not Allowed" in body
    if "GET" in mine:
        status, headers, body = rest.whole("HEAD", where)
        got = rest.whole("GET", where)
        assert (status, headers["Content-Type"], body) == (got[0], got[1]["Content-Type"], b"")
        assert int(headers["Content-Length"]) == len(got[2])


def test_head_of_what_is_not_there_has_the_status_of_get(rest: Rest) -> None:
    assert [rest.whole("HEAD", path)[0] for path in ("/connectors/nope", "/connectors/x/nonsense")] == [404, 404]
    assert rest.whole("OPTIONS", "/connectors/x/nonsense")[0] == 404


def test_a_run_that_does_not_show_itself_is_not_healthy() -> None:
    with serving(made()) as alone:
        status, body = alone.ask("GET", "/health")
    assert (status, body["status"]) == (503, "unhealthy")
