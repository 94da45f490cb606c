"""Where a run, its REST server and what a person can ask for are joined."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from heliograph.config.flows import FlowSettings, Settings
from heliograph.control import connector_desk
from heliograph.control.amendments import amended_rows
from heliograph.control.desk import Desk
from heliograph.control.group_health import GroupHealthWatch
from heliograph.control.replicate import Replicator
from heliograph.control.steering import Change
from heliograph.control.views import Views
from heliograph.errors import Refused
from heliograph.model.clusters import Cluster
from heliograph.operations.group_states import group_states
from heliograph.operations.pending import pending
from heliograph.operations.topic_configs import topic_configs
from heliograph.operations.translate import FlowTranslator

Args = Mapping[str, Any]
_SUBJECT = ("flow", "topic", "partition", "reason", "who")
_TOPIC = ("flow", "topic", "reason", "who")


def desk_for(replicator: Replicator) -> Desk:
    """The desk of a run: all that REST shows of it, all that it can be asked and told."""
    views = Views(replicator.board, replicator.held)
    desk = Desk(
        replicator.settings.server,
        views,
        lambda: views.news(list(replicator.watches), replicator.steering.amended.holds, list(replicator.events.recent)),
    )
    desk.is_carried = lambda: bool(replicator.board.lanes) or not replicator.watches
    desk.show("run", replicator.about)
    desk.show("slots", lambda: dict(replicator.board.slots))
    desk.show("meters", replicator.measured)
    desk.show("groups", replicator.groups)
    desk.show("holds", lambda: amended_rows(replicator.steering.amended))
    desk.show(
        "canary", lambda: {watch.name: told for watch in replicator.watches if (told := watch.jobs.detail("canary"))}
    )
    _Changes(replicator).register(desk)
    _Questions(replicator).register(desk)
    _health(replicator, desk)
    connector_desk.register(desk, replicator)
    return desk


def _health(replicator: Replicator, desk: Desk) -> None:
    """The health of consumer groups on every cluster of the file, and of flows that came by REST."""

    def clusters() -> dict[str, Cluster]:
        ends = [
            end for watch in replicator.watches for end in (watch.settings.source_admin, watch.settings.target_admin)
        ]
        known = {**replicator.settings.clusters, **{cluster.alias: cluster for cluster in ends}}
        return {alias: cluster for alias, cluster in known.items() if cluster.bootstrap}

    health = GroupHealthWatch(clusters, replicator.settings.engine.health, replicator.warm, replicator.clock)
    desk.companions.append(health.keep)
    for what in ("clusters", "cluster", "topics", "topic", "readers", "groups", "group", "status"):
        desk.answer(f"health.{what}", getattr(health, what))


class _Changes:
    """What can be told: each is one call of steering."""

    def __init__(self, replicator: Replicator) -> None:
        self._steering = replicator.steering

    def register(self, desk: Desk) -> None:
        steering = self._steering
        changes: dict[str, tuple[Callable[..., Awaitable[Change]], tuple[str, ...]]] = {
            "pause": (steering.pause, _SUBJECT),
            "resume": (steering.resume, _SUBJECT),
            "drain": (steering.drain, _SUBJECT),
            "throttle": (steering.throttle, ("flow", "topic", "bytes_per_second", "reason", "who")),
            "add-topic": (steering.add_topic, _TOPIC),
            "remove-topic": (steering.remove_topic, _TOPIC),
            "reload": (steering.reload, ("reason", "who")),
        }
        for verb, (change, names) in changes.items():
            desk.change(verb, partial(self._made, change, names))

    async def _made(
        self, change: Callable[..., Awaitable[Change]], names: tuple[str, ...], args: Args
    ) -> Mapping[str, Any]:
        return await self._steering.make(await change(*(args[name] for name in names)), bool(args.get("dry_run")))


class _Questions:
    """What can be asked, and is answered by looking at the clusters."""

    def __init__(self, replicator: Replicator) -> None:
        self._replicator = replicator

    def register(self, desk: Desk) -> None:
        desk.answer("plan", self._plan)
        desk.answer("settings", self._settings)
        desk.answer("groups", self._groups)
        desk.answer("topic-configs", self._configs)
        desk.answer("translate", self._translate)

    def _flows(self, name: str = "") -> tuple[FlowSettings, ...]:
        flows = tuple(watch.settings for watch in self._replicator.watches if name in ("", watch.name))
        if name and not flows:
            raise Refused(404, f"there is no flow {name}")
        return flows

    async def _file(self) -> Settings:
        return await self._replicator.steering.settings()

    async def _plan(self, args: Args) -> dict[str, Any]:
        flows = self._flows(args["flow"])
        found = await pending(replace(self._replicator.settings, flows=flows))
        return {"flows": [asdict(one) for one in found]}

    async def _settings(self, _: Args) -> dict[str, Any]:
        return {"options": [value.as_json() for value in (await self._file()).values]}

    async def _groups(self, args: Args) -> dict[str, Any]:
        flows = self._flows(args["flow"])
        found = await group_states(flows, self._replicator.settings.engine)
        return found[args["flow"]].as_json()

    async def _configs(self, args: Args) -> dict[str, Any]:
        flow = self._flows(args["flow"])[0]
        return {"configs": await asyncio.to_thread(topic_configs, flow, args["topic"])}

    async def _translate(self, args: Args) -> dict[str, Any]:
        async with FlowTranslator(self._flows(args["flow"])[0]) as translator:
            if args["group"]:
                found = await translator.group(
                    args["group"], args["topic"] or None, args.get("partition"), args["reverse"]
                )
            else:
                found = [await translator.offset(args["topic"], args["partition"], args["offset"], args["reverse"])]
        return {"translated": [one.as_json() for one in found]}
