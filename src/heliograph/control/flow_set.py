"""The flows of a run: planned together at the start, and as the file changes they come, go and change while others go on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from heliograph.config.changes import Changes, only_limits
from heliograph.config.flows import EngineSettings, FlowSettings
from heliograph.control.board import Board
from heliograph.control.clock import Clock
from heliograph.control.conductor import Conductor
from heliograph.control.events import EventLog
from heliograph.control.flow_jobs import (
    Ground,
    closing_jobs,
    companions,
    lasting_jobs,
    parting_jobs,
    repeated_jobs,
)
from heliograph.control.flow_tasks import FlowTasks
from heliograph.control.flow_watch import FlowWatch, Runner, nothing
from heliograph.control.planner import FlowPlan, FlowPlanner
from heliograph.control.positions import Positions
from heliograph.control.remote_owners import RemoteOwners
from heliograph.errors import (
    AccessRefused,
    BrokerRefused,
    BrokersUnsupported,
    ClusterUnreachable,
    ConfigError,
    ConnectionLost,
    HeliographError,
)
from heliograph.kafka.slot import Warm
from heliograph.replication.topic_plan import remote_conflicts

_log = logging.getLogger(__name__)
DRAIN_SECONDS = 6.0
_RELEASE_SECONDS = 1.5
_PATIENCE_SECONDS = 8.0
_LOOK_SECONDS = 0.05
_OUT_OF_REACH = (BrokerRefused, ClusterUnreachable, ConnectionLost, TimeoutError)


@dataclass(frozen=True)
class Manner:
    """How a run runs its flows."""

    engine: EngineSettings
    me: Runner
    reset: bool
    until_caught_up: bool
    board: Board = field(default_factory=Board)
    """What tasks report of lanes."""
    who: str = ""
    """Who gave the command."""


@dataclass(frozen=True)
class Prepared:
    """A change that nothing refuses any more: new flows have been looked at, or their clusters do not answer yet."""

    changes: Changes
    looks: Mapping[FlowWatch, asyncio.Task[FlowPlan]]


class FlowSet:
    """`watches` is one list for the whole run. `on_change` is called when lanes changed."""

    def __init__(
        self, flows: Sequence[FlowSettings], manner: Manner, warm: Warm, events: EventLog, on_change: Callable[[], None]
    ) -> None:
        self._manner = manner
        self._warm = warm
        self._events = events
        self._on_change = on_change
        self._clock = Clock()
        self.tasks = FlowTasks()
        self.conductor: Conductor | None = None
        """Once there is one: who carries lanes, and can be told to stop."""
        self.before_taking_over: Callable[[], Awaitable[None]] = nothing
        self._owners = RemoteOwners()
        self._begun: set[str] = set()
        self.watches = [self._watch(flow) for flow in flows]

    def _watch(self, flow: FlowSettings) -> FlowWatch:
        watch = FlowWatch(flow, self._manner.engine, self._warm, self._manner.me, self._on_change, self._events.tell)
        # Once in a run: a flow that ends and begins anew goes on where it was.
        watch.reset = self._manner.reset and watch.name not in self._begun
        watch.reset_by = self._manner.who
        self._begun.add(watch.name)
        watch.owners = self._owners
        watch.before_taking_over = lambda: self.before_taking_over()
        return watch

    def of(self, lane: str) -> FlowWatch | None:
        return next((watch for watch in self.watches if lane.startswith(f"{watch.name}/")), None)

    # -- the start --------------------------------------------------------------------------------------------------

    async def plan(self, patient: Collection[str] = ()) -> list[FlowPlan]:
        """Read all clusters; ConfigError where the file cannot be right. Flows out of reach are left for later.

        `patient` are flows that are left for later whatever keeps them from beginning: nobody waits for the answer.
        """
        looks = await asyncio.gather(*(watch.discover() for watch in self.watches), return_exceptions=True)
        found = dict(zip(self.watches, looks, strict=True))
        plans = self._judged({watch: look for watch, look in found.items() if watch.name not in patient}, [])
        return [*plans, *_put_off({watch: look for watch, look in found.items() if watch.name in patient})]

    def _judged(
        self, found: Mapping[FlowWatch, FlowPlan | BaseException], others: Sequence[FlowPlan]
    ) -> list[FlowPlan]:
        refused = [result for result in found.values() if isinstance(result, BrokersUnsupported)]
        if refused and len(refused) == len(found):
            raise refused[0]  # nothing is left to run
        plans: list[FlowPlan] = []
        faults: list[str] = []
        for watch, result in found.items():
            match result:
                case FlowPlan():
                    plans.append(result)
                case ConfigError():
                    faults.extend(result.faults)
                case ClusterUnreachable() | BrokersUnsupported():
                    watch.expect(result)
                case AccessRefused() if not any(isinstance(other, FlowPlan) for other in found.values()):
                    raise result  # with other flows to carry, they need not wait until a person has acted
                case ConnectionLost():
                    watch.expect(result)
                case BaseException():
                    raise result
        faults += remote_conflicts(_writers([*others, *plans]))
        if faults:
            raise ConfigError(faults)
        return plans

    async def begin(self, plans: Sequence[FlowPlan]) -> None:
        """Open every flow that could be planned, and keep all of them under watch."""
        by_name = {plan.name: plan for plan in plans}
        for watch in self.watches:
            await self._open(watch, by_name.get(watch.name))
        for watch in self.watches:
            self._keep(watch)

    async def _open(self, watch: FlowWatch, plan: FlowPlan | None) -> None:
        watch.tell_trouble()
        if plan is not None:
            try:
                await watch.open(await self._with_heartbeats(watch, plan))
            except _OUT_OF_REACH as error:
                watch.fail(error)  # its watch tries again

    async def _with_heartbeats(self, watch: FlowWatch, plan: FlowPlan) -> FlowPlan:
        if self._manner.until_caught_up:
            return plan  # it writes none
        pulses = [pulse for other in self.watches for pulse in other.settings.jobs.heartbeats]
        return await asyncio.to_thread(watch.planner.with_heartbeats, plan, pulses)

    def _keep(self, watch: FlowWatch, first: asyncio.Task[None] | None = None) -> None:
        self.tasks.begin(
            watch.name,
            "watch",
            [watch.watch(first), watch.turns.keep(), watch.turns.notice(self._lost, watch.take_turns)],
        )
        self.tasks.begin(watch.name, "jobs", self._jobs(watch))

    def _lost(self) -> None:
        """A flow is not ours any more."""
        if self.conductor is not None:
            self.conductor.take_back()

    def _jobs(self, watch: FlowWatch) -> Iterator[Coroutine[Any, Any, Any]]:
        """What is done around the records; a run that ends by itself does once what another does at intervals."""
        ground = self._ground(watch)
        if self._manner.until_caught_up:
            yield from (watch.jobs.once(job) for job in repeated_jobs(ground))
        else:
            jobs = [*repeated_jobs(ground), *lasting_jobs(ground)]
            yield from (watch.jobs.keep(job) for job in jobs)
            yield from companions(jobs)

    def _ground(self, watch: FlowWatch) -> Ground:
        return Ground(
            watch.settings,
            watch.plan_now,
            watch.planner,
            self._warm,
            self._clock,
            look_again=watch.looks.soon,
            topic_made=self._topic_made,
            tell=self._events.tell,
            rows=partial(self._manner.board.rows_of, watch.name),
            positions=Positions(self._manner.board, watch.name).now,
            before=watch.jobs.before.get,
        )

    async def close_books(self) -> None:
        """Everything is copied and in the ledger: offset syncs, checkpoints and group offsets, each once."""
        await asyncio.gather(*(self._close_book(watch) for watch in self.watches))

    async def _close_book(self, watch: FlowWatch) -> None:
        for job in closing_jobs(self._ground(watch)):
            await watch.turns.hold()
            await watch.jobs.at_end(job)

    def _topic_made(self, alias: str) -> None:
        """Also the way back mirrors the heartbeats that a flow writes to its target, and need not wait for its next look."""
        for watch in self.watches:
            if watch.settings.flow.source == alias and watch.settings.refresh_topics_enabled:
                watch.looks.soon()

    # -- the file was saved -----------------------------------------------------------------------------------------

    async def prepare(self, changes: Changes, patient: Collection[str] = ()) -> Prepared:
        """ConfigError or another error where flows do not fit together or cannot be; nothing was changed then.

        Clusters that do not answer for a while refuse nothing: their flows begin in trouble, and when they answer.
        """
        looks = {watch: asyncio.create_task(watch.discover()) for watch in map(self._watch, changes.added)}
        prepared = Prepared(changes, looks)
        try:
            others = await self._others(changes)
            if looks:
                await asyncio.wait(looks.values(), timeout=_PATIENCE_SECONDS)
            found = {watch: _seen(watch, look) for watch, look in looks.items()}
            self._judged({watch: look for watch, look in found.items() if watch.name not in patient}, others)
            _put_off({watch: look for watch, look in found.items() if watch.name in patient})
        except BaseException:  # whatever keeps it from being made: what was opened for it is let go of
            self.drop(prepared)
            raise
        return prepared

    def drop(self, prepared: Prepared) -> None:
        """It is not made after all."""
        for watch, look in prepared.looks.items():
            look.cancel()
            watch.close()

    async def carry_out(self, prepared: Prepared) -> None:
        for name in prepared.changes.removed:
            await self._remove(name)
        for settings in prepared.changes.changed:
            watch = self._named(settings.flow.name)
            if only_limits(watch.settings, settings):
                watch.adopt(settings)
                continue
            watch.change(settings)
            await self.tasks.end(watch.name, "jobs")
            self.tasks.begin(watch.name, "jobs", self._jobs(watch))
        begun = [self._add(watch, look) for watch, look in prepared.looks.items()]
        if under_way := [first for first in begun if first is not None]:
            await asyncio.wait(under_way, timeout=_PATIENCE_SECONDS)

    def _add(self, watch: FlowWatch, look: asyncio.Task[FlowPlan]) -> asyncio.Task[None] | None:
        """It is opened with what was seen of it; where that was trouble, its watch looks again."""
        self._events.carry(watch.name, watch.settings.target)
        self.watches.append(watch)
        watch.tell_trouble()
        has_failed = look.done() and look.exception() is not None
        first = None if has_failed else asyncio.create_task(watch.open_once_seen(look))
        self._keep(watch, first)
        return first

    async def _others(self, changes: Changes) -> list[FlowPlan]:
        """The plans of the flows that stay, as they are to be."""
        running = {watch.name: watch.settings for watch in self.watches}
        planned = [settings for settings in changes.changed if not only_limits(running[settings.flow.name], settings)]
        touched = {*changes.removed, *(settings.flow.name for settings in planned)}
        others = [plan for watch in self.watches if watch.name not in touched and (plan := watch.plan_now())]
        with contextlib.suppress(*_OUT_OF_REACH):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                for settings in planned:
                    with contextlib.suppress(*_OUT_OF_REACH):
                        others.append(await asyncio.to_thread(_discover, settings, self._manner.engine))
        return others

    async def _remove(self, name: str) -> None:
        """Its lanes drain; then the next run of it need not wait."""
        watch = self._named(name)
        self.watches.remove(watch)
        self._owners.release(name)
        await self.tasks.end(name)
        self._on_change()
        deadline = self._clock.monotonic() + DRAIN_SECONDS
        while self._is_carried(name) and self._clock.monotonic() < deadline:
            await asyncio.sleep(_LOOK_SECONDS)
        await self.leave(watch)

    def _is_carried(self, flow: str) -> bool:
        return self.conductor is not None and self.conductor.carries(flow)

    async def leave(self, watch: FlowWatch) -> None:
        """Where nothing of it is on its way any more, whoever wants the flow may have it at once; else it must wait."""
        in_order = self.conductor is None or self.conductor.is_in_order(watch.name)
        is_ours = watch.turns.may_work
        if is_ours and not in_order:
            wait_s = self._manner.engine.takeover_wait_seconds
            _log.warning(
                "flow %s: not everything that was sent is answered; the next run waits up to %d s for lanes that the target "
                "does not guard",
                watch.name,
                wait_s,
            )
        if is_ours and in_order:
            with contextlib.suppress(HeliographError, OSError, TimeoutError):  # a cluster out of reach must not keep us
                async with asyncio.timeout(_RELEASE_SECONDS):
                    await asyncio.gather(*(watch.jobs.once(job) for job in parting_jobs(self._ground(watch))))
        if in_order or not is_ours:
            with contextlib.suppress(HeliographError, OSError, TimeoutError):
                async with asyncio.timeout(_RELEASE_SECONDS):
                    await watch.turns.leave()
        watch.close()

    def _named(self, name: str) -> FlowWatch:
        return next(watch for watch in self.watches if watch.name == name)


def _seen(watch: FlowWatch, look: asyncio.Task[FlowPlan]) -> FlowPlan | BaseException:
    if not look.done():
        return ClusterUnreachable(
            f"flow {watch.name}: its clusters have not answered yet; it begins as soon as they do"
        )
    return look.exception() or look.result()


def _put_off(found: Mapping[FlowWatch, FlowPlan | BaseException]) -> list[FlowPlan]:
    """What cannot begin now is in trouble, and tried again by its watch."""
    for watch, result in found.items():
        if isinstance(result, HeliographError | TimeoutError):
            watch.expect(result)
        elif isinstance(result, BaseException):
            raise result
    return [result for result in found.values() if isinstance(result, FlowPlan)]


def _discover(settings: FlowSettings, engine: EngineSettings) -> FlowPlan:
    planner = FlowPlanner(settings, engine)
    try:
        return planner.discover()
    finally:
        planner.close()


def _writers(plans: Sequence[FlowPlan]) -> list[tuple[str, str, dict[str, str]]]:
    """Flows by the cluster they write to: two aliases of one cluster are one target."""
    aliases: dict[str, str] = {}
    return [
        (plan.name, aliases.setdefault(plan.target_cluster_id, plan.settings.flow.target), dict(plan.remote))
        for plan in plans
    ]
