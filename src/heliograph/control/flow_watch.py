"""One flow under watch: planned at the start, looked at again every refresh interval, its trouble named."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from heliograph.config.flows import EngineSettings, FlowSettings
from heliograph.control.clock import Clock
from heliograph.control.jobs import JobRunner
from heliograph.control.ledger_watch import LedgerWatch
from heliograph.control.looks import Looks
from heliograph.control.machine import this_machine
from heliograph.control.opening import OpenedFlow, keeping_lanes, open_lanes, rejoined
from heliograph.control.planner import FlowPlan, FlowPlanner, flow_rules
from heliograph.control.remote_owners import RemoteOwners
from heliograph.control.starting import Wish, check_files, live_mirrormaker, stored_progress
from heliograph.control.tenure import Tenure
from heliograph.control.turns import Turns, carried_by
from heliograph.errors import HeliographError, SetupError
from heliograph.kafka.grants import TOPIC_REFUSED
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.slot import Warm
from heliograph.kafka.versions import check_brokers
from heliograph.model.events import Deed, Event, EventKind
from heliograph.model.lanes import LaneId
from heliograph.replication.connect_offsets import Begins
from heliograph.replication.generations import Holder
from heliograph.replication.topic_plan import Unnameable

_log = logging.getLogger(__name__)
_MAX_BACKOFF_SECONDS = 30.0
_LOOK_AGAIN_SECONDS = 5.0
_LONG_SECONDS = 86_400.0
_KEEP_WARM_SECONDS = 30.0


@dataclass(frozen=True)
class Runner:
    """Who runs: written into the ledger, shown by status."""

    host: str
    process: int
    run: str
    since_ms: int

    def holding(self, flow: str) -> Holder:
        me = Holder(flow, self.host, self.process, self.run, self.since_ms, self.since_ms, released=False)
        return replace(me, machine=this_machine())


class FlowWatch:
    """Owns a flow's plan. `on_change` is called when its lanes changed, `tell` with what a person must know."""

    def __init__(
        self,
        settings: FlowSettings,
        engine: EngineSettings,
        warm: Warm,
        me: Runner,
        on_change: Callable[[], None],
        tell: Callable[[Event], None],
    ) -> None:
        self.settings = settings
        self.planner = FlowPlanner(settings, engine)
        self._engine = engine
        self._warm = warm
        self._clock = Clock()
        self._on_change = on_change
        self._tell = tell
        self._ledger_watch = LedgerWatch(self.name, self._ledger, tell, self._clock.now_ms)
        wait_s = float(engine.takeover_wait_seconds)
        self.turns = Turns(me.holding(settings.flow.name), wait_s, self._clock, tell)
        self.turns.on_renewed = self._look_at_ledger
        self.opened: OpenedFlow | None = None
        self.first: OpenedFlow | None = None
        """The plan as it was when the flow was first opened: what `--until-caught-up` copies."""
        self.reset = False
        """--reset: every lane begins anew, by `start.from`, once in this run."""
        self.reset_by = ""
        self._reset_told = False
        self._settled: set[str] = set()
        self.owners = RemoteOwners()
        """Who writes which remote topic; one for all flows of a run."""
        self.before_taking_over: Callable[[], Awaitable[None]] = nothing
        """Called before lanes of another run are carried: somebody may have stopped some of them there."""
        self._left_out: set[Unnameable] = set()
        self.trouble = ""
        self.trouble_since_ms = 0
        self.waits_for: FlowPlan | None = None
        """The plan as it was when it began to wait: where `--until-caught-up` ends, whoever copies."""
        self._is_opening = False
        self.looks = Looks(lambda: self._clock.monotonic())
        self._opening = asyncio.Lock()
        self.jobs = self._new_jobs()

    @property
    def name(self) -> str:
        return self.settings.flow.name

    def _new_jobs(self, before: JobRunner | None = None) -> JobRunner:
        return JobRunner(self.name, self._may_work, self._tell, self._clock, before=before)

    def change(self, settings: FlowSettings) -> None:
        """The file was saved with other settings for this flow: plan anew with them, at once. Its jobs begin again."""
        self.adopt(settings)
        self.jobs = self._new_jobs(self.jobs)
        self.looks.now()

    def adopt(self, settings: FlowSettings) -> None:
        """Settings that count from the next look on, whenever that is."""
        self.settings = settings
        self.planner.adopt(settings)
        self.looks.whole()

    def plan_now(self) -> FlowPlan | None:
        return self.opened.plan if self.opened is not None else None

    def _may_work(self) -> bool:
        """Whether jobs may run: we hold the flow, and know what it carries."""
        return self.opened is not None and self.turns.may_work

    async def discover(self, topics: frozenset[str] | None = None) -> FlowPlan:
        """Both sides as they are now, or these topics alone; SetupError while a MirrorMaker 2 carries the flow."""
        if self.opened is None:
            await check_brokers(self._warm.client(self.settings.source), is_target=False)
            await check_brokers(self._warm.client(self.settings.target), is_target=True)
        await asyncio.to_thread(check_files, self.settings)
        plan = await self._with_hidden(await asyncio.to_thread(self._discovered, topics))
        if self.settings.flow.trial:
            return plan
        target = self._warm.client(self.settings.target)
        progress = await stored_progress(self.settings, plan.progress_topics, target)
        alive = await live_mirrormaker(self.settings, progress, plan.config_topics, target)
        if alive.refusal:
            raise SetupError(alive.refusal)
        return replace(plan, progress=progress, lookalikes=alive.lookalikes)

    def _discovered(self, topics: frozenset[str] | None) -> FlowPlan:
        before = self.plan_now()
        if topics is None or before is None:
            return self.planner.discover()
        return self.planner.discover_topics(topics, before)

    async def _with_hidden(self, plan: FlowPlan) -> FlowPlan:
        """A topic that may no longer be seen is not gone: its lanes stay, and say which permission they need."""
        if self.opened is None:
            return plan
        before = self.opened.plan
        unseen = plan.within(before.topics) - plan.topics.keys()
        views = await self._warm.client(self.settings.source).metadata(unseen) if unseen else {}
        return plan.keeping(before, {name for name, view in views.items() if view.error == TOPIC_REFUSED})

    def _wish(self, begins: Begins) -> Wish:
        self._settled.update(self.opened.entries if self.opened is not None else ())
        return Wish(self.reset, frozenset(self._settled), begins)

    async def begin_anew(self, begins: Begins) -> None:
        """These lanes go on elsewhere on the source, as new generations. Nobody may carry them meanwhile."""
        async with self._opening:
            plan = await self.discover()
            if self.tenure is not None:
                await self.tenure.renew()
            if not self.turns.is_mine:
                raise SetupError(f"another run holds flow {self.name}: its offsets are not ours to set")
            await self._open(plan, begins)

    async def open(self, plan: FlowPlan) -> None:
        """Make the remote topics, take the flow, open the lanes' generations."""
        async with self._opening:
            await self._open(plan, {})

    async def _open(self, plan: FlowPlan, begins: Begins) -> None:
        ledger = self._ledger()
        if not await self.turns.may_begin(ledger):
            self._stand_by(plan)
            return
        plan = self.owners.settle(plan)
        self._tell_left_out(plan)
        made = await asyncio.to_thread(self.planner.apply, plan)
        if not await self.turns.join(ledger):
            self._stand_by(plan)
            return
        if self.standing_by:
            await self.before_taking_over()
        found = await open_lanes(made, self.planner, self._warm, self.turns.is_mine, self._wish(begins))
        opened = keeping_lanes(found, self.opened)
        if plan.only is not None:
            if self.opened is None:  # let go meanwhile
                self.looks.now()
                return
            opened = rejoined(opened, self.opened)
        self._tell_reset(opened)
        for event in opened.events:
            self._tell(event)
        changed = self.opened is None or _shape(self.opened) != _shape(opened) or bool(opened.begun)
        self.opened = opened
        self.turns.take_over()
        self.first = self.first or opened
        self._settle("")
        self._ledger_watch.look_at_claims(self._lanes())
        if changed:
            self._on_change()

    def _tell_reset(self, opened: OpenedFlow) -> None:
        """Once, before what became of each lane; one that waits for another run to let go has not begun anew."""
        if self.reset and opened.begun and not self._reset_told:
            self._reset_told = True
            deed = Deed(self.name, "every lane begins anew (--reset)", self.reset_by)
            self._tell(deed.event(self._clock.now_ms()))

    # -- one run at a time ------------------------------------------------------------------------------------------

    @property
    def tenure(self) -> Tenure | None:
        return self.turns.tenure

    @property
    def standing_by(self) -> bool:
        """Another run carries the flow; this one waits, and changes nothing on either cluster."""
        return self.turns.standing_by

    async def carrier(self) -> str:
        """Which other run carries the flow, as the ledger has it; nothing where none does, or the ledger does not answer."""
        try:
            book = await self._ledger().refresh_if_there()
        except (HeliographError, TimeoutError):
            return ""
        holder = book.holder(self.name)
        return "" if holder is None or holder.released else carried_by(holder)

    def _stand_by(self, plan: FlowPlan) -> None:
        """Whatever tasks have of the flow is drained."""
        was_open = self.opened is not None
        if self.opened is not None and plan.only is not None:
            plan = self.opened.plan
        self.opened = None
        self.looks.whole()
        self.waits_for = self.waits_for or plan
        self._settle("")
        self.turns.stand_by()
        if was_open:
            self._on_change()

    def take_turns(self) -> None:
        """Let go of what another run is to carry; open what it does not carry any more."""
        may_carry = self.tenure is not None and self.tenure.may_carry
        if self.opened is not None and not may_carry:
            self._stand_by(self.opened.plan)
        elif self.standing_by and may_carry and not self._is_opening:
            self._is_opening = True
            self.looks.now()

    def reached(self) -> set[str]:
        """Lanes that somebody else has copied to where they ended when this run began to wait; by the ledger."""
        if self.waits_for is None or not self.standing_by:
            return set()
        book = self._ledger().book
        lanes = {LaneId(self.name, topic, number): end for (topic, number), end in self.waits_for.ends.items()}
        known = {lane: book.latest(lane) for lane in lanes}
        return {lane.key for lane, entry in known.items() if entry is not None and entry.source_next >= lanes[lane]}

    def _tell_left_out(self, plan: FlowPlan) -> None:
        left_out = {action for action in plan.actions if isinstance(action, Unnameable)}
        left_out |= {action for action in self._left_out if not plan.within([action.topic])}
        for action in sorted(left_out - self._left_out, key=lambda action: action.topic):
            reason = f"the topic is not copied: {action.reason}"
            what_to_do = "exclude it (topics.exclude), or name it otherwise"
            self._tell(Event(self._clock.now_ms(), self.name, action.topic, EventKind.PARKED, reason, what_to_do))
        self._left_out = left_out

    async def open_once_seen(self, look: Awaitable[FlowPlan]) -> None:
        """With the plan of a look that may still be under way."""
        await self.open(await look)

    async def _look_again(self, topics: frozenset[str] | None) -> None:
        await self.open(await self.discover(topics))

    async def watch(self, first: Awaitable[None] | None = None) -> None:
        """Look again for ever. Trouble with a cluster is kept, shown and tried again with growing pauses.

        `first` is the first look, where it is under way already.
        """
        backoff = 1.0
        if first is not None:
            await self._tried(first)
        while True:
            if self.standing_by:
                pause = min(_KEEP_WARM_SECONDS, float(self.settings.refresh_topics_interval_s))
            elif self.opened is None:
                pause = backoff
                backoff = min(backoff * 2, _MAX_BACKOFF_SECONDS)
            elif self.trouble:
                pause = min(_LOOK_AGAIN_SECONDS, float(self.settings.refresh_topics_interval_s))
            elif self.settings.refresh_topics_enabled:
                pause = float(self.settings.refresh_topics_interval_s)
            else:
                pause = _LONG_SECONDS
            if await self._tried(self._look_again(await self.looks.wait(pause))):
                backoff = 1.0
            self._is_opening = False

    async def _tried(self, look: Awaitable[None]) -> bool:
        try:
            await look
        except (HeliographError, TimeoutError) as error:
            self._settle(str(error) or "a cluster did not answer in time")
            return False
        return True

    def look_at_parked(self, parked: Iterable[str]) -> None:
        """Lanes that are parked or refused: what keeps them may have changed on a cluster, or may be mended by a plan made now."""
        refused = self.opened.refused if self.opened is not None else ()
        self.looks.at_lanes(frozenset((*parked, *refused)))

    def _look_at_ledger(self) -> None:
        if not self.standing_by and self._ledger_watch.look(self._lanes()):
            self.looks.now()

    def _ledger(self) -> Ledger:
        return self._warm.ledger(self.settings.target)

    def _lanes(self) -> set[LaneId]:
        return {lane.id for lane in self.opened.plan.lanes} if self.opened is not None else set()

    def expect(self, error: Exception) -> None:
        """Trouble that the plan met; `tell_trouble` says it, if the run begins in spite of it."""
        self.trouble = str(error) or "a cluster did not answer in time"
        self.trouble_since_ms = self._clock.now_ms()

    def tell_trouble(self) -> None:
        if self.trouble:
            self._say(EventKind.TROUBLE, self.trouble)

    def fail(self, error: Exception) -> None:
        self._settle(str(error))

    def _settle(self, trouble: str) -> None:
        if trouble == self.trouble:
            return
        over = self.trouble and not trouble
        self.trouble = trouble
        self.trouble_since_ms = self._clock.now_ms()
        if trouble:
            self.looks.whole()
            self._say(EventKind.TROUBLE, trouble)
        elif over:
            self._say(EventKind.RECOVERED, "both clusters answer")

    def _say(self, kind: EventKind, reason: str, what_to_do: str = "") -> None:
        self._tell(Event(self._clock.now_ms(), self.name, self.name, kind, reason, what_to_do))

    def close(self) -> None:
        self.planner.close()


async def nothing() -> None:
    """Nobody wants to know before a flow is taken over."""


def _shape(opened: OpenedFlow) -> object:
    """What tasks are told of a flow: where it is another, the next epoch begins. Not why a lane is refused, which may be another
    sentence at each look, nor its generation: tasks open generations too."""
    return (opened.plan.lanes, opened.refused.keys(), opened.entries.keys(), flow_rules(opened.plan))
