"""`GET /api/v1/stream`: server-sent events, one a second, with what changed.

Memory is bounded whatever readers do: a message is made when its reader can take it, from the newest picture, so that a slow one
misses pictures and never queues them; one that takes nothing for a minute is let go. No reader gets more than `_BYTES_PER_SECOND`: large
messages only come less often.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from fastapi.responses import Response

from heliograph.errors import Refused
from heliograph.rest.lanes_page import BadQuery, LanesQuery, query_of
from heliograph.rest.pictures import Picture, Pictures

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from heliograph.rest.scene import Scene

_BYTES_PER_SECOND = 48_000
_MOST_READERS = 256
_MOST_ROWS = 100
_MOST_ALSO = 101
"""A page whose order its reader holds, and the lane that is open beside it."""
_STALLED_SECONDS = 60.0
_PARAMETERS = {"flow", "topic", "search", "state", "sort", "order", "offset", "limit", "also"}
_QUIET_SECONDS = 2.0
"""Without news of the driver a message comes all the same: the reader must know that the server lives."""


class _Readers:
    """How many there are."""

    def __init__(self) -> None:
        self.count = 0


class Stream(Response):
    """An answer that goes on until its reader leaves."""

    media_type = "text/event-stream"

    def __init__(self, scene: Scene, pictures: Pictures, readers: _Readers, query: LanesQuery | None) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._scene = scene
        self._pictures = pictures
        self._readers = readers
        self._query = query

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._readers.count += 1
        telling = asyncio.create_task(self._tell(send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._readers.count -= 1
            for task in (telling, leaving):
                task.cancel()
            await asyncio.gather(telling, leaving, return_exceptions=True)

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        seen: Picture | None = None
        while True:
            began = time.monotonic()
            picture = self._pictures.look(self._query)
            text = self._pictures.text(seen, picture, self._age_ms(began))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STALLED_SECONDS):
                    await send({"type": "http.response.body", "body": text, "more_body": True})
                    seen = picture
            if seen is not picture:
                return
            await self._next(began + len(text) / _BYTES_PER_SECOND)

    def _age_ms(self, now: float) -> int:
        return round((now - self._scene.merged_at) * 1000) if self._scene.merged_at else 0

    async def _next(self, not_before: float) -> None:
        """Until there is a newer picture and the reader's share allows it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_QUIET_SECONDS):
                await self._scene.next_tick()
        await asyncio.sleep(max(0.0, not_before - time.monotonic()))


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def router(scene: Scene) -> APIRouter:
    routes = APIRouter(prefix="/api/v1", tags=["see"])
    pictures = Pictures(scene)
    readers = _Readers()

    async def stream(request: Request) -> Response:
        if readers.count >= _MOST_READERS:
            raise Refused(503, f"{_MOST_READERS} streams are open, and no more are served: close one")
        return Stream(scene, pictures, readers, _query(request.query_params))

    routes.add_api_route(
        "/stream",
        stream,
        summary="What changes, as server-sent events; with flow, topic, search, state, sort, order, offset, limit a page of lanes too, with also those by name",
        response_class=Response,
        responses={200: {"content": {"text/event-stream": {}}, "description": "Events `view`, one a second"}},
    )
    return routes


def _query(given: Mapping[str, str]) -> LanesQuery | None:
    """Which lanes a reader wants to see; None: no lanes."""
    if strangers := given.keys() - _PARAMETERS:
        raise BadQuery(f"{min(strangers)} is not known here", min(strangers), sorted(_PARAMETERS))
    if not given.get("flow"):
        return None
    query = query_of(given["flow"], {"limit": "50", **given})
    if query.limit > _MOST_ROWS:
        raise BadQuery(f"limit is '{query.limit}', allowed: a whole number from 1 to {_MOST_ROWS}", "limit")
    also = tuple(lane for lane in given.get("also", "").split(",") if lane)
    if len(also) > _MOST_ALSO:
        raise BadQuery(f"also has {len(also)} lanes, allowed: at most {_MOST_ALSO}", "also")
    return replace(query, also=also)
