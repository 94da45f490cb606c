"""Translating offsets of a flow: a lane and an offset, or all that a consumer group committed. Reads only.

MirrorMaker 2's answer is given beside ours where there is an offset-syncs topic: as a MirrorMaker 2 that starts now gives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from heliograph.config.both_ways import NO_GROUPS, shares_topics
from heliograph.config.flows import FlowSettings
from heliograph.control.home_ledger import lineage_of
from heliograph.errors import BrokerRefused, HeliographError, SetupError
from heliograph.kafka.client import ClusterClient, Partition
from heliograph.kafka.groups import committed_offsets
from heliograph.kafka.log_ends import end_of
from heliograph.kafka.own_topics import read_topic
from heliograph.kafka.slot import Warm
from heliograph.kafka.translator import Translator
from heliograph.model.lanes import LaneId
from heliograph.replication.generations import LedgerBook
from heliograph.replication.mm2_translation import OffsetSyncStore, Sync
from heliograph.replication.translation import (
    Answer,
    Exact,
    Gone,
    NeverCopied,
    NotKnown,
    NotYetCopied,
    position_of,
)
from heliograph.wire.mm2 import decode_offset_sync

_MISSING = {3, 100}


@dataclass(frozen=True)
class Translated:
    """One offset and its answer; `mm2` is MirrorMaker 2's: -1 too old for its table, None nothing known."""

    flow: str
    topic: str
    remote_topic: str
    partition: int
    offset: int
    reverse: bool
    answer: Answer
    mm2: int | None = None

    @property
    def position(self) -> int | None:
        """Where a reader goes on, on the other side, who would have read this offset next."""
        return position_of(self.answer)

    def as_json(self) -> dict[str, Any]:
        return {
            "flow": self.flow,
            "topic": self.topic,
            "remote_topic": self.remote_topic,
            "partition": self.partition,
            "offset": self.offset,
            "reverse": self.reverse,
            "answer": word_of(self.answer),
            "position": self.position,
            "reason": reason_of(self.answer),
            "distance": self.answer.distance if isinstance(self.answer, NotYetCopied) else None,
            "mm2_offset": self.mm2,
        }


def word_of(answer: Answer) -> str:
    match answer:
        case Exact():
            return "exact"
        case NotYetCopied():
            return "not yet copied"
        case Gone(side):
            return f"gone from the {side}"
        case NeverCopied():
            return "never copied"
        case NotKnown():
            return "not known"


def reason_of(answer: Answer) -> str:
    match answer:
        case Exact(_, is_record):
            return "" if is_record else "no record lies there: a reader who goes on there misses and repeats nothing"
        case NotYetCopied(distance):
            return f"{distance} source offsets lie between the lane's position and this one"
        case Gone(_, reason) | NeverCopied(reason) | NotKnown(reason):
            return reason


