"""Our own REST, under /api/v1: what there is to see."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query, Request

from heliograph.errors import Refused
from heliograph.rest.lanes_page import page_of, query_of
from heliograph.rest.scene import Row, Scene
from heliograph.rest.summaries import flow_summary, topic_rows

_MOST_EVENTS = 1000


def router(scene: Scene) -> APIRouter:
    api = APIRouter(prefix="/api/v1", tags=["see"])
    seen = _Seen(scene)
    for path, answer, summary in (
        ("", seen.run, "The run: version, host, since when, how old this view is"),
        ("/clusters", seen.clusters, "Clusters, with the flows into and out of each"),
        ("/flows", seen.flows, "All flows, with the sums of their lanes"),
        ("/flows/{flow}", seen.flow, "One flow, with its jobs"),
        ("/flows/{flow}/lanes", seen.lanes, "Lanes: search, state, sort, order, offset, limit"),
        ("/flows/{flow}/topics", seen.topics, "Topics of a flow"),
        ("/flows/{flow}/topics/{topic}", seen.topic, "One topic, with its configs on both sides"),
        ("/flows/{flow}/groups", seen.groups, "Consumer groups, with where they are on the target, and why"),
        ("/flows/{flow}/translate", seen.translate, "An offset, or a group's, on the other side: exactly"),
        ("/events", seen.events, "What a person must know, newest last"),
        ("/history", seen.history, "Rate, lag and latency of a flow, up to the last hour"),
        ("/plan", seen.plan, "What the run would change besides copying records"),
        ("/settings", seen.settings, "Every option with its value and where it came from; secrets are left out"),
    ):
        api.add_api_route(path, answer, summary=summary)
    return api


class _Seen:
    """The answers; what the scene does not hold is asked of the driver."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    async def run(self) -> Row:
        scene = self._scene
        age = round((time.monotonic() - scene.merged_at) * 1000)
        return {**scene.run, "listeners": scene.listens_on, "age_ms": age}

    async def clusters(self) -> list[Row]:
        return cluster_rows(self._scene)

    async def flows(self) -> list[Row]:
        return [flow_summary(self._scene, name) for name in sorted(self._scene.flows)]

    async def flow(self, flow: str) -> Row:
        known(self._scene, flow)
        return {**flow_summary(self._scene, flow), "jobs": self._scene.flows[flow]["jobs"]}

    async def lanes(self, flow: str, request: Request) -> Row:
        known(self._scene, flow)
        return page_of(self._scene.lanes, query_of(flow, request.query_params)).as_json()

    async def topics(self, flow: str) -> list[Row]:
        known(self._scene, flow)
        return topic_rows(self._scene, flow)

    async def topic(self, flow: str, topic: str) -> Row:
        known(self._scene, flow)
        row = next((row for row in topic_rows(self._scene, flow) if row["topic"] == topic), None)
        if row is None:
            raise Refused(404, f"{flow} does not copy a topic {topic}")
        return {**row, **await self._scene.ask("topic-configs", flow=flow, topic=topic)}

    async def groups(self, flow: str) -> Row:
        known(self._scene, flow)
        return await self._scene.ask("groups", flow=flow)

    async def events(
        self, flow: str = "", kind: str = "", limit: Annotated[int, Query(ge=1, le=_MOST_EVENTS)] = 100
    ) -> list[Row]:
        events = self._scene.events
        return [event for event in events if flow in ("", event["flow"]) and kind in ("", event["kind"])][-limit:]

    async def history(self, flow: str, seconds: Annotated[int, Query(ge=5, le=3600)] = 3600) -> Row:
        known(self._scene, flow)
        return self._scene.history.of(flow, seconds)

    async def plan(self, flow: str = "") -> Row:
        if flow:
            known(self._scene, flow)
        return await self._scene.ask("plan", flow=flow)

    async def settings(self) -> Row:
        return await self._scene.ask("settings")

    async def translate(self, flow: str, request: Request) -> Row:
        known(self._scene, flow)
        return await self._scene.ask("translate", flow=flow, **_translation(request.query_params))


def cluster_rows(scene: Scene) -> list[Row]:
    """Every cluster that a flow touches."""
    found: dict[str, Row] = {}
    for name, flow in sorted(scene.flows.items()):
        for alias, where in ((flow["source"], "flows_out"), (flow["target"], "flows_in")):
            row = found.setdefault(
                alias, {"alias": alias, "bootstrap": flow["bootstrap"].get(alias, ""), "flows_in": [], "flows_out": []}
            )
            row[where].append(name)
            if f"'{alias}'" in flow["trouble"] or f"cluster {alias}" in flow["trouble"]:
                row["trouble"] = flow["trouble"]
    return [{"trouble": "", **row} for row in found.values()]


def known(scene: Scene, flow: str) -> None:
    if flow not in scene.flows:
        names = ", ".join(sorted(scene.flows)) or "none yet"
        raise Refused(404, f"there is no flow {flow}; flows are {names}")


def _translation(given: Mapping[str, str]) -> Row:
    """Either topic, partition and offset, or a group."""
    if strangers := given.keys() - {"topic", "partition", "offset", "group", "reverse"}:
        raise Refused(422, f"{min(strangers)}: expected topic, partition, offset, group or reverse")
    reverse = given.get("reverse", "false")
    if reverse not in ("true", "false"):
        raise Refused(422, f"reverse is '{reverse}', allowed: true, false")
    numbers = {name: _whole(name, given[name]) for name in ("partition", "offset") if name in given}
    if ("group" in given) is (len(numbers) == 2 and "topic" in given):
        raise Refused(422, "expected topic, partition and offset, or group")
    return {"topic": given.get("topic", ""), "group": given.get("group", ""), "reverse": reverse == "true", **numbers}


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Refused(422, f"{name} is '{text}', allowed: a whole number from 0")
    return int(text)
