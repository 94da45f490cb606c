"""Hand a flow back to MirrorMaker 2: our exact positions into its offsets topic, and a note of that into our ledger.

A MirrorMaker 2 that is started afterwards goes on with the record after the last one that we copied. Refused while the flow
runs, here or in a MirrorMaker 2, and unless every lane's position is exact: one lane left out would be copied twice.
"""

from __future__ import annotations

import asyncio
import os
import platform
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from heliograph.config.flows import EngineSettings, FlowSettings
from heliograph.control.clock import Clock
from heliograph.control.home_ledger import noted_ledger
from heliograph.control.planner import FlowPlan, FlowPlanner
from heliograph.control.starting import live_mirrormaker, stored_progress
from heliograph.control.tenure import Tenure
from heliograph.errors import BrokerRefused, HeliographError, SetupError
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.attach import Attacher
from heliograph.kafka.lane import Start
from heliograph.kafka.ledger import EVENTS_TOPIC
from heliograph.kafka.mm2_store import write_stored
from heliograph.kafka.slot import Warm
from heliograph.kafka.topic_writer import TopicWriter
from heliograph.model.events import Deed, encode_event
from heliograph.model.lanes import Lane, LedgerEntry
from heliograph.replication.findings import named
from heliograph.replication.generations import Holder, LedgerBook, encode_entry
from heliograph.replication.ledger_keys import EntryKey
from heliograph.replication.mm2_progress import HandBack, Partition, Progress, hand_back, offsets_topic
from heliograph.replication.starts import Look, needs_look

_MISSING = {3, 100}
_NOT_ALLOWED = 29
_LOOK_SECONDS = 1.0
_REPLICATION_OPTION = "offset.storage.replication.factor"


@dataclass(frozen=True)
class FlowHandBack:
    """What is written for one flow: entries for MirrorMaker 2, topics made for them, our own entries with a note."""

    settings: FlowSettings
    entries: tuple[HandBack, ...]
    missing_topics: tuple[str, ...]
    ledger: tuple[LedgerEntry, ...]
    never_copied: tuple[str, ...]
    """Lanes without a position: MirrorMaker 2 begins them as it is told."""

    @property
    def flow(self) -> str:
        return self.settings.flow.name


