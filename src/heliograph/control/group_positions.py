"""Where the source's consumer groups stand, and where that is on the target: what checkpoints and group offsets are made of.

Reads only. Groups are listed every `refresh.groups.interval.seconds`, their offsets at every look, many groups in a request. An
offset that was translated once is not translated again, so a group that stands still costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from heliograph.config.flows import FlowSettings
from heliograph.control.clock import Clock
from heliograph.control.home_ledger import lineage_of
from heliograph.control.planner import FlowPlan
from heliograph.errors import BrokerRefused
from heliograph.kafka.client import Partition
from heliograph.kafka.consumer_groups import Commits, Committed, ConsumerGroups, ListedGroup, list_groups
from heliograph.kafka.log_ends import End, ends_of, starts_of
from heliograph.kafka.share_groups import ShareGroups
from heliograph.kafka.slot import Warm
from heliograph.kafka.translator import Lineage, Translator
from heliograph.model.lanes import Lane, LaneId, LedgerEntry
from heliograph.replication.group_positions import NoPair, Pair, Placed, not_before, pair_of, pair_without_reading
from heliograph.replication.translation import Point

_LANES_AT_ONCE = 16
_PROTOCOLS = {"", "consumer"}
_KINDS = {"", "classic", "consumer"}
"""Those that MirrorMaker 2 takes, too; before Kafka 3.8 brokers tell no kind."""
_SHARE = "share"

Spot = tuple[str, Lane, Committed, bool]
"""A group, a lane, what the group committed for it, and whether it is a share group."""
Question = tuple[Lane, int]
"""A source offset of a lane."""
Pairs = dict[Question, Pair | NoPair]
Entries = Mapping[LaneId, LedgerEntry]


@dataclass(frozen=True)
class Look:
    """Every chosen group's place in every partition that is copied; `troubles` are sentences about what could not be read."""

    placed: Sequence[Placed]
    troubles: Sequence[str]
    unread: Mapping[str, str] = field(default_factory=dict)
    """Groups that brokers of the source cannot tell of, with the reason."""


