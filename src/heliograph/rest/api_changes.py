"""Our own REST, under /api/v1: what can be changed. Each change has a reason, which is kept and shown."""

from __future__ import annotations

from fastapi import APIRouter, Request

from heliograph.rest.api import known
from heliograph.rest.guard import who
from heliograph.rest.payloads import NewTopic, Subject, Throttle
from heliograph.rest.scene import Row, Scene


def router(scene: Scene) -> APIRouter:
    api = APIRouter(prefix="/api/v1", tags=["steer"])

    async def hold(verb: str, flow: str, subject: Subject, request: Request) -> Row:
        known(scene, flow)
        return await scene.tell(verb, flow=flow, **subject.model_dump(), who=who(request))

    @api.post("/flows/{flow}/pause", summary="Stop a flow, a topic or a partition at once")
    async def pause(flow: str, subject: Subject, request: Request) -> Row:
        return await hold("pause", flow, subject, request)

    @api.post("/flows/{flow}/resume", summary="Let it go on where it was")
    async def resume(flow: str, subject: Subject, request: Request) -> Row:
        return await hold("resume", flow, subject, request)

    @api.post("/flows/{flow}/drain", summary="Carry on to where the source ends now, then stop")
    async def drain(flow: str, subject: Subject, request: Request) -> Row:
        return await hold("drain", flow, subject, request)

    @api.put("/flows/{flow}/throttle", summary="Bytes per second of a flow or a topic")
    async def throttle(flow: str, limit: Throttle, request: Request) -> Row:
        known(scene, flow)
        return await scene.tell("throttle", flow=flow, **limit.model_dump(), who=who(request))

    @api.post("/flows/{flow}/topics", summary="Add a topic to a running flow", status_code=201)
    async def add(flow: str, new: NewTopic, request: Request) -> Row:
        known(scene, flow)
        return await scene.tell("add-topic", flow=flow, **new.model_dump(), who=who(request))

    @api.delete("/flows/{flow}/topics/{topic}", summary="Take a topic out; what was copied stays")
    async def remove(flow: str, topic: str, request: Request, reason: str = "", dry_run: bool = False) -> Row:
        known(scene, flow)
        asked = {"flow": flow, "topic": topic, "reason": reason, "dry_run": dry_run}
        return await scene.tell("remove-topic", **asked, who=who(request))

    @api.post("/reload", summary="Read the file again")
    async def reload(request: Request, reason: str = "", dry_run: bool = False) -> Row:
        return await scene.tell("reload", reason=reason, dry_run=dry_run, who=who(request))

    return api
