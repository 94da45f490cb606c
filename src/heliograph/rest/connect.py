"""Kafka Connect's REST: its paths, status codes, fields and sentences, over the flows of this run."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from heliograph.errors import Refused
from heliograph.rest.connect_bodies import new_connector, offsets_of, patch_of, read_object, texts
from heliograph.rest.connect_views import PART, connectors, info, restarting, status, task_configs, topics
from heliograph.rest.guard import who
from heliograph.rest.scene import Row, Scene
from heliograph.rest.verbs import complete

_STATES = {"pause": ("PAUSED", 202), "resume": ("RUNNING", 202), "stop": ("STOPPED", 204)}


def router(scene: Scene) -> APIRouter:
    api = APIRouter(tags=["connect"])
    seen, told = _Seen(scene), _Told(scene)
    for method, path, answer, summary in (
        ("GET", "", seen.names, "The connectors; expand=info, expand=status for more"),
        ("POST", "", told.create, "A new connector: a flow, or a part of one"),
        ("GET", "/{name}", seen.info, "A connector, its configuration and its tasks"),
        ("DELETE", "/{name}", told.delete, "Take a connector out; what was copied stays, and so does its position"),
        ("GET", "/{name}/config", seen.config, "Its configuration; secrets are hidden"),
        ("PUT", "/{name}/config", told.put, "Another configuration, or a new connector"),
        ("PATCH", "/{name}/config", told.patch, "Some fields of the configuration; null takes one out"),
        ("GET", "/{name}/status", seen.status, "What it does; a parked lane is a FAILED task"),
        ("GET", "/{name}/tasks", seen.tasks, "Its tasks, each with the partitions it carries"),
        ("GET", "/{name}/tasks/{task:int}/status", seen.task, "What one task does"),
        ("POST", "/{name}/tasks/{task:int}/restart", told.restart_task, "Begin a task's lanes anew where they are"),
        ("GET", "/{name}/topics", seen.topics, "The topics that it writes"),
        ("PUT", "/{name}/topics/reset", told.reset_topics, "Nothing to do: topics are always those of now"),
        ("GET", "/{name}/offsets", seen.offsets, "The last record that was copied of each partition"),
        ("PATCH", "/{name}/offsets", told.alter_offsets, "While stopped: go on behind another record"),
        ("DELETE", "/{name}/offsets", told.reset_offsets, "While stopped: begin anew"),
        ("PUT", "/{name}/pause", told.state("pause"), "Stop it, with its tasks"),
        ("PUT", "/{name}/resume", told.state("resume"), "Let it go on"),
        ("PUT", "/{name}/stop", told.state("stop"), "Stop it, without tasks: offsets may be changed"),
        ("POST", "/{name}/restart", told.restart, "Look at the clusters anew; includeTasks=true: begin its lanes anew"),
    ):
        for slash in ("", "/") if path in ("", "/{name}") else ("",):
            api.add_api_route(
                f"/connectors{path}{slash}",
                answer,
                methods=[method],
                summary=summary,
                include_in_schema=not slash,
                response_model=None,
            )
    complete(api)
    return api


def known(scene: Scene, name: str, sentence: str = "Connector {name} not found") -> Row:
    row = connectors(scene).get(name)
    if row is None:
        raise Refused(404, sentence.format(name=name))
    return row


class _Seen:
    """The answers that change nothing."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    async def names(self, request: Request) -> JSONResponse:
        found = sorted(connectors(self._scene))
        expand = request.query_params.getlist("expand")
        if not expand:
            return JSONResponse(found)
        views = {"status": status, "info": info}
        return JSONResponse(
            {name: {what: views[what](self._scene, name) for what in expand if what in views} for name in found}
        )

    async def info(self, name: str) -> JSONResponse:
        known(self._scene, name)
        return JSONResponse(info(self._scene, name))

    async def config(self, name: str) -> JSONResponse:
        return JSONResponse(known(self._scene, name)["config"])

    async def status(self, name: str) -> JSONResponse:
        known(self._scene, name, "No status found for connector {name}")
        return JSONResponse(status(self._scene, name))

    async def tasks(self, name: str) -> JSONResponse:
        known(self._scene, name)
        return JSONResponse(task_configs(self._scene, name))

    async def task(self, name: str, task: int) -> JSONResponse:
        found = status(self._scene, name)["tasks"] if name in connectors(self._scene) else []
        if not 0 <= task < len(found):
            raise Refused(404, f"No status found for task {name}-{task}")
        return JSONResponse(found[task])

    async def topics(self, name: str) -> JSONResponse:
        return JSONResponse({name: {"topics": topics(self._scene, name)}})

    async def offsets(self, name: str) -> JSONResponse:
        known(self._scene, name)
        return JSONResponse(await self._scene.ask("connector-offsets", name=name))