class HandingBack:
    """One flow. `plan` reads, `apply` writes, `close` lets the flow go."""

    def __init__(self, settings: FlowSettings, engine: EngineSettings) -> None:
        self._settings = settings
        self._planner = FlowPlanner(settings, engine)
        self._admin = ClusterAdmin(settings.target_admin)
        self._warm = Warm()
        self._clock = Clock()
        now = self._clock.now_ms()
        me = Holder(settings.flow.name, platform.node(), os.getpid(), uuid.uuid4().hex, now, now, False)
        ledger = self._warm.ledger(settings.target)
        wait_s = float(engine.takeover_wait_seconds)
        self._tenure = Tenure(ledger, me, wait_s, self._clock)

    async def plan(self) -> FlowHandBack:
        """Everything that would be written; SetupError with the reason why it may not be."""
        name = self._settings.flow.name
        plan = await asyncio.to_thread(self._planner.discover)
        for unread in plan.unread.values():
            raise SetupError(f"flow {name}: {unread.reason}: {unread.what_to_do}")
        target = self._warm.client(self._settings.target)
        progress = await stored_progress(self._settings, plan.progress_topics, target)
        alive = await live_mirrormaker(self._settings, progress, plan.config_topics, target)
        if alive.refusal:
            raise SetupError(alive.refusal)
        book = await self._book()
        await self._refuse_hidden(plan, book)
        await self._take()
        known = {lane: entry for lane in plan.lanes if (entry := book.latest(lane.id)) is not None}
        if not known:
            raise SetupError(f"flow {name}: no lane of it was ever copied, so there is nothing to hand back")
        ends = await asyncio.to_thread(self._planner.target_ends, list(known))
        exact = await self._exact(plan, known, progress, ends)
        positions = {_name(lane): start.source_next for lane, start in exact.items()}
        mm2 = self._settings.mm2
        entries = hand_back(positions, progress, self._settings.flow.source, mm2.connector, mm2.topic)
        offsets = {entry.partition: entry.offset for entry in entries}
        return FlowHandBack(
            self._settings,
            tuple(entries),
            await self._missing({entry.topic for entry in entries}),
            tuple(replace(start.entry, mm2_offset=offsets.get(_name(lane), -1)) for lane, start in exact.items()),
            tuple(lane.id.key for lane in plan.lanes if lane not in known),
        )

    async def apply(self, plan: FlowHandBack, who: str, reason: str) -> None:
        """Write it, and who did so. MirrorMaker 2's entries come first: without our note the next run only looks closer than it
        must."""
        mm2 = self._settings.mm2
        for topic in plan.missing_topics:
            action = offsets_topic(topic, mm2.topic_partitions, mm2.topic_replication_factor)
            await asyncio.to_thread(self._admin.create, action, _REPLICATION_OPTION)
        client = self._warm.client(self._settings.target)
        now = self._clock.now_ms()
        await write_stored(client, plan.entries, self._settings.flow.source, now)
        records = [(EntryKey(entry.lane, entry.generation), encode_entry(entry)) for entry in plan.ledger]
        await self._warm.ledger(self._settings.target).write(records, now)
        event = Deed(plan.flow, "handed back to MirrorMaker 2", who, reason).event(now)
        await TopicWriter(client, EVENTS_TOPIC).append({0: [(event.flow.encode(), encode_event(event))]}, now)

    async def close(self) -> None:
        try:
            await self._tenure.release()
        finally:
            self._planner.close()
            self._admin.close()
            self._warm.close()

    async def _book(self) -> LedgerBook:
        try:
            return await self._warm.ledger(self._settings.target).refresh()
        except BrokerRefused as error:
            if error.code not in _MISSING:
                raise
            raise SetupError(
                f"flow {self._settings.flow.name}: nothing was ever copied to {self._settings.flow.target} "
                "(it has no ledger), so there is nothing to hand back"
            ) from error

    async def _refuse_hidden(self, plan: FlowPlan, book: LedgerBook) -> None:
        """A topic that was copied and may not be seen now has no lane in the plan: MirrorMaker 2 would copy it twice."""
        flow = self._settings.flow
        planned = {lane.id.topic for lane in plan.lanes}
        copied = sorted({lane.topic for lane in book.lanes() if lane.flow == flow.name} - planned)
        remote = [self._planner.remote_name(topic) for topic in copied]
        for end, topics in ((self._settings.source, copied), (self._settings.target, remote)):
            views = await self._warm.client(end).metadata(topics) if topics else {}
            hidden = [topic for topic, view in views.items() if view.error == _NOT_ALLOWED]
            if hidden:
                raise SetupError(
                    f"flow {flow.name} cannot be handed back: it has copied what may not be seen on cluster {end.alias} now "
                    f"(this needs READ on topic {named(hidden)}), and MirrorMaker 2 would copy that again"
                )

    async def _take(self) -> None:
        """Hold the flow, so that no lane moves; a run that renews its hold is alive, and is named."""
        await self._tenure.renew()
        first = self._tenure.other
        while not self._tenure.is_mine:
            other = self._tenure.other
            if first is not None and other is not None and other.renewed_ms != first.renewed_ms:
                raise SetupError(
                    f"flow {self._settings.flow.name} is carried by process {other.process} on {other.host}: stop that run "
                    "first (SIGTERM or Ctrl-C drains it)"
                )
            first = first or other
            await asyncio.sleep(_LOOK_SECONDS)
            await self._tenure.renew()

    async def _exact(
        self,
        plan: FlowPlan,
        known: Mapping[Lane, LedgerEntry],
        progress: Progress,
        ends: Mapping[Partition, int],
    ) -> dict[Lane, Start]:
        """The lanes attached: what the target really has of each; SetupError if one of them cannot be told."""
        source, target = (self._warm.client(end) for end in (self._settings.source, self._settings.target))
        book, name = self._warm.ledger(self._settings.target).book, self._settings.flow.name
        trusted = noted_ledger(book, name, self._settings.home)
        attacher = Attacher(source, target, plan.expiration_ms, trusted)
        found: dict[Lane, Start] = {}
        faults = []
        for lane, entry in known.items():
            end = ends.get((lane.remote_topic, lane.id.partition), entry.target_next)
            if needs_look(entry, progress.offset(_name(lane)), end) is Look.COMPARE:
                faults.append(f"{lane.id.key}: MirrorMaker 2 has stored progress of its own since our last run")
                continue
            try:
                committed = entry.rule.isolation == "read_committed"
                found[lane] = await attacher.attach(lane, entry, committed, self._clock.now_ms())
            except HeliographError as error:
                faults.append(f"{lane.id.key}: {error}")
        if faults:
            raise SetupError(
                f"flow {self._settings.flow.name} cannot be handed back: {_listed(faults)}; run it once more with "
                "`heliograph run FILE --until-caught-up`, then try again"
            )
        return found

    async def _missing(self, topics: set[str]) -> tuple[str, ...]:
        existing = await asyncio.to_thread(self._admin.topics, topics)
        return tuple(sorted(topics - set(existing)))


def _name(lane: Lane) -> Partition:
    return lane.id.topic, lane.id.partition


def _listed(faults: Sequence[str], most: int = 5) -> str:
    more = f"; and {len(faults) - most} more" if len(faults) > most else ""
    return "; ".join(faults[:most]) + more
