"""Steering a run: pause, resume, drain, throttle, topics added and taken out. Each change has its reason, is kept, then counts.

One change at a time: whoever comes in the middle of another is refused, and can ask again. What is written down first cannot be
lost; what cannot be written down is not done.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heliograph.config.flows import FlowSettings, Settings
from heliograph.config.overlay import OptionChange, TopicChange
from heliograph.control.amendments import (
    Amendments,
    amendments,
    connector_key,
    hold_key,
    load_amended,
    option_key,
    topic_key,
)
from heliograph.control.clock import Clock
from heliograph.control.flow_watch import FlowWatch, nothing
from heliograph.control.state_topic import VERSION, Row, StateTopic
from heliograph.errors import ConfigError, HeliographError, Refused
from heliograph.kafka.client import LATEST
from heliograph.kafka.log_ends import offsets_of
from heliograph.kafka.slot import Warm
from heliograph.model.events import Deed, Event
from heliograph.model.holds import Hold, HoldKind, hold_on
from heliograph.model.lanes import Lane, LaneId
from heliograph.replication.topic_names import should_replicate

RELOADED = "the file was read again"
_NO_SUCH_TOPIC = 3
_LIMIT = "throttle.bytes.per.second"


@dataclass(frozen=True)
class Change:
    """One change, before it is made: the rows that keep it, and what is answered. `settings`: others are in force with it."""

    what: str
    rows: Mapping[str, Row | None]
    answer: Mapping[str, Any]
    settings: bool = False
    deeds: Sequence[Deed] = ()
    """What is told of it once it is made."""


@dataclass(frozen=True)
class Step:
    """Other settings that nothing refuses: taken, or dropped."""

    take: Callable[[], Awaitable[None]]
    drop: Callable[[], None]
    said: Sequence[str] = ()
    """What is other in them, in words."""


Prepare = Callable[[Settings, Collection[str]], Awaitable[Step]]


def _held(hold: Hold, lanes: int) -> Change:
    done = "paused" if hold.kind is HoldKind.PAUSE else "drained, to stop where its source ends now"
    answer = {**hold.as_fields(), "lanes": lanes}
    return Change(f"{hold.kind} {hold.subject}", {hold_key(hold): hold.as_fields()}, answer, deeds=[_deed(hold, done)])


def _deed(hold: Hold, done: str) -> Deed:
    part = f"-{hold.partition}" if hold.partition >= 0 else ""
    return Deed(hold.flow, done, hold.who, hold.reason, f"{hold.topic}{part}")


class Steering:
    """What somebody wants beside the file. `prepare` makes a run ready to go by other settings, `on_holds` by other holds."""

    def __init__(self, path: str, state: StateTopic | None) -> None:
        self._path = path
        self._state = state
        self._clock = Clock()
        self.lock = asyncio.Lock()
        """Whoever changes something has it; what comes from the file, and not from a person, waits for it."""
        self._doing = ""
        self._doubtful: dict[str, Row | None] = {}
        """What rows were before writes that failed and may have arrived all the same."""
        self.amended = Amendments()
        self.unfit: Mapping[str, str] = {}
        """Connectors that do not fit the file as it is, with the reason."""
        self.is_known = state is None
        """Whether the topic that keeps changes was read."""
        self.watches: Sequence[FlowWatch] = ()
        self.warm: Warm | None = None
        self.prepare: Prepare = _nothing
        self.on_holds: Callable[[], None] = lambda: None
        self.tell_holds: Callable[[], Awaitable[None]] = nothing
        self.tell: Callable[[Event], None] = lambda _: None
        """Who is told of each change that was made."""

    # -- what is kept -----------------------------------------------------------------------------------------------

    async def recall(self) -> None:
        """What was changed before this run began; HeliographError or TimeoutError while it cannot be known."""
        if self._state is not None:
            self.amended = amendments(await self._state.read())
        self.is_known = True

    async def look_again(self) -> bool:
        """What another run changed since; whether that is anything. What is changed here meanwhile counts more."""
        if self._state is None:
            return False
        before = self.amended
        found = await self._state.read()
        if self._doing or self.amended is not before or found == _as_read(before.rows):
            return False
        self.amended, self.is_known = amendments(found), True
        return True

    async def settings(self) -> Settings:
        """The file as it is now with what was changed over it."""
        found = await asyncio.to_thread(load_amended, self._path, self.amended)
        self.unfit = found.unfit
        return found

    @property
    def by_rest(self) -> frozenset[str]:
        """The flows that connectors made."""
        return frozenset(one.flow.name for one in self.amended.connectors)

    @property
    def cluster_id(self) -> str:
        """Of the cluster that keeps changes; empty until it was reached."""
        return self._state.cluster_id if self._state is not None else ""

    def close(self) -> None:
        if self._state is not None:
            self._state.close()

    def hold_on(self, lane: LaneId) -> Hold | None:
        return hold_on(lane, self.amended.holds) if self.amended.holds else None

    def is_stopped(self, lane: LaneId, row: Mapping[str, Any]) -> bool:
        """Whether a lane is not carried, because somebody stopped it or it is where its drain ends. `row`: its last report."""
        hold = self.hold_on(lane)
        if hold is None or hold.kind is HoldKind.PAUSE:
            return hold is not None
        # What lies before the end may be no record at all: then the position stays below it, and the lane is done.
        is_done = bool(row.get("finished")) and row["since_ms"] >= hold.since_ms
        return is_done or int(row.get("position", -1)) >= hold.end_of(lane)

    # -- changes ----------------------------------------------------------------------------------------------------

    async def pause(self, flow: str, topic: str, partition: int, reason: str, who: str) -> Change:
        lanes = self._lanes(flow, topic, partition)
        return _held(Hold(flow, topic, partition, HoldKind.PAUSE, reason, who, self._clock.now_ms()), len(lanes))

    async def drain(self, flow: str, topic: str, partition: int, reason: str, who: str) -> Change:
        """Up to where the sources end now."""
        lanes = self._lanes(flow, topic, partition)
        watch = self._watch(flow)
        committed = watch.settings.isolation == "read_committed"
        client = (self.warm or Warm()).client(watch.settings.source)
        try:
            ends = await offsets_of(client, [(lane.id.topic, lane.id.partition) for lane in lanes], LATEST, committed)
        except (HeliographError, TimeoutError) as error:
            raise Refused(503, f"where the source ends cannot be seen: {error}") from error
        found = ((lane.id.key, ends.get((lane.id.topic, lane.id.partition), 0)) for lane in lanes)
        hold = Hold(flow, topic, partition, HoldKind.DRAIN, reason, who, self._clock.now_ms(), tuple(found))
        return _held(hold, len(lanes))

    async def resume(self, flow: str, topic: str, partition: int, reason: str, who: str) -> Change:
        """All that is held of it goes on; where more is held than it, that must go on first."""
        self._lanes(flow, topic, partition)
        asked = Hold(flow, topic, partition, HoldKind.PAUSE, reason, who, 0)
        within = [hold for hold in self.amended.holds if hold.is_within(asked)]
        wider = [hold for hold in self.amended.holds if asked.is_within(hold) and hold.subject != asked.subject]
        if wider and not within:
            raise Refused(409, f"{wider[0].subject} is held as a whole ({wider[0].sentence}): resume that")
        answer = {"resumed": [hold.subject for hold in within]}
        deeds = [_deed(asked, "resumed")] if within else []
        return Change(f"resume {asked.subject}", {hold_key(hold): None for hold in within}, answer, deeds=deeds)

    async def throttle(self, flow: str, topic: str, limit: int, reason: str, who: str) -> Change:
        self._lanes(flow, topic, -1)
        name = f"{flow}.topic.{topic}.{_LIMIT}" if topic else f"{flow}.{_LIMIT}"
        change = OptionChange(name, str(limit), reason, who, self._clock.now_ms())
        done = f"limited to {limit:,} bytes/s" if limit else "no longer limited"
        rows, deed = {option_key(name): change.as_fields()}, Deed(flow, done, who, reason, topic)
        return Change(f"throttle {flow}", rows, change.as_fields(), settings=True, deeds=[deed])

    async def add_topic(self, flow: str, topic: str, reason: str, who: str) -> Change:
        watch = self._watch(flow)
        if topic in (plan.topics if (plan := watch.plan_now()) is not None else ()):
            raise Refused(409, f"{flow} copies {topic} already")
        exists = await self._is_there(watch, topic)
        change = await self._topic(TopicChange(flow, topic, True, reason, who, self._clock.now_ms()))
        return replace(change, answer={**change.answer, "exists": exists, "source": watch.settings.flow.source})

    async def remove_topic(self, flow: str, topic: str, reason: str, who: str) -> Change:
        """It is copied no more; what was copied stays, and so does its position."""
        if topic_key(flow, topic) not in self.amended.rows:  # one that was added may not be there yet
            self._lanes(flow, topic, -1)
        return await self._topic(TopicChange(flow, topic, False, reason, who, self._clock.now_ms()))

    async def reload(self, reason: str, who: str) -> Change:
        deeds = [Deed(watch.name, RELOADED, who, reason, self._path) for watch in self.watches]
        return Change("reload", {}, {"reloaded": True}, settings=True, deeds=deeds)

    # -- how a change is made ---------------------------------------------------------------------------------------

    async def make(self, change: Change, dry_run: bool = False) -> Mapping[str, Any]:
        """Checked, made ready, written down, then done. What is refused was never begun; a dry run ends after the check."""
        if change.rows:
            self._refuse_elsewhere(*(deed.flow for deed in change.deeds))
        async with self.alone(change.what):
            wanted = await self._loaded(change.rows) if change.settings else None
            if not dry_run:
                await self._do(change, wanted)
                self.record(*change.deeds)
        return {**change.answer, "dry_run": dry_run}

    def record(self, *deeds: Deed) -> None:
        """What somebody did, as events."""
        for deed in deeds:
            self.tell(deed.event(self._clock.now_ms()))

    @contextlib.asynccontextmanager
    async def alone(self, what: str) -> AsyncIterator[None]:
        """While nobody else changes anything; Refused if somebody does."""
        if self._doing:
            raise Refused(409, f"another change is being made ({self._doing}): try again")
        self._doing = what
        try:
            async with self.lock:
                yield
        finally:
            self._doing = ""

    async def restart(self, flow: str) -> None:
        """It ends, drained, and begins anew, as at a start; the others notice nothing.

        What keeps it from beginning is its trouble from then on, and it is tried again: it ran before, so it is wanted.
        """
        self._refuse_elsewhere(flow)
        async with self.alone(f"restart of {flow}"):
            wanted = await self._loaded({})
            others = tuple(one for one in wanted.flows if one.flow.name != flow)
            for settings in (replace(wanted, flows=others), wanted):
                await (await self._ready(settings, {flow})).take()

    async def _ready(self, wanted: Settings, patient: Collection[str]) -> Step:
        try:
            return await self.prepare(wanted, patient)
        except (HeliographError, TimeoutError) as error:
            raise Refused(409, str(error) or "a cluster did not answer in time") from error

    async def _do(self, change: Change, wanted: Settings | None) -> None:
        step = await self._ready(wanted, self.by_rest) if wanted is not None else None
        try:
            await self._write(change.rows)
        except (
            BaseException
        ):  # whatever keeps it from being written, a run that ends too: what was opened for it is let go of
            if step is not None:
                step.drop()
            raise
        if step is not None and wanted is not None:
            await step.take()
            self.unfit = wanted.unfit
        self.on_holds()
        await self.tell_holds()

    async def _topic(self, change: TopicChange) -> Change:
        """The other way round takes back what was changed before, where the file alone says the same."""
        key = topic_key(change.flow, change.topic)
        rows: dict[str, Row | None] = {key: change.as_fields()}
        if key in self.amended.rows and await self._is_as_wished(change, {key: None}):
            rows = {key: None}
        elif not await self._is_as_wished(change, rows):
            raise Refused(409, f"{change.flow}: {change.topic} stays {'out' if change.chosen else 'in'}: {_ADVICE}")
        done = "added to the flow" if change.chosen else "taken out of the flow"
        deed = Deed(change.flow, done, change.who, change.reason, change.topic)
        return Change(f"topics of {change.flow}", rows, change.as_fields(), settings=True, deeds=[deed])

    async def _is_as_wished(self, change: TopicChange, rows: Mapping[str, Row | None]) -> bool:
        flows = (await self._loaded(rows)).flows
        wanted = next((flow for flow in flows if flow.flow.name == change.flow), None)
        return wanted is not None and _takes(wanted, change.topic) is change.chosen

    async def _loaded(self, rows: Mapping[str, Row | None]) -> Settings:
        """With these rows; Refused where they, or anything because of them, would not fit."""
        try:
            found = await asyncio.to_thread(load_amended, self._path, amendments(self._with(rows)))
        except ConfigError as error:
            raise Refused(400, "; ".join(error.faults)) from error
        except HeliographError as error:
            raise Refused(409, str(error)) from error
        unfit = [why for name, why in found.unfit.items() if name not in self.unfit or connector_key(name) in rows]
        if unfit:
            raise Refused(400, "; ".join(unfit))
        return found

    def _with(self, rows: Mapping[str, Row | None]) -> dict[str, Row]:
        return {key: row for key, row in {**self.amended.rows, **rows}.items() if row is not None}

    async def _write(self, rows: Mapping[str, Row | None]) -> None:
        if rows:
            if self._state is None or not self.is_known:
                raise Refused(503, "the cluster that keeps changes (state.cluster) was not reached yet: try again")
            try:
                await self._state.write({**self._doubtful, **rows}, self._clock.now_ms())
            except (HeliographError, TimeoutError) as error:
                self._doubtful |= {key: self.amended.rows.get(key) for key in rows}
                alias = self._state.cluster.alias
                raise Refused(503, f"cluster {alias} does not keep the change: {str(error) or 'no answer'}") from error
            self._doubtful = {}
            self.amended = amendments(self._with(rows))

    async def take_back(self) -> None:
        """What was refused because it could not be written, and may be written all the same; once the cluster answers."""
        async with self.lock:
            if self._doubtful and self._state is not None:
                await self._state.write(self._doubtful, self._clock.now_ms())
                self._doubtful = {}

    async def _is_there(self, watch: FlowWatch, topic: str) -> bool | None:
        """Whether the source has it; None where that is not to be seen."""
        if self.warm is None:
            return None
        try:
            error = (await self.warm.client(watch.settings.source).metadata([topic]))[topic].error
        except (HeliographError, TimeoutError):
            return None
        return {0: True, _NO_SUCH_TOPIC: False}.get(error)

    def _watch(self, flow: str) -> FlowWatch:
        watch = next((one for one in self.watches if one.name == flow), None)
        if watch is None:
            names = ", ".join(one.name for one in self.watches) or "none yet"
            raise Refused(404, f"there is no flow {flow}; flows are {names}")
        self._refuse_elsewhere(flow)
        return watch

    def _refuse_elsewhere(self, *flows: str) -> None:
        """What another run carries is changed there: here it would be written down, and that run would carry on."""
        for watch in self.watches:
            if watch.name in flows and watch.turns.refusal:
                raise Refused(409, watch.turns.refusal)

    def _lanes(self, flow: str, topic: str, partition: int) -> list[Lane]:
        """All that is meant; refused where there is no such topic or partition."""
        plan = self._watch(flow).plan_now()
        lanes = list(plan.lanes) if plan is not None else []
        if topic:
            lanes = [lane for lane in lanes if lane.id.topic == topic]
            if not lanes:
                raise Refused(404, f"{flow} does not copy a topic {topic}")
        if partition >= 0:
            found = [lane for lane in lanes if lane.id.partition == partition]
            if not found:
                raise Refused(404, f"{topic} has partitions 0 to {len(lanes) - 1}, not {partition}")
            lanes = found
        return lanes


def _as_read(rows: Mapping[str, Row]) -> dict[str, Row]:
    """As the topic gives them back."""
    return {key: {"version": VERSION, **row} for key, row in rows.items()}


_ADVICE = "the file's topics.exclude, an internal name or a cycle decides that"


def _takes(flow: FlowSettings, topic: str) -> bool:
    heartbeats = flow.heartbeats_replication_enabled
    return should_replicate(topic, flow.topic_names, flow.naming, flow.flow.target, heartbeats).replicate


async def _nothing(_: Settings, __: Collection[str] = ()) -> Step:
    """A run that was not begun has nothing to change."""

    async def take() -> None:
        """As above."""

    return Step(take, lambda: None)


def with_state(settings: Settings) -> StateTopic | None:
    """The topic that keeps a file's changes; none where there is no cluster to keep it."""
    factor = settings.engine.topics_replication_factor
    return StateTopic(settings.state, factor) if settings.state is not None else None
