"""The job that writes the heartbeats of one pair of clusters. What is written and where: replication/heartbeats.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heliograph.control.clock import Clock
from heliograph.control.jobs import Found
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.refusals import topic_refused
from heliograph.kafka.topic_writer import TopicWriter
from heliograph.model.clusters import Cluster
from heliograph.replication.heartbeats import REPLICATION_OPTION, HeartbeatAction, Pulse, heartbeat_actions
from heliograph.replication.make_topic import MakeTopic
from heliograph.replication.topic_names import HEARTBEATS
from heliograph.wire.mm2 import Heartbeat, encode_heartbeat

_MISSING = {3, 100}


@dataclass(frozen=True)
class Place:
    """The cluster that gets the heartbeats: a client that writes, and how admin connections reach it."""

    client: ClusterClient
    admin: Cluster


class HeartbeatJob:
    """`on_new_topic` is called when the topic was made: a flow that mirrors it need not wait for its next look."""

    def __init__(self, pulse: Pulse, place: Place, clock: Clock, on_new_topic: Callable[[], None]) -> None:
        self._pulse = pulse
        self._place = place
        self._clock = clock
        self._on_new_topic = on_new_topic
        self._writer = TopicWriter(place.client, HEARTBEATS)

    @property
    def name(self) -> str:
        return f"heartbeats on {self._pulse.target}"

    @property
    def interval_s(self) -> float:
        return float(self._pulse.interval_s)

    async def look(self) -> Found[HeartbeatAction]:
        return Found(heartbeat_actions(self._pulse, await self._topic_exists()))

    async def _topic_exists(self) -> bool:
        if self._writer.leaders:
            return True  # an append that meets another state of things forgets them
        view = (await self._place.client.metadata([HEARTBEATS]))[HEARTBEATS]
        if view.error in _MISSING:
            return False
        alias = self._pulse.target
        if view.error:
            raise topic_refused(view.error, f"cluster {alias}: topic {HEARTBEATS}", "DESCRIBE", HEARTBEATS, alias)
        return True

    async def apply(self, actions: Sequence[HeartbeatAction]) -> Sequence[str]:
        for action in actions:
            if isinstance(action, MakeTopic):
                await asyncio.to_thread(self._make, action)
                self._on_new_topic()
            else:
                await self._beat()
        return ()

    def _make(self, action: MakeTopic) -> None:
        with ClusterAdmin(self._place.admin) as admin:
            admin.create(action.topic, REPLICATION_OPTION)

    async def _beat(self) -> None:
        now_ms = self._clock.now_ms()
        record = encode_heartbeat(Heartbeat(self._pulse.source, self._pulse.target, now_ms))
        await self._writer.append({0: [record]}, now_ms)
