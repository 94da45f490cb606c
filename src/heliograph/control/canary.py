"""The job that sends the canary's events through a flow and sees them arrive. What is measured: replication/canary.py."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from heliograph.config.flows import FlowSettings
from heliograph.config.watching import CanarySettings
from heliograph.control.clock import Clock
from heliograph.control.jobs import Found
from heliograph.errors import HeliographError
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.follow import Follower
from heliograph.kafka.refusals import topic_refused
from heliograph.kafka.slot import Warm
from heliograph.kafka.topic_writer import TopicWriter
from heliograph.model.events import Event, EventKind
from heliograph.model.lanes import LaneId, LaneState
from heliograph.replication.canary import Canary, CanaryAction, Punctuality, SendCanary, canary_topic, make_canary_topic
from heliograph.replication.make_topic import MakeTopic

_log = logging.getLogger(__name__)
_MISSING = {3, 100}
_PAUSE_SECONDS = 0.5


class CanaryJob:
    """Every turn sends one event; `read` sees them on the target.

    Nothing is sent before the topic's lane follows for the first time: how long a run takes to begin is no latency. `rows` are the
    flow's lanes as their tasks last told of them, `look_again` has the flow planned when the topic was made.
    """

    def __init__(
        self,
        settings: FlowSettings,
        rows: Callable[[], Iterable[Mapping[str, Any]]],
        warm: Warm,
        clock: Clock,
        look_again: Callable[[], None],
        tell: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._options = settings.jobs.watch.canary or CanarySettings()
        self._rows = rows
        self._has_begun = False
        self._clock = clock
        self._look_again = look_again
        self._tell = tell
        self._punctuality = Punctuality()
        self.topic = canary_topic(settings.flow)
        self.remote = settings.remote_name(self.topic)
        self._source = warm.client(settings.source_writer)
        self._writer = TopicWriter(self._source, self.topic)
        self._follower = Follower(warm.client(settings.target), self.remote, clock.now_ms())
        self._canary = Canary(uuid.uuid4().hex, clock.monotonic)

    def succeed(self, before: object) -> None:
        """Settings changed: events that are under way are awaited further, and what was counted stays."""
        if isinstance(before, CanaryJob):
            self._canary, self._follower = before._canary, before._follower
            self._punctuality, self._has_begun = before._punctuality, before._has_begun

    @property
    def name(self) -> str:
        return "canary"

    @property
    def interval_s(self) -> float:
        return float(self._options.interval_s)

    async def look(self) -> Found[CanaryAction]:
        self._judge()
        actions: list[CanaryAction] = [] if await self._exists() else [make_canary_topic(self.topic)]
        if self._follows():
            actions.append(SendCanary(self.topic))
        about = {"topic": self.topic, "remote_topic": self.remote, "limit_ms": self._options.limit_ms}
        detail = {**about, "late": self._punctuality.is_late, **self._canary.standing()}
        return Found(actions, summary=self._sentence(), detail=detail)

    def _follows(self) -> bool:
        lane = LaneId(self._settings.flow.name, self.topic, 0).key
        self._has_begun = self._has_begun or any(
            row["lane"] == lane and row["state"] == LaneState.FOLLOWING for row in self._rows()
        )
        return self._has_begun

    def _sentence(self) -> str:
        return self._canary.sentence() if self._has_begun else f"waits until {self.topic}-0 is copied"

    def _judge(self) -> None:
        news = self._punctuality.look(self._canary, self._options.limit_ms)
        if news:
            kind = EventKind.CANARY if self._punctuality.is_late else EventKind.RECOVERED
            self._tell(Event(self._clock.now_ms(), self._settings.flow.name, self.topic, kind, news))

    async def _exists(self) -> bool:
        if self._writer.leaders:
            return True  # an append that meets another state of things forgets them
        view = (await self._source.metadata([self.topic]))[self.topic]
        if view.error in _MISSING:
            return False
        alias = self._settings.flow.source
        if view.error:
            raise topic_refused(view.error, f"cluster {alias}: topic {self.topic}", "DESCRIBE", self.topic, alias)
        return True

    async def apply(self, actions: Sequence[CanaryAction]) -> Sequence[str]:
        for action in actions:
            if isinstance(action, MakeTopic):
                await asyncio.to_thread(self._make, action)
                self._look_again()
            else:
                await self._send()
        return ()

    async def _send(self) -> None:
        now_ms = self._clock.now_ms()
        key, value = self._canary.send(now_ms)
        try:
            await self._writer.append({0: [(key, value)]}, now_ms)
        except (HeliographError, TimeoutError):
            self._canary.give_up(key)  # the job's own trouble, which says so: the flow cannot bring what is not there
            raise

    def _make(self, action: MakeTopic) -> None:
        with ClusterAdmin(self._settings.source_admin) as admin:
            admin.create(action.topic)

    async def read(self) -> None:
        """For ever: events as they arrive. A target that does not answer is the flow's own trouble, which says so."""
        while True:
            try:
                found = await self._follower.read()
            except (HeliographError, TimeoutError) as error:
                _log.debug("%s: the canary is not read: %s", self._settings.flow.name, error)
                found = None
            for record in found or ():
                self._canary.see(record.key)
            if found is None:
                await asyncio.sleep(_PAUSE_SECONDS)
