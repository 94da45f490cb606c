"""Burrow's paths, in Burrow's JSON: the health and the lag of any consumer group on any cluster of the run's file."""

from __future__ import annotations

import platform

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse

from heliograph.errors import Refused
from heliograph.rest.scene import Row, Scene

_NOT_FOUND = 404
_NOBODY: Row = {
    "status": "NOTFOUND",
    "complete": 1.0,
    "partitions": [],
    "partition_count": 0,
    "maxlag": None,
    "totallag": 0,
}


def router(scene: Scene) -> APIRouter:
    api = APIRouter(tags=["burrow"])
    burrow = _Burrow(scene)
    for path, answer, summary in (
        ("/v3/kafka", burrow.clusters, "The clusters"),
        ("/v3/kafka/{cluster}", burrow.cluster, "One cluster"),
        ("/v3/kafka/{cluster}/topic", burrow.topics, "Its topics"),
        ("/v3/kafka/{cluster}/topic/{topic}", burrow.topic, "Where the partitions of a topic end"),
        ("/v3/kafka/{cluster}/topic/{topic}/consumers", burrow.readers, "Groups that committed an offset of a topic"),
        ("/v3/kafka/{cluster}/consumer", burrow.groups, "Its consumer groups"),
        ("/v3/kafka/{cluster}/consumer/{group}", burrow.group, "The newest commits of a group"),
        ("/v3/kafka/{cluster}/consumer/{group}/status", burrow.status, "Its health, with partitions that are not OK"),
        ("/v3/kafka/{cluster}/consumer/{group}/lag", burrow.lag, "Its health, with all partitions"),
    ):
        api.add_api_route(path, answer, summary=summary)

    @api.get("/burrow/admin", summary="GOOD", response_class=PlainTextResponse)
    async def admin() -> str:
        return "GOOD"

    return api


class _Burrow:
    """The driver looks at the clusters; here its answers get Burrow's frame."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    async def clusters(self, request: Request) -> Row:
        return _framed(request, "cluster list returned", await self._scene.ask("health.clusters"))

    async def cluster(self, request: Request, cluster: str) -> Row:
        found = await self._ask("cluster", "cluster module not found", cluster=cluster)
        return _framed(request, "cluster module detail returned", {"module": {"class-name": "kafka", **found}})

    async def topics(self, request: Request, cluster: str) -> Row:
        found = await self._ask("topics", "cluster not found", cluster=cluster)
        return _framed(request, "topic list returned", found)

    async def topic(self, request: Request, cluster: str, topic: str) -> Row:
        found = await self._ask("topic", "cluster or topic not found", cluster=cluster, topic=topic)
        return _framed(request, "topic offsets returned", found)

    async def readers(self, request: Request, cluster: str, topic: str) -> Row:
        found = await self._ask("readers", "cluster or topic not found", cluster=cluster, topic=topic)
        return _framed(request, "consumers of topic returned", found)

    async def groups(self, request: Request, cluster: str) -> Row:
        found = await self._ask("groups", "cluster not found", cluster=cluster)
        return _framed(request, "consumer list returned", found)

    async def group(self, request: Request, cluster: str, group: str) -> Row:
        found = await self._ask("group", "cluster or consumer not found", cluster=cluster, group=group)
        return _framed(request, "consumer detail returned", found)

    async def status(self, request: Request, cluster: str, group: str) -> JSONResponse:
        return await self._health(request, cluster, group, False)

    async def lag(self, request: Request, cluster: str, group: str) -> JSONResponse:
        return await self._health(request, cluster, group, True)

    async def _health(self, request: Request, cluster: str, group: str, everything: bool) -> JSONResponse:
        """A group that is not there has a health of its own word, as Burrow answers it."""
        code = 200
        try:
            found = await self._scene.ask("health.status", cluster=cluster, group=group, all=everything)
        except Refused as error:
            if error.status != _NOT_FOUND:
                raise
            code, found = _NOT_FOUND, _NOBODY
        status = {"cluster": cluster, "group": group, **found}
        return JSONResponse(_framed(request, "consumer status returned", {"status": status}), code)

    async def _ask(self, what: str, missing: str, **args: str) -> Row:
        try:
            return await self._scene.ask(f"health.{what}", **args)
        except Refused as error:
            raise Refused(error.status, missing if error.status == _NOT_FOUND else str(error)) from error


def _framed(request: Request, message: str, body: Row) -> Row:
    return {"error": False, "message": message, **body, "request": {"url": request.url.path, "host": platform.node()}}