class GroupPositions:
    """Of one flow; kept over many looks by the jobs that share it."""

    def __init__(self, settings: FlowSettings, plan: Callable[[], FlowPlan | None], warm: Warm, clock: Clock) -> None:
        self._settings = settings
        self._plan = plan
        self._ledger = warm.ledger(settings.target)
        self._source = warm.client(settings.source)
        self._target = warm.client(settings.target)
        self._groups = ConsumerGroups(warm.client(settings.source_admin))
        self._shares = ShareGroups(warm.client(settings.source_admin))
        self._clock = clock
        self._listed: list[ListedGroup] = []
        self._listed_at: float | None = None
        self._known: dict[Question, tuple[LedgerEntry, Pair | NoPair]] = {}
        self._looking: asyncio.Task[Look] | None = None

    async def look(self) -> Look:
        """Who asks while a look is under way shares it: the jobs have the same interval, and groups and lanes are many."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
            self._looking.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._looking)

    async def _look(self) -> Look:
        plan = self._plan()
        if plan is None or not plan.lanes:
            return Look((), ())
        await self._list()
        shares = [group.name for group in self._listed if group.kind == _SHARE]
        commits = await self._groups.committed(group.name for group in self._listed if group.kind != _SHARE)
        starts = await self._shares.committed(shares)
        lanes = {(lane.id.topic, lane.id.partition): lane for lane in plan.lanes}
        spots = [*_spots(lanes, commits, False), *_spots(lanes, starts, True)]
        placed, troubles = await self._placed(spots, [*commits.refused.values(), *starts.refused.values()])
        return Look(placed, troubles, starts.unread)

    async def _list(self) -> None:
        rules, now = self._settings.jobs.groups, self._clock.monotonic()
        is_due = self._listed_at is None or (rules.refresh and now - self._listed_at >= rules.refresh_interval_s)
        if is_due:
            listed = await list_groups(self._groups.client)
            self._listed = [group for group in listed if is_chosen(self._settings, group)]
            self._listed_at = now

    async def _placed(self, spots: Sequence[Spot], troubles: list[str]) -> tuple[list[Placed], list[str]]:
        book = await self._ledger.refresh_if_there()
        entries = {lane.id: entry for _, lane, _, _ in spots if (entry := book.latest(lane.id)) is not None}
        pairs = await self._pairs({(lane, at.offset) for _, lane, at, _ in spots}, entries, troubles)
        starts = await starts_of(self._target, {(lane.remote_topic, lane.id.partition) for _, lane, _, _ in spots})
        return [_place(spot, pairs, entries, starts) for spot in spots], troubles

    # -- translation --------------------------------------------------------------------------------------------------

    async def _pairs(self, wanted: Iterable[Question], entries: Entries, troubles: list[str]) -> Pairs:
        pairs: Pairs = {}
        left: dict[Lane, list[int]] = {}
        for lane, offset in wanted:
            found = pair_without_reading(lane, offset, entries.get(lane.id)) or self._remembered(
                (lane, offset), entries
            )
            if found is None:
                left.setdefault(lane, []).append(offset)
            else:
                pairs[lane, offset] = found
        pairs |= await self._translated(left, entries, troubles)
        # What could not be read may be readable the next time.
        self._known = {
            question: (entries[question[0].id], pair)
            for question, pair in pairs.items()
            if question[0].id in entries and not (isinstance(pair, NoPair) and pair.reason in troubles)
        }
        return pairs

    def _remembered(self, question: Question, entries: Entries) -> Pair | NoPair | None:
        """What was found for it before, unless that was not the last word, or the copy is another one since."""
        then, pair = self._known.get(question, (None, None))
        now = entries[question[0].id]
        if then is None or question[0].compacted or (isinstance(pair, Pair) and pair.behind):
            return None
        same = (then.generation, then.target_topic_id) == (now.generation, now.target_topic_id)
        return pair if same else None

    async def _translated(self, left: Mapping[Lane, Sequence[int]], entries: Entries, troubles: list[str]) -> Pairs:
        here = {(lane.id.topic, lane.id.partition): entries[lane.id].source_topic_id for lane in left}
        there = {(lane.remote_topic, lane.id.partition): entries[lane.id].target_topic_id for lane in left}
        sources, targets = await asyncio.gather(ends_of(self._source, here), ends_of(self._target, there))
        found: Pairs = {}
        lanes = list(left)
        lineage = lineage_of(self._ledger.book, self._settings.flow.name, self._settings.home)
        for at in range(0, len(lanes), _LANES_AT_ONCE):
            some = lanes[at : at + _LANES_AT_ONCE]
            answers = await asyncio.gather(
                *(
                    _lane_pairs(
                        entries[lane.id],
                        sources[lane.id.topic, lane.id.partition],
                        targets[lane.remote_topic, lane.id.partition],
                        left[lane],
                        lineage,
                    )
                    for lane in some
                )
            )
            for lane, answer in zip(some, answers, strict=True):
                if isinstance(answer, str):
                    troubles.append(answer)
                    answer = dict.fromkeys(left[lane], NoPair(answer))
                found |= {(lane, offset): pair for offset, pair in answer.items()}
        return found


def is_chosen(settings: FlowSettings, group: ListedGroup) -> bool:
    """Whether the flow looks after this group of its source."""
    is_share = group.kind == _SHARE and settings.jobs.groups.sync
    is_consumer = group.protocol in _PROTOCOLS and group.kind in _KINDS
    return (is_share or is_consumer) and settings.group_names.accepts(group.name)


async def _lane_pairs(
    entry: LedgerEntry, source: End | str, target: End | str, offsets: Sequence[int], lineage: Lineage
) -> Mapping[int, Pair | NoPair] | str:
    """The pairs of one lane, or what stands against them."""
    if isinstance(source, str) or isinstance(target, str):
        return source if isinstance(source, str) else str(target)
    translator = Translator(entry, source, target, lineage)
    position = Point(entry.source_next, entry.target_next)
    try:
        return {offset: pair_of(await translator.translate(offset), offset, position) for offset in offsets}
    except BrokerRefused as error:
        return str(error)


def _spots(lanes: Mapping[Partition, Lane], commits: Commits, is_share: bool) -> Iterator[Spot]:
    for group, offsets in sorted(commits.offsets.items()):
        for place, committed in sorted(offsets.items()):
            if place in lanes:
                yield group, lanes[place], committed, is_share


def _place(spot: Spot, pairs: Pairs, entries: Entries, starts: Mapping[Partition, int]) -> Placed:
    group, lane, committed, is_share = spot
    entry = entries.get(lane.id)
    return Placed(
        group=group,
        topic=lane.id.topic,
        remote=lane.remote_topic,
        partition=lane.id.partition,
        committed=committed.offset,
        metadata=committed.metadata,
        pair=not_before(pairs[lane, committed.offset], starts.get((lane.remote_topic, lane.id.partition), 0)),
        reach=entry.target_next if entry is not None else 0,
        is_share=is_share,
    )
