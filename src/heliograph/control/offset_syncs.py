"""The job that writes offset syncs from the ledger's positions. Which, and when: replication/offset_syncs.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from heliograph.control.clock import Clock
from heliograph.control.jobs import Found
from heliograph.control.planner import FlowPlan
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.refusals import topic_refused
from heliograph.kafka.topic_writer import TopicWriter
from heliograph.model.clusters import Cluster
from heliograph.model.lanes import Lane, LaneId
from heliograph.replication.generations import LedgerBook
from heliograph.replication.make_topic import MakeTopic
from heliograph.replication.offset_syncs import (
    Copied,
    SyncAction,
    Syncs,
    SyncSettings,
    WriteSync,
    copied_of,
    make_syncs_topic,
)
from heliograph.wire.mm2 import OffsetSync, encode_offset_sync

_MISSING = {3, 100}
_LANES_A_SECOND = 1000
_LOOK_SECONDS = 1.0
"""As often as positions are written to the ledger."""
_AT_ONCE = 1_000
"""Syncs in one batch: with the longest topic names it stays far below what brokers take. And lanes looked at without a pause."""


@dataclass(frozen=True)
class SyncsPlace:
    """The topic, and the cluster that has it: a client that writes, and how admin connections reach it."""

    topic: str
    client: ClusterClient
    admin: Cluster


class OffsetSyncJob:
    """`plan` is asked at every look: topics come and go."""

    def __init__(
        self,
        settings: SyncSettings,
        place: SyncsPlace,
        plan: Callable[[], FlowPlan | None],
        ledger: Ledger,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._place = place
        self._plan = plan
        self._ledger = ledger
        self._clock = clock
        self._syncs = Syncs(settings.lag_max)
        self._flushed_at = clock.monotonic()
        self._writer = TopicWriter(place.client, place.topic)
        self._lanes: dict[str, Lane] = {}
        self._seen: tuple[object, object, int] = (None, None, 0)
        """Lanes, ledger and how much of it was known at the last look: from there on only what moved is looked at."""

    @property
    def name(self) -> str:
        return f"offset syncs on {self._place.admin.alias}"

    @property
    def interval_s(self) -> float:
        """A second for every thousand lanes."""
        plan = self._plan()
        return max(_LOOK_SECONDS, len(plan.lanes) / _LANES_A_SECOND if plan is not None else 0.0)

    async def look(self) -> Found[SyncAction]:
        actions: list[SyncAction] = []
        if not await self._topic_exists():
            alias = self._place.admin.alias
            actions.append(make_syncs_topic(self._place.topic, alias, self._settings.replication_factor))
        flush = (self._clock.monotonic() - self._flushed_at) * 1000 >= self._settings.flush_ms
        copied = self._copied(await self._ledger.refresh_if_there(), flush)
        while some := list(islice(copied, _AT_ONCE)):
            actions += self._syncs.due(some, flush)
            await asyncio.sleep(0)  # others have their turn: thousands of lanes take a while
        if flush:
            self._flushed_at = self._clock.monotonic()
        return Found(actions)

    async def _topic_exists(self) -> bool:
        if self._writer.leaders:
            return True  # an append that meets another state of things forgets them
        topic = self._place.topic
        view = (await self._place.client.metadata([topic]))[topic]
        if view.error in _MISSING:
            return False
        alias = self._place.admin.alias
        if view.error:
            raise topic_refused(view.error, f"cluster {alias}: topic {topic}", "DESCRIBE", topic, alias)
        return True

    def _copied(self, book: LedgerBook, everything: bool) -> Iterator[tuple[LaneId, Copied]]:
        """Of thousands of lanes those that the ledger was told of since the last look."""
        plan = self._plan()
        lanes = plan.lanes if plan is not None else ()
        known_lanes, known_book, mark = self._seen
        self._seen = (lanes, book, self._ledger.mark)
        if lanes is not known_lanes:
            self._lanes = {lane.id.key: lane for lane in lanes}
        if everything or lanes is not known_lanes or book is not known_book:
            moved: Iterable[Lane | None] = lanes
        else:
            keys = dict.fromkeys(key.rpartition("/")[0] for key in self._ledger.touched_since(mark))
            moved = [self._lanes.get(key) for key in keys]
        for lane in moved:
            copied = copied_of(book.latest(lane.id), lane) if lane is not None else None
            if lane is not None and copied is not None:
                yield lane.id, copied

    async def apply(self, actions: Sequence[SyncAction]) -> Sequence[str]:
        self._seen = (None, None, 0)  # what cannot be written now is due again at the next look
        for action in actions:
            if isinstance(action, MakeTopic):
                await asyncio.to_thread(self._make, action)
        due = [action for action in actions if isinstance(action, WriteSync)]
        for begin in range(0, len(due), _AT_ONCE):
            some = due[begin : begin + _AT_ONCE]
            await self._writer.append({0: [_record(one) for one in some]}, self._clock.now_ms())
            self._syncs.wrote(some)
        return ()

    def _make(self, action: MakeTopic) -> None:
        with ClusterAdmin(self._place.admin) as admin:
            admin.create(action.topic, "offset-syncs.topic.replication.factor")


def _record(action: WriteSync) -> tuple[bytes, bytes]:
    lane, copied = action.lane, action.copied
    return encode_offset_sync(OffsetSync(lane.topic, lane.partition, copied.upstream, copied.downstream))
