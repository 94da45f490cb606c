"""Connect's routes that are of no connector: the worker itself, its classes and their fields."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from heliograph.config.connector_definitions import definitions, validation
from heliograph.config.connectors import ConnectorKind, kind_of
from heliograph.errors import Refused
from heliograph.rest.connect_bodies import read_object, texts
from heliograph.rest.connect_views import PART
from heliograph.rest.scene import Scene
from heliograph.rest.verbs import complete


class _NotForBrowsers(APIRoute):
    """A browser that asks for / wants the page, which another route has."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        accepted = dict(scope.get("headers", ())).get(b"accept", b"")
        return (Match.NONE, {}) if b"text/html" in accepted else super().matches(scope)


def router(scene: Scene) -> APIRouter:
    api = APIRouter(tags=["connect"])
    root = APIRouter(route_class=_NotForBrowsers, tags=["connect"])

    @root.get("/", summary="The worker: version, and the cluster that keeps its state; a browser gets the page")
    async def worker() -> JSONResponse:
        cluster = scene.part(PART).get("cluster_id", "")
        return JSONResponse({"version": _version(scene), "commit": "Unknown", "kafka_cluster_id": cluster})

    @api.get("/connector-plugins", summary="The classes that a connector may have")
    async def plugins() -> JSONResponse:
        return JSONResponse(
            [{"class": one.java_class, "type": "source", "version": _version(scene)} for one in sorted(ConnectorKind)]
        )

    @api.get("/connector-plugins/{java_class}/config", summary="The fields of a class")
    async def fields(java_class: str) -> JSONResponse:
        return JSONResponse(definitions(_known(java_class)))

    @api.put("/connector-plugins/{java_class}/config/validate", summary="Look at a configuration, change nothing")
    async def validate(java_class: str, request: Request) -> JSONResponse:
        config = texts(await read_object(request))
        asked = config.get("connector.class", "")
        if not asked:
            raise Refused(400, "Connector config contains no connector type")
        kind = _known(java_class)
        if kind_of(asked) is not kind:
            raise Refused(400, f"Included connector type {asked} does not match request type {java_class}")
        return JSONResponse(validation(kind, config, bool(scene.part(PART).get("unknown_is_fault"))))

    complete(api)
    complete(root)
    api.include_router(root)
    return api


def _known(java_class: str) -> ConnectorKind:
    kind = kind_of(java_class)
    if kind is None:
        raise Refused(404, f"Unknown plugin {java_class}.")
    return kind


def _version(scene: Scene) -> Any:
    return scene.run.get("version", "")
