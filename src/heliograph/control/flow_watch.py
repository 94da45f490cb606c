"""One flow under watch: planned at the start, looked at again every refresh interval, its trouble named."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from heliograph.config.flows import EngineSettings, FlowSettings
from heliograph.control.clock import Clock
from heliograph.control.jobs import JobRunner
from heliograph.control.opening import OpenedFlow, keeping_lanes, open_lanes
from heliograph.control.planner import FlowPlan, FlowPlanner, flow_rules
from heliograph.control.remote_owners import RemoteOwners
from heliograph.control.starting import Wish, check_files, live_mirrormaker, stored_progress
from heliograph.control.tenure import Tenure
from heliograph.errors import HeliographError, SetupError
from heliograph.kafka.grants import TOPIC_REFUSED
from heliograph.kafka.slot import Warm
from heliograph.kafka.versions import check_brokers
from heliograph.model.events import Event, EventKind
from heliograph.replication.connect_offsets import Begins
from heliograph.replication.generations import Holder
from heliograph.replication.topic_plan import Unnameable

_log = logging.getLogger(__name__)
_RENEW_SECONDS = 2.0
_MAX_BACKOFF_SECONDS = 30.0
_LOOK_AGAIN_SECONDS = 5.0
_LONG_SECONDS = 86_400.0


@dataclass(frozen=True)
class Runner:
    """Who runs: written into the ledger, shown by status."""

    host: str
    process: int
    run: str
    since_ms: int


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
        self._holder = Holder(settings.flow.name, me.host, me.process, me.run, me.since_ms, me.since_ms, False)
        self.tenure: Tenure | None = None
        self.opened: OpenedFlow | None = None
        self.first: OpenedFlow | None = None
        """The plan as it was when the flow was first opened: what `--until-caught-up` copies."""
        self.reset = False
        """--reset: every lane begins anew, by `start.from`, once in this run."""
        self._settled: set[str] = set()
        self.owners = RemoteOwners()
        """Who writes which remote topic; one for all flows of a run."""
        self._left_out: set[Unnameable] = set()
        self.trouble = ""
        self.trouble_since_ms = 0
        self._look = asyncio.Event()
        self._look_now = asyncio.Event()
        self._opening = asyncio.Lock()
        self.jobs = self._new_jobs()

    @property
    def name(self) -> str:
        return self.settings.flow.name

    def _new_jobs(self) -> JobRunner:
        return JobRunner(self.name, self._may_work, self._tell, self._clock)

    def change(self, settings: FlowSettings) -> None:
        """The file was saved with other settings for this flow: plan anew with them, at once. Its jobs begin again."""
        self.adopt(settings)
        self.jobs = self._new_jobs()
        self._look_now.set()

    def adopt(self, settings: FlowSettings) -> None:
        """Settings that count from the next look on, whenever that is."""
        self.settings = settings
        self.planner.adopt(settings)

    def plan_now(self) -> FlowPlan | None:
        return self.opened.plan if self.opened is not None else None

    def _may_work(self) -> bool:
        """Whether jobs may run: we hold the flow, and know what it carries."""
        return self.opened is not None and self.tenure is not None and self.tenure.is_mine

    async def discover(self) -> FlowPlan:
        """Both sides as they are now; SetupError while a MirrorMaker 2 carries the flow."""
        if self.opened is None:
            await check_brokers(self._warm.client(self.settings.source), is_target=False)
            await check_brokers(self._warm.client(self.settings.target), is_target=True)
        await asyncio.to_thread(check_files, self.settings)
        plan = await self._with_hidden(await asyncio.to_thread(self.planner.discover))
        if self.settings.flow.trial:
            return plan
        target = self._warm.client(self.settings.target)
        progress = await stored_progress(self.settings, plan.progress_topics, target)
        alive = await live_mirrormaker(self.settings, progress, plan.config_topics, target)
        if alive.refusal:
            raise SetupError(alive.refusal)
        return replace(plan, progress=progress, lookalikes=alive.lookalikes)

    async def _with_hidden(self, plan: FlowPlan) -> FlowPlan:
        """A topic that may no longer be seen is not gone: its lanes stay, and say which permission they need."""
        if self.opened is None:
            return plan
        before = self.opened.plan
        unseen = before.topics.keys() - plan.topics.keys()
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
            if self.tenure is None or not self.tenure.is_mine:
                raise SetupError(f"another run holds flow {self.name}: its offsets are not ours to set")
            await self._open(plan, begins)

    async def open(self, plan: FlowPlan) -> None:
        """Make the remote topics, take the flow, open the lanes' generations."""
        async with self._opening:
            await self._open(plan, {})

    async def _open(self, plan: FlowPlan, begins: Begins) -> None:
        plan = self.owners.settle(plan)
        self._tell_left_out(plan)
        made = await asyncio.to_thread(self.planner.apply, plan)
        if self.tenure is None:
            ledger = self._warm.ledger(self.settings.target)
            wait_s = float(self._engine.takeover_wait_seconds)
            self.tenure = Tenure(ledger, self._holder, wait_s, self._clock.monotonic, self._clock.now_ms)
            await self.tenure.renew()
        found = await open_lanes(made, self.planner, self._warm, self.tenure.is_mine, self._wish(begins))
        opened = keeping_lanes(found, self.opened)
        for event in opened.events:
            self._tell(event)
        changed = self.opened is None or _shape(self.opened) != _shape(opened)
        self.opened = opened
        self.first = self.first or opened
        self._settle("")
        if changed:
            self._on_change()

    def _tell_left_out(self, plan: FlowPlan) -> None:
        left_out = {action for action in plan.actions if isinstance(action, Unnameable)}
        for action in sorted(left_out - self._left_out, key=lambda action: action.topic):
            reason = f"the topic is not copied: {action.reason}"
            what_to_do = "exclude it (topics.exclude), or name it otherwise"
            self._tell(Event(self._clock.now_ms(), self.name, action.topic, EventKind.PARKED, reason, what_to_do))
        self._left_out = left_out

    async def open_once_seen(self, look: Awaitable[FlowPlan]) -> None:
        """With the plan of a look that may still be under way."""
        await self.open(await look)

    async def _look_again(self) -> None:
        await self.open(await self.discover())

    async def watch(self, first: Awaitable[None] | None = None) -> None:
        """Look again for ever. Trouble with a cluster is kept, shown and tried again with growing pauses.

        `first` is the first look, where it is under way already.
        """
        backoff = 1.0
        if first is not None:
            await self._tried(first)
        while True:
            if self.opened is None:
                pause = backoff
                backoff = min(backoff * 2, _MAX_BACKOFF_SECONDS)
            elif self.opened.refused or self.trouble:
                pause = min(_LOOK_AGAIN_SECONDS, float(self.settings.refresh_topics_interval_s))
            elif self.settings.refresh_topics_enabled:
                pause = float(self.settings.refresh_topics_interval_s)
            else:
                pause = _LONG_SECONDS
            await self._until_look(pause)
            if await self._tried(self._look_again()):
                backoff = 1.0

    async def _tried(self, look: Awaitable[None]) -> bool:
        try:
            await look
        except (HeliographError, TimeoutError) as error:
            self._settle(str(error) or "a cluster did not answer in time")
            return False
        return True

    def look_now(self) -> None:
        """Somebody asks for it."""
        self._look_now.set()

    def look_soon(self) -> None:
        """A lane met something that the plan does not know yet: another topic id, a smaller limit."""
        self._look.set()

    async def _until_look(self, seconds: float) -> None:
        early = min(seconds, _LOOK_AGAIN_SECONDS)
        if not await _is_set(self._look_now, early):
            waits = [asyncio.create_task(_is_set(one, seconds - early)) for one in (self._look, self._look_now)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        self._look.clear()
        self._look_now.clear()

    async def keep_tenure(self, on_lost: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            if self.tenure is None:
                continue
            held = self.tenure.is_mine
            await self.hold()
            if held and not self.tenure.is_mine:
                self._say(EventKind.TAKEN_OVER, "another run took the flow over", "see status for its host")
                on_lost()

    async def hold(self) -> None:
        """Say again that the flow is ours, if it is."""
        try:
            if self.tenure is not None:
                await self.tenure.renew()
        except (HeliographError, TimeoutError) as error:
            _log.debug("%s: the hold on the flow was not renewed: %s", self.name, error)

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
            self._say(EventKind.TROUBLE, trouble)
        elif over:
            self._say(EventKind.RECOVERED, "both clusters answer")

    def _say(self, kind: EventKind, reason: str, what_to_do: str = "") -> None:
        self._tell(Event(self._clock.now_ms(), self.name, self.name, kind, reason, what_to_do))

    def close(self) -> None:
        self.planner.close()


def _shape(opened: OpenedFlow) -> object:
    """What tasks are told of a flow: where it is another, the next epoch begins."""
    generations = {key: entry.generation for key, entry in opened.entries.items()}
    return (opened.plan.lanes, opened.refused, generations, flow_rules(opened.plan))


async def _is_set(event: asyncio.Event, within_s: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, within_s)):
            await event.wait()
    return event.is_set()
