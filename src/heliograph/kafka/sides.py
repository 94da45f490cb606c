"""One cluster's ends of many lanes: leaders and the spans of logs, asked for all lanes that attach at the same moment.

Thousands of lanes are handed over at once: each costs a place in three requests, and no task of its own.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from heliograph.errors import BrokerRefused, HeliographError, LaneParked
from heliograph.kafka.client import EARLIEST, LATEST, ClusterClient, Leader, Partition, TopicView
from heliograph.kafka.coalesce import Coalescer
from heliograph.kafka.ranges import Log
from heliograph.kafka.refusals import topic_refused

_MISSING_TOPIC = {3, 100}


class TopicReplaced(LaneParked):
    """A topic of the lane is another than the plan knows: only the driver can make a new plan."""

    def __init__(self, reason: str, on_source: bool) -> None:
        super().__init__(reason)
        self.on_source = on_source


@dataclass(frozen=True)
class Side:
    """One end of a lane: its leader and the span of its log."""

    log: Log
    log_start: int
    end: int


@dataclass(frozen=True)
class _Answer:
    """What the cluster says of a partition; `span` is None where its leader does not, or why that could not be asked."""

    view: TopicView
    span: tuple[int, int] | HeliographError | None = None


class Sides:
    """Asks one cluster."""

    def __init__(self, client: ClusterClient, on_source: bool) -> None:
        self._client = client
        self._on_source = on_source
        self._answers: Coalescer[Partition, _Answer] = Coalescer(self._ask)

    def ask(self, place: Partition) -> asyncio.Future[_Answer | None]:
        """To be given to `judge` when it is there."""
        return self._answers.soon(place)

    async def get(self, place: Partition, topic_id: str) -> tuple[Side, Leader]:
        return self.judge(await self.ask(place), place, topic_id)

    def judge(self, answer: _Answer | None, place: Partition, topic_id: str) -> tuple[Side, Leader]:
        """The end of a lane of the topic with this id; raises LaneParked, TopicReplaced, BrokerRefused or ConnectionLost."""
        topic, partition = place
        alias = self._client.cluster.alias
        where = f"cluster {alias}, {topic}-{partition}"
        if answer is None or answer.view.error in _MISSING_TOPIC:
            raise LaneParked(f"{where}: the topic does not exist")
        view, span = answer.view, answer.span
        if view.error:
            raise topic_refused(view.error, where, "READ" if self._on_source else "READ and WRITE", topic, alias)
        if view.topic_id != topic_id:
            raise TopicReplaced(f"{where}: the topic was deleted and created again", self._on_source)
        leader = view.leaders.get(partition)
        if leader is None:
            raise LaneParked(f"{where}: the partition does not exist")
        if leader.node < 0:
            raise BrokerRefused(5, where)
        if isinstance(span, HeliographError):
            raise span
        if span is None:
            raise BrokerRefused(6, where)
        return Side(Log(topic, topic_id, partition, leader.node, leader.epoch), *span), leader

    async def _ask(self, places: list[Partition]) -> dict[Partition, _Answer]:
        views = await self._client.metadata(topic for topic, _ in places)
        led: dict[int, list[Partition]] = {}
        for topic, partition in places:
            leader = views[topic].leaders.get(partition) if topic in views else None
            if leader is not None and leader.node >= 0:
                led.setdefault(leader.node, []).append((topic, partition))
        found = await asyncio.gather(*(self._spans(node, mine) for node, mine in led.items()))
        spans = {place: span for some in found for place, span in some.items()}
        return {place: _Answer(views[place[0]], spans.get(place)) for place in places if place[0] in views}

    async def _spans(self, node: int, places: list[Partition]) -> dict[Partition, tuple[int, int] | HeliographError]:
        """A broker that does not answer is the trouble of the lanes that it leads, of no others."""
        try:
            starts, ends = await asyncio.gather(
                self._client.offsets(node, places, EARLIEST), self._client.offsets(node, places, LATEST)
            )
        except HeliographError as error:
            return dict.fromkeys(places, error)
        return {place: (starts[place], ends[place]) for place in places if place in starts and place in ends}
