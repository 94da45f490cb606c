"""/metrics: the series of the run in Prometheus' text, or in OpenMetrics where the client asks for that.

The text is made of a picture of the scene, for one answer (exposition.py writes it).
"""

from __future__ import annotations

import time

from fastapi import APIRouter, Request
from fastapi.responses import Response

from heliograph.errors import Refused
from heliograph.metrics.picture import FlowPicture, Picture
from heliograph.metrics.series import series
from heliograph.rest.exposition import content_type_of, exposition
from heliograph.rest.scene import Scene
from heliograph.rest.summaries import flow_summary


def router(scene: Scene, lanes: int) -> APIRouter:
    """`lanes` of each flow have series of their own; -1: all."""
    api = APIRouter(tags=["metrics"])

    @api.get("/metrics", summary="All metrics, for Prometheus", response_class=Response)
    def metrics(request: Request) -> Response:
        """Not on the event loop: thousands of lanes take a while, and others ask meanwhile."""
        text, kind = text_of(picture_of(scene, time.monotonic()), lanes, request.headers.get("accept", ""))
        return Response(text, media_type=kind)

    return api


def text_of(picture: Picture, lanes: int, accept: str = "") -> tuple[bytes, str]:
    """The text in the format that a client accepts, and that format's name."""
    kind = content_type_of(accept)
    return exposition(series(picture, lanes), kind), kind


def picture_of(scene: Scene, now: float) -> Picture:
    """What metrics are made of; Refused before the run showed itself."""
    run = scene.run
    if not run:
        raise Refused(503, "the run has not shown itself yet")
    meters, groups = scene.part("meters"), scene.part("groups")
    flows = [
        FlowPicture(
            summary=flow_summary(scene, name),
            lanes=scene.lanes_of(name),
            jobs=flow["jobs"],
            meters=meters.get("flows", {}).get(name),
            gone=meters.get("gone", {}).get(name, {}),
            groups=groups.get(name, ()),
            wan_cost_per_gb=flow["wan_cost_per_gb"],
        )
        for name, flow in list(scene.flows.items())
    ]
    return Picture(run, max(0.0, now - scene.merged_at), flows, meters)
