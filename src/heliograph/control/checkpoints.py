"""The job that writes checkpoints for MirrorMaker 2's clients. Which are due: replication/checkpoints.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from heliograph.config.flows import FlowSettings
from heliograph.control.clock import Clock
from heliograph.control.group_positions import GroupPositions
from heliograph.control.jobs import Found
from heliograph.errors import HeliographError
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.own_topics import PlainRecord, TopicTail
from heliograph.kafka.slot import Warm
from heliograph.kafka.topic_writer import TopicWriter
from heliograph.metrics.lane_times import Spread
from heliograph.model.events import Event, EventKind
from heliograph.replication.checkpoints import (
    CheckpointAction,
    CheckpointKey,
    Due,
    make_checkpoints_topic,
    plan_checkpoints,
)
from heliograph.replication.group_positions import NoPair, Pair, Placed
from heliograph.replication.make_topic import MakeTopic
from heliograph.wire.mm2 import Checkpoint, decode_checkpoint, encode_checkpoint

_REPLICATION_OPTION = "checkpoints.topic.replication.factor"
_RECORDS_PER_BATCH = 2_000
"""A batch must fit max.message.bytes, whatever groups and topics are called."""


class CheckpointJob:
    """`positions` is shared with the job of group offsets."""

    NAME = "checkpoints"

    def __init__(
        self,
        settings: FlowSettings,
        positions: GroupPositions,
        warm: Warm,
        clock: Clock,
        tell: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._positions = positions
        self._clock = clock
        self._tell = tell
        self.topic = checkpoints_topic(settings)
        target = warm.client(settings.target)
        self._tail = TopicTail(target, self.topic)
        self._writer = TopicWriter(target, self.topic)
        self._last: dict[CheckpointKey, Pair] = {}
        self.malformed = 0
        """Records of the topic that cannot be read."""
        self._placed: Sequence[Placed] = ()
        self._looked = 0.0
        self._latencies: dict[CheckpointKey, Spread] = {}
        self._shown: list[dict[str, Any]] | None = None
        """What `groups` says until the next turn: it is asked every second, and groups are many."""

    @property
    def name(self) -> str:
        return self.NAME

    @property
    def interval_s(self) -> float:
        return float(self._settings.jobs.groups.checkpoints_interval_s)

    async def look(self) -> Found[CheckpointAction]:
        self._looked = self._clock.monotonic()
        exists = await self._read_on()
        found = await self._positions.look()
        placed = self._placed = [place for place in found.placed if not place.is_share]
        self._shown = None
        actions: list[CheckpointAction] = []
        if not exists:
            factor = self._settings.jobs.groups.checkpoints_replication_factor
            actions.append(make_checkpoints_topic(self.topic, factor))
        actions += plan_checkpoints(placed, self._last)
        return Found(actions, found.troubles, self._summary(placed))

    async def _read_on(self) -> bool:
        """What the topic says now; False: it does not exist."""
        news = await self._tail.read_on()
        records, anew = news if news is not None else ([], True)
        if anew:
            self._last, self.malformed = {}, 0
        before = self.malformed
        for read in self._decoded(records):
            self._last[read.group, read.topic, read.partition] = Pair(read.upstream, read.downstream)
        if self.malformed > before:
            reason = (
                f"passed over what is no checkpoint in topic {self.topic}: {_count(self.malformed, 'record')} so far"
            )
            flow = self._settings.flow.name
            self._tell(Event(self._clock.now_ms(), flow, self.topic, EventKind.MALFORMED, reason))
        return news is not None

    def _decoded(self, records: Sequence[PlainRecord]) -> Iterator[Checkpoint]:
        for record in records:
            try:
                yield decode_checkpoint(record.key, record.value)
            except HeliographError:
                self.malformed += 1

    def _summary(self, placed: Sequence[Placed]) -> str:
        parts = [f"{_count(len({place.group for place in placed}), 'group')}, {_count(len(placed), 'partition')}"]
        without = sum(isinstance(place.pair, NoPair) for place in placed)
        parts += [f"{without} without an exact offset"] if without else []
        parts += [f"{_count(self.malformed, 'malformed record')} passed over"] if self.malformed else []
        return ", ".join(parts)

    async def apply(self, actions: Sequence[CheckpointAction]) -> Sequence[str]:
        due: list[Due] = []
        for action in actions:
            if isinstance(action, MakeTopic):
                await asyncio.to_thread(self._make, action)
            else:
                due += action.due
        for at in range(0, len(due), _RECORDS_PER_BATCH):
            records = [encode_checkpoint(_record(one)) for one in due[at : at + _RECORDS_PER_BATCH]]
            await self._writer.append({0: records}, self._clock.now_ms())
            took_ms = round((self._clock.monotonic() - self._looked) * 1000, 1)
            for one in due[at : at + _RECORDS_PER_BATCH]:
                self._latencies.setdefault((one.group, one.remote, one.partition), Spread()).add([took_ms])
        self._shown = None
        return ()

    def groups(self) -> list[dict[str, Any]]:
        """Each group in each partition, for metrics: what it committed, how much of that its newest checkpoint lacks, how long
        checkpoints took."""
        if self._shown is None:
            self._shown = [self._group(place, (place.group, place.remote, place.partition)) for place in self._placed]
        return self._shown

    def _group(self, place: Placed, key: CheckpointKey) -> dict[str, Any]:
        last, latency = self._last.get(key), self._latencies.get(key)
        return {
            "group": place.group,
            "topic": place.topic,
            "remote_topic": place.remote,
            "partition": place.partition,
            "committed": place.committed,
            "repeat": max(0, place.committed - last.upstream) if last is not None else None,
            "latency_ms": latency.figures() if latency is not None else None,
        }

    def _make(self, action: MakeTopic) -> None:
        with ClusterAdmin(self._settings.target_admin) as admin:
            admin.create(action.topic, _REPLICATION_OPTION)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _record(due: Due) -> Checkpoint:
    pair = due.pair
    return Checkpoint(due.group, due.remote, due.partition, pair.upstream, pair.downstream, due.metadata)


def checkpoints_topic(settings: FlowSettings) -> str:
    source = settings.flow.source
    return settings.naming.checkpoints_topic(source)