class _Told:
    """The changes: each is asked of the driver, which answers with the connectors as they are then."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    async def _ask(self, what: str, **args: Any) -> Row:
        answer = await self._scene.tell(what, **args)
        if PART in answer:  # whoever asks next must see it, also before the run shows itself again
            self._scene.parts[PART] = answer[PART]
        return answer

    async def create(self, request: Request) -> JSONResponse:
        name, config, state = new_connector(await read_object(request))
        if name in connectors(self._scene):
            raise Refused(409, f"Connector {name} already exists")
        await self._ask("connector-put", name=name, config=config, state=state, new=True, who=who(request))
        return self._created(request, name)

    def _created(self, request: Request, name: str) -> JSONResponse:
        where = f"{request.url.scheme}://{request.url.netloc}/connectors/{quote(name)}"
        return JSONResponse({**info(self._scene, name), "tasks": []}, 201, {"Location": where})

    async def put(self, name: str, request: Request) -> JSONResponse:
        config = texts(await read_object(request))
        is_new = name not in connectors(self._scene)
        await self._ask("connector-put", name=name, config=config, state="RUNNING", new=is_new, who=who(request))
        return self._created(request, name) if is_new else JSONResponse(info(self._scene, name))

    async def patch(self, name: str, request: Request) -> JSONResponse:
        known(self._scene, name)
        fields = patch_of(await read_object(request))
        await self._ask("connector-patch", name=name, fields=fields, who=who(request))
        return JSONResponse(info(self._scene, name))

    async def delete(self, name: str, request: Request) -> Response:
        known(self._scene, name)
        await self._ask("connector-delete", name=name, who=who(request))
        return Response(status_code=204)

    def state(self, verb: str) -> Any:
        wanted, code = _STATES[verb]

        async def change(name: str, request: Request) -> Response:
            known(self._scene, name, "Unknown connector {name}")
            await self._ask("connector-state", name=name, state=wanted, who=who(request))
            return Response(status_code=code)

        change.__name__ = verb
        return change

    async def restart(self, name: str, request: Request) -> Response:
        known(self._scene, name, "Unknown connector: {name}")
        tasks, failed = (request.query_params.get(one) == "true" for one in ("includeTasks", "onlyFailed"))
        shown = restarting(status(self._scene, name), failed)
        again = any(task["state"] == "RESTARTING" for task in shown["tasks"])
        await self._ask("connector-restart", name=name, lanes=tasks and again, who=who(request))
        return JSONResponse(shown, 202) if tasks or failed else Response(status_code=204)

    async def restart_task(self, name: str, task: int, request: Request) -> Response:
        known(self._scene, name, "Unknown connector: {name}")
        if not 0 <= task < len(status(self._scene, name)["tasks"]):
            raise Refused(404, f"Unknown task: {name}-{task}")
        await self._ask("connector-restart", name=name, lanes=True, who=who(request))
        return Response(status_code=204)

    async def reset_topics(self, name: str) -> Response:
        del name  # Connect does not look whether there is one either
        return Response(status_code=202)

    async def alter_offsets(self, name: str, request: Request) -> JSONResponse:
        known(self._scene, name)
        rows = offsets_of(await read_object(request))
        await self._ask("connector-alter-offsets", name=name, offsets=rows, who=who(request))
        return JSONResponse({"message": "The offsets for this connector have been altered successfully"})

    async def reset_offsets(self, name: str, request: Request) -> JSONResponse:
        known(self._scene, name)
        await self._ask("connector-reset-offsets", name=name, who=who(request))
        return JSONResponse({"message": "The offsets for this connector have been reset successfully"})
