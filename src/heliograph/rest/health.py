"""/health: whether the run is there and copies."""

from __future__ import annotations

import time

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from heliograph.rest.scene import Scene
from heliograph.rest.verbs import complete

_SILENT_SECONDS = 10.0


def router(scene: Scene) -> APIRouter:
    api = APIRouter(tags=["health"])

    @api.get("/health", summary="200 while the run shows itself, else 503; Connect's words")
    async def health() -> JSONResponse:
        silent = time.monotonic() - scene.merged_at
        if not scene.merged_at or silent > _SILENT_SECONDS:
            return JSONResponse({"status": "unhealthy", "message": "The run does not show itself."}, 503)
        return JSONResponse(
            {"status": "healthy", "message": "Worker has completed startup and is ready to handle requests."}
        )

    complete(api)
    return api
