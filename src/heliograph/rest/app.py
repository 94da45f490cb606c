"""All routes as one app."""

from __future__ import annotations

import importlib.metadata

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from heliograph.config.flows import ServerSettings
from heliograph.rest import api, api_changes, burrow, connect, connect_plugins, health, metrics, page, stream
from heliograph.rest.guard import Guard
from heliograph.rest.refusals import add_handlers
from heliograph.rest.scene import Scene

_ABOUT = """\
A running mirror, seen and steered. What changes something needs a bearer token where `rest.auth.tokens.file` is set.
"""


def build(scene: Scene, settings: ServerSettings) -> Guard:
    app = FastAPI(
        title="Heliograph",
        version=importlib.metadata.version("heliograph"),
        description=_ABOUT,
        docs_url=None,  # its page would load scripts from another host
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        default_response_class=JSONResponse,
    )
    for part in (health, api, api_changes, burrow, connect, connect_plugins, stream):
        app.include_router(part.router(scene))
    app.include_router(metrics.router(scene, settings.metrics_lanes))
    page.add_to(app)
    add_handlers(app)
    return Guard(app, settings)
