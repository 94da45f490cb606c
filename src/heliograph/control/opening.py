"""The generation in force of every lane of a flow: the ledger's, or one that is claimed now.

Asks the pure rules (replication/generations) and where lanes begin (control/starting). Writes claims to the ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from heliograph.control.home_ledger import trusted_ledger
from heliograph.control.planner import FlowPlan, FlowPlanner, Unmade
from heliograph.control.starting import RESET, Ends, Starting, Wish
from heliograph.errors import HeliographError, LaneParked
from heliograph.kafka.attach import Attacher
from heliograph.kafka.claims import open_generations, transactional_id
from heliograph.kafka.client import EARLIEST, LATEST, ClusterClient
from heliograph.kafka.life import now_ms
from heliograph.kafka.ranges import Log, read_range
from heliograph.kafka.slot import Warm
from heliograph.model.events import Event, EventKind
from heliograph.model.lanes import Identity, Lane, LaneId, LedgerEntry, Rule
from heliograph.replication.alignment import Align, MayNot, NeedNot, alignment, filled_first
from heliograph.replication.generations import LedgerBook
from heliograph.replication.openings import Continue, New, Refused, Start, opening
from heliograph.replication.starts import NoPlace, Place

_LEDGER_LOST = (
    "the remote partition of {lane} holds records of this flow (producer {producer}) but the ledger has no entry of the "
    "lane: the ledger was lost; restore it, or delete the remote topic to copy again"
)

Partition = tuple[str, int]
Found = TypeVar("Found")


@dataclass(frozen=True)
class OpenedFlow:
    """The lanes that may be carried, with their entries, and those that may not, with the reason."""

    plan: FlowPlan
    entries: Mapping[str, LedgerEntry]
    refused: Mapping[str, str]
    events: tuple[Event, ...] = ()
    """Generations that were opened, lanes that were refused, and why."""
    begun: frozenset[str] = frozenset()
    """Lanes of which this look opened a generation."""


def keeping_lanes(opened: OpenedFlow, before: OpenedFlow | None) -> OpenedFlow:
    """Lanes whose remote topic can now be neither seen nor made stay as they were: each says itself what it needs."""
    lost = opened.plan.unmade.keys() - {lane.id.topic for lane in opened.plan.lanes}
    had = [lane.id for lane in before.plan.lanes if lane.id.topic in lost] if before is not None else []
    if before is None or not had:
        return opened
    keys = {lane.key for lane in had}
    return replace(
        opened,
        plan=opened.plan.keeping(before.plan, {lane.topic for lane in had}),
        entries={**opened.entries, **{key: entry for key, entry in before.entries.items() if key in keys}},
        refused={
            **{key: reason for key, reason in opened.refused.items() if key not in keys},
            **{key: reason for key, reason in before.refused.items() if key in keys},
        },
    )


def rejoined(part: OpenedFlow, before: OpenedFlow) -> OpenedFlow:
    """What a look at some topics found, among all others as they were."""
    others = before.plan.topics.keys() - part.plan.within(before.plan.topics)
    return replace(
        part,
        plan=replace(part.plan.keeping(before.plan, others), only=None),
        entries={**_of(others, before.entries), **part.entries},
        refused={**_of(others, before.refused), **part.refused},
    )


def _of(topics: Collection[str], by_lane: Mapping[str, Found]) -> dict[str, Found]:
    return {key: found for key, found in by_lane.items() if key.rsplit("/", 2)[1] in topics}


class _Findings:
    """Gathers an OpenedFlow."""

    def __init__(self, plan: FlowPlan) -> None:
        self._plan = plan
        self._lanes = {lane.id for lane in plan.lanes}
        self.entries: dict[str, LedgerEntry] = {}
        self._refused: dict[str, str] = {}
        self.events: list[Event] = []
        self.begun: set[str] = set()

    def refuse(self, lane: Lane, no: Refused) -> None:
        self._refused[lane.id.key] = no.reason
        self.events.append(_event(lane.id, no.kind, no.reason, no.what_to_do))

    def leave_out(self, topic: str, unmade: Unmade) -> None:
        """The partitions of a topic that have no remote partition."""
        every = (LaneId(self._plan.name, topic, number) for number in range(self._plan.topics[topic].partitions))
        self._refused |= {lane.key: unmade.reason for lane in every if lane not in self._lanes}
        kind = EventKind.PARKED
        self.events.append(Event(now_ms(), self._plan.name, topic, kind, unmade.reason, unmade.what_to_do))

    def wait(self, lane: Lane, reason: str) -> None:
        """Refused for now: nothing that a person must know."""
        self._refused[lane.id.key] = reason

    def opened(self) -> OpenedFlow:
        return OpenedFlow(self._plan, self.entries, self._refused, tuple(self.events), frozenset(self.begun))


async def open_lanes(
    plan: FlowPlan, planner: FlowPlanner, warm: Warm, held: bool = True, wish: Wish | None = None
) -> OpenedFlow:
    """Every lane's generation: the ledger's, or one that is claimed now (P1.4), many at a time.

    `held`: no other run holds the flow; without that a lane whose rule changed is refused for now.
    """
    book = await warm.ledger(plan.settings.target).refresh()
    wish = wish or Wish()
    plan = plan if wish.reset else _as_before(plan, book)
    trusted = await trusted_ledger(plan.settings, warm, wish.reset)
    if not isinstance(trusted, Refused):
        plan = replace(plan, home_ledger=trusted)
    found_out = _Findings(plan)
    for topic, unmade in plan.unmade.items():
        found_out.leave_out(topic, unmade)
    if isinstance(trusted, Refused):
        for lane in plan.lanes:
            found_out.refuse(lane, trusted)
    else:
        await _open(plan, planner, warm, (book, held, wish), found_out)
    return found_out.opened()


def _as_before(plan: FlowPlan, book: LedgerBook) -> FlowPlan:
    """A flow in the other direction that the file no longer has may have written what was not passed yet: it stays left out."""
    if plan.settings.home:
        return plan
    known = (book.latest(lane.id) for lane in plan.lanes)
    before = next((entry.rule.without for entry in known if entry is not None and entry.rule.without), "")
    return replace(plan, settings=replace(plan.settings, home=before)) if before else plan


async def _open(
    plan: FlowPlan, planner: FlowPlanner, warm: Warm, known: tuple[LedgerBook, bool, Wish], found_out: _Findings
) -> None:
    settings = plan.settings
    book, held, wish = known
    starting = Starting(settings, plan.progress, plan.expiration_ms, warm, plan.home_ledger)
    ends = Ends(plan.starts, plan.ends, await asyncio.to_thread(planner.target_ends, plan.lanes))
    rule = Rule(settings.isolation, without=settings.home)
    latest = {lane: book.latest(lane.id) for lane in _readable(plan, warm, book, found_out)}
    rows = [
        (lane, entry, opening(entry, lane, rule, plan.target_cluster_id, settings.policies))
        for lane, entry in latest.items()
    ]
    new: list[tuple[Lane, New]] = []
    for lane, revised in await starting.revise(rows, ends, wish, held):
        match revised:
            case Continue(entry):
                found_out.entries[lane.id.key] = entry
            case Refused() as no:
                found_out.refuse(lane, no)
            case New(previous=LedgerEntry(filling=False)) as found if found.needs_drain and not lane.compacted:
                try:
                    new.append((lane, await _exact(plan, warm, lane, found, held)))
                except HeliographError as error:
                    found_out.wait(lane, f"the rule changed, and the exact position is not known yet: {error}")
            case New() as found:
                new.append((lane, found))
    placed = await _placed(new, starting, ends)
    ready: list[tuple[Lane, New]] = []
    for lane, found in new:
        match placed.get(lane):
            case NoPlace(reason):
                found_out.refuse(lane, Refused(reason))
            case where:
                ready.append((lane, found if where is None else replace(found, at=where)))
    if ready:
        await _open_new(plan, planner, warm, ready, starting, found_out)


def _readable(plan: FlowPlan, warm: Warm, book: LedgerBook, found_out: _Findings) -> Iterator[Lane]:
    """The lanes whose entries can be read; what cannot may be newer than what can."""
    strange = warm.ledger(plan.settings.target).strange
    for lane in plan.lanes:
        fault = strange.fault(lane.id, book.generations(lane.id))
        if fault is None:
            yield lane
        else:
            found_out.refuse(lane, Refused(str(fault), what_to_do=fault.what_to_do))


async def _placed(new: list[tuple[Lane, New]], starting: Starting, ends: Ends) -> dict[Lane, Place | NoPlace]:
    """Where the lanes begin that begin by option."""
    lanes = [lane for lane, found in new if found.start is Start.BY_OPTION]
    return await starting.by_option(lanes, ends) if lanes else {}


async def _open_new(
    plan: FlowPlan,
    planner: FlowPlanner,
    warm: Warm,
    new: list[tuple[Lane, New]],
    starting: Starting,
    found_out: _Findings,
) -> None:
    """Claim these generations (P1.4), after a look whether the ledger was lost (P1.6)."""
    ledger = warm.ledger(plan.settings.target)
    identity = await warm.client(plan.settings.target).new_identity(transactional_id(plan.name))
    fresh = [lane for lane, found in new if found.generation == 0 and found.reason != RESET]
    written = await _written_by(warm, plan, identity.producer_id, fresh)
    # Read again: another driver may have claimed, and written, since the first look.
    book = await ledger.refresh() if written else ledger.book
    for lane in (lane for lane, _ in new if lane.id in written):
        known = book.latest(lane.id)
        if known is None:
            found_out.refuse(lane, Refused(_LEDGER_LOST.format(lane=lane.id.key, producer=identity.producer_id)))
        else:
            found_out.entries[lane.id.key] = known
    new = [(lane, found) for lane, found in new if lane.id not in written]
    ends = await asyncio.to_thread(planner.target_ends, [lane for lane, _ in new]) if new else {}
    wanted = []
    for lane, found in new:
        claim = _claim(plan, lane, found, identity, ends)
        match _alignment(plan, lane, found, claim):
            case MayNot(reason, what_to_do):
                found_out.refuse(lane, Refused(reason, EventKind.ALIGNMENT, what_to_do))
                continue
            case NeedNot(reason) if reason:
                found_out.events.append(_event(lane.id, EventKind.ALIGNMENT, reason))
            case Align():
                claim = filled_first(claim)
        wanted.append(replace(claim, mm2_offset=_or_none(starting.stored(lane))))
    won = await open_generations(ledger, wanted, now_ms())
    found_out.entries |= {lane_id.key: entry for lane_id, entry in won.items()}
    found_out.begun |= {lane_id.key for lane_id in won}
    found_out.events += [_begun(lane, found) for lane, found in new if _is_news(found)]


def _alignment(plan: FlowPlan, lane: Lane, found: New, claim: LedgerEntry) -> Align | NeedNot | MayNot:
    """Only of a new lane: one that goes on, or was carried by MirrorMaker 2, has the offsets that it has."""
    is_new = found.previous is None and found.start is not Start.TAKE_OVER
    if not plan.settings.align or not (is_new or claim.target_next == 0):
        return NeedNot()
    return alignment(lane, claim.source_start, claim.target_next)


def _or_none(offset: int | None) -> int:
    return -1 if offset is None else offset


def _is_news(found: New) -> bool:
    return found.generation > 0 or found.start is Start.TAKE_OVER


def _begun(lane: Lane, found: New) -> Event:
    where = f" at source offset {found.at.offset}: {found.at.reason}" if found.at is not None else ""
    return _event(lane.id, found.kind, f"generation {found.generation} begins ({found.reason}){where}")


def _event(lane: LaneId, kind: EventKind, reason: str, what_to_do: str = "") -> Event:
    return Event(now_ms(), lane.flow, f"{lane.topic}-{lane.partition}", kind, reason, what_to_do)


async def _exact(plan: FlowPlan, warm: Warm, lane: Lane, found: New, held: bool) -> New:
    """P7: a new rule begins exactly where the old one ended, so the old one is attached first, with nobody writing by it."""
    if not held:
        raise LaneParked("another run may still write by the old rule")
    assert found.previous is not None  # noqa: S101  the caller looked
    previous = found.previous
    source, target = warm.client(plan.settings.source), warm.client(plan.settings.target)
    attacher = Attacher(source, target, plan.expiration_ms, plan.home_ledger)
    start = await attacher.attach(lane, previous, previous.rule.isolation == "read_committed", now_ms())
    return replace(found, previous=replace(previous, source_next=start.source_next))


def _claim(plan: FlowPlan, lane: Lane, found: New, identity: Identity, ends: Mapping[Partition, int]) -> LedgerEntry:
    start = _start(plan, lane, found)
    target_next = ends.get((lane.remote_topic, lane.id.partition), 0)
    return LedgerEntry(
        lane=lane.id,
        generation=found.generation,
        identity=identity,
        rule=Rule(plan.settings.isolation, without=plan.settings.home),
        target_cluster_id=plan.target_cluster_id,
        source_topic_id=lane.source_topic_id,
        target_topic_id=lane.target_topic_id,
        source_start=start,
        target_start=target_next,
        source_next=start,
        source_epoch=found.at.leader_epoch if found.at is not None else -1,
        target_next=target_next,
        sequence_next=0,
        differs_at=-1 if start == target_next else start,
        follows=-1 if found.previous is None else found.previous.source_next,
        time_ms=now_ms(),
    )


async def _written_by(warm: Warm, plan: FlowPlan, producer_id: int, lanes: list[Lane]) -> set[LaneId]:
    """P1.6: lanes without an entry whose remote partition remembers the flow's producer id."""
    client = warm.client(plan.settings.target)
    views = await client.metadata({lane.remote_topic for lane in lanes}) if lanes else {}
    by_node: dict[int, list[Lane]] = {}
    for lane in lanes:
        leader = views[lane.remote_topic].leaders.get(lane.id.partition)
        if leader is not None and leader.node >= 0:
            by_node.setdefault(leader.node, []).append(lane)
    found: set[LaneId] = set()
    for node, here in by_node.items():
        names = [(lane.remote_topic, lane.id.partition) for lane in here]
        states = await client.producers(node, names)
        starts = await client.offsets(node, names, EARLIEST)
        ends = await client.offsets(node, names, LATEST)
        for lane, name in zip(here, names, strict=True):
            state = states.get(name)
            remembered = isinstance(state, Mapping) and producer_id in state
            has_records = ends.get(name, 0) > starts.get(name, 0)
            if remembered or (has_records and await _ends_with(client, node, lane, producer_id, ends[name])):
                found.add(lane.id)
    return found


async def _ends_with(client: ClusterClient, node: int, lane: Lane, producer_id: int, end: int) -> bool:
    """The remote partition's last batch is of this producer, whom its leader may have forgotten."""
    log = Log(lane.remote_topic, lane.target_topic_id, lane.id.partition, node)
    async for seen in read_range(client, log, end - 1, end, committed=False):
        if seen.header.producer_id == producer_id:
            return True
    return False


def _start(plan: FlowPlan, lane: Lane, found: New) -> int:
    if found.at is not None:
        return found.at.offset
    if found.start is Start.POSITION and found.previous is not None:
        return found.previous.source_next
    return plan.starts.get((lane.id.topic, lane.id.partition), 0)