class FlowTranslator:
    """Translates offsets of all lanes of one flow, by the ledger as it is when the translator is opened or refreshed."""

    def __init__(self, flow: FlowSettings) -> None:
        self.flow = flow
        self._policy = flow.naming
        self._warm = Warm()
        self._book = LedgerBook()
        self._lanes: dict[LaneId, Translator] = {}
        self._mm2: OffsetSyncStore | None = None

    async def __aenter__(self) -> Self:
        try:
            await self.refresh()
        except BrokerRefused as error:
            self._warm.close()
            if error.code in _MISSING:
                raise SetupError(
                    f"{self.flow.flow.name}: nothing was ever copied, the ledger does not exist"
                ) from error
            raise
        except BaseException:
            self._warm.close()
            raise
        return self

    async def refresh(self) -> None:
        """Go by the ledger and the logs as they are now."""
        self._book = await self._warm.ledger(self.flow.target).refresh()
        self._lanes.clear()
        self._mm2 = None

    async def __aexit__(self, *_: object) -> None:
        self._warm.close()

    @property
    def source(self) -> ClusterClient:
        return self._warm.client(self.flow.source)

    @property
    def target(self) -> ClusterClient:
        return self._warm.client(self.flow.target)

    def remote_of(self, topic: str) -> str:
        return self.flow.remote_name(topic)

    def lanes(self) -> list[LaneId]:
        """Every lane of the flow that has a position."""
        name = self.flow.flow.name
        return [lane for lane in self._book.lanes() if lane.flow == name and self._book.latest(lane) is not None]

    def position(self, lane: LaneId) -> int:
        """As the ledger has it."""
        entry = self._book.latest(lane)
        return -1 if entry is None else entry.source_next

    async def offset(self, topic: str, partition: int, offset: int, reverse: bool = False) -> Translated:
        """One offset of the source topic; `reverse`: of the remote topic. Either name of the topic will do."""
        if offset < 0:
            raise SetupError(f"--offset {offset}: offsets begin at 0")
        lane = await self._lane(topic, partition)
        end = await self._end(lane, offset, reverse)
        if offset > end:
            side = "target" if reverse else "source"
            answer = NotKnown(f"it lies beyond the {side}'s end ({end:,})")
            return Translated(
                lane.flow, lane.topic, self.remote_of(lane.topic), lane.partition, offset, reverse, answer
            )
        return await self._translated(lane, offset, reverse)

    async def _end(self, lane: LaneId, offset: int, reverse: bool) -> int:
        """Of the log that the offset is of; asked again where it is beyond what was known."""
        one = await self.translator(lane)
        known = one.target if reverse else one.source
        if offset <= known.end:
            return known.end
        return (await end_of(known.client, known.log.topic, lane.partition, known.log.topic_id)).end

    async def group(
        self, group: str, topic: str | None = None, partition: int | None = None, reverse: bool = False
    ) -> list[Translated]:
        """What a group committed on the source (`reverse`: on the target) for the flow's lanes."""
        if shares_topics(self.flow):
            raise SetupError(f"{self.flow.flow.name}: there is no place where group '{group}' could go on: {NO_GROUPS}")
        lanes = [lane for lane in self.lanes() if topic in (None, lane.topic, self.remote_of(lane.topic))]
        lanes = [lane for lane in lanes if partition in (None, lane.partition)]
        if topic is not None and not lanes:
            lanes = [await self._lane(topic, partition or 0)]
        places = {((self.remote_of(lane.topic) if reverse else lane.topic), lane.partition): lane for lane in lanes}
        client = self.target if reverse else self.source
        found: dict[Partition, int] = await committed_offsets(client, group, list(places)) if places else {}
        if not found:
            of = f" for {topic}" if topic else f" for a topic of {self.flow.flow.name}"
            raise SetupError(f"group '{group}' has committed no offset on cluster {client.cluster.alias}{of}")
        return [await self._translated(places[place], found[place], reverse) for place in sorted(found)]

    # -- parts --------------------------------------------------------------------------------------------------------

    async def _lane(self, topic: str, partition: int) -> LaneId:
        lanes = self.lanes()
        topics = {lane.topic for lane in lanes}
        if topic not in topics:
            topic = next((known for known in topics if self.remote_of(known) == topic), topic)
        wanted = LaneId(self.flow.flow.name, topic, partition)
        if wanted in lanes:
            return wanted
        await end_of(self.source, topic, partition, "")  # says what is wrong if the topic or the partition is missing
        raise SetupError(
            f"{topic}-{partition} of cluster {self.flow.source.alias} is not a lane of {self.flow.flow.name}: nothing of it "
            "was ever copied (`heliograph status FILE` lists the lanes)"
        )

    async def _translated(self, lane: LaneId, offset: int, reverse: bool) -> Translated:
        translator = await self.translator(lane)
        answer = await translator.translate(offset, reverse)
        mm2 = None if reverse else (await self._mm2_store()).translate((lane.topic, lane.partition), offset)
        remote = self.remote_of(lane.topic)
        return Translated(lane.flow, lane.topic, remote, lane.partition, offset, reverse, answer, mm2)

    async def translator(self, lane: LaneId) -> Translator:
        """Of one of `lanes()`; kept."""
        if lane not in self._lanes:
            entry = self._book.latest(lane)
            assert entry is not None  # noqa: S101  lanes() has only such
            source, target = await asyncio.gather(
                end_of(self.source, lane.topic, lane.partition, entry.source_topic_id),
                end_of(self.target, self.remote_of(lane.topic), lane.partition, entry.target_topic_id),
            )
            self._lanes[lane] = Translator(entry, source, target, lineage_of(self._book, lane.flow, entry.rule.without))
        return self._lanes[lane]

    async def _mm2_store(self) -> OffsetSyncStore:
        """All syncs of MirrorMaker 2's topic; empty where there is none or it may not be read."""
        if self._mm2 is None:
            store = OffsetSyncStore(must_read_to_end=False)
            for client, topic in self._syncs_topics():
                try:
                    found = await read_topic(client, topic)
                except HeliographError:
                    continue  # the exact answer does not need it
                _add_all(store, (found or {}).get(0, ()))
            store.loaded()
            self._mm2 = store
        return self._mm2

    def _syncs_topics(self) -> Iterable[tuple[ClusterClient, str]]:
        """On the source by default, else on the target (offset-syncs.topic.location)."""
        for client, other in ((self.source, self.flow.flow.target), (self.target, self.flow.flow.source)):
            yield client, self._policy.offset_syncs_topic(other)


def _add_all(store: OffsetSyncStore, records: Iterable[Any]) -> None:
    for record in records:
        try:
            sync = decode_offset_sync(record.key, record.value)
        except HeliographError:
            continue  # MirrorMaker 2 passes over what it cannot read, too
        store.add((sync.topic, sync.partition), Sync(sync.upstream, sync.downstream))
