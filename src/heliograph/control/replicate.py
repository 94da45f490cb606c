"""A run: flows planned, lanes carried in epochs, everything accounted, stopped in good order.

The parts do the work; this file joins their lives. Everything runs in one event loop, what blocks is sent to a thread.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import os
import platform
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heliograph.config.flows import Settings
from heliograph.control.board import Board
from heliograph.control.certificate_watch import CertificateWatch
from heliograph.control.checkpoints import CheckpointJob
from heliograph.control.clock import Clock
from heliograph.control.conductor import Conductor, tick_forever
from heliograph.control.epochs import Epochs
from heliograph.control.events import EventLog
from heliograph.control.flow_set import DRAIN_SECONDS, FlowSet, Manner
from heliograph.control.flow_watch import FlowWatch, Runner
from heliograph.control.limits import Limits, socket_sentence
from heliograph.control.loads import Loads
from heliograph.control.meters import Meters
from heliograph.control.outcome import Outcome, Summary
from heliograph.control.planner import FlowPlan
from heliograph.control.publishing import Publisher
from heliograph.control.reloading import FileWatch, Reloader, live_settings
from heliograph.control.source_ends import SourceEnds
from heliograph.control.steering import Steering
from heliograph.control.workload import Workload
from heliograph.kafka.slot import Warm
from heliograph.spark.engine import Engine
from heliograph.spark.line import serve
from heliograph.spark.session import local_master

_log = logging.getLogger(__name__)

_FLUSH_SECONDS = 1.5
_MEASURED = ("flows", "targets")
_ASK_SPARK_SECONDS = 5.0

Beside = Callable[[], Coroutine[Any, Any, None]]


async def _nothing() -> None:
    """Nobody looks."""


@dataclass(frozen=True)
class RunOptions:
    """What the command line adds to the file."""

    master: str = ""
    clusters: tuple[str, ...] = ()
    until_caught_up: bool = False
    spark_log: Path = Path("heliograph-spark.log")
    reset: bool = False
    """All lanes begin anew, by `start.from`, as a new generation."""
    trial: str = ""
    """A prefix for remote topics: copy beside another mirror, with a ledger of its own."""
    standby: bool = False
    """Whatever keeps a flow from beginning now, it is waited for."""
    who: str = ""
    """Who gave the command."""


class Replicator:
    """Built from settings, connected by `plan`, running in `run` until `stop`."""

    def __init__(self, settings: Settings, options: RunOptions, steering: Steering | None = None) -> None:
        """`steering` is what people changed beside the file; without one nothing can be changed but the file."""
        slots = settings.engine.slots or max(1, os.cpu_count() or 1)
        self.options = options
        self.steering = steering or Steering(settings.path, None)
        mine = self._mine(settings)
        self.settings = replace(mine, engine=replace(settings.engine, slots=slots))
        self.clock = Clock()
        self.board, self.meters = Board(), Meters()
        self.file = FileWatch(settings.path, settings.engine.reload_interval_s, self.clock.monotonic)
        self._sockets: set[str] = set()
        self._version = importlib.metadata.version("heliograph")  # read from files: not every second
        self.started_at = self.clock.monotonic()
        self._me = Runner(platform.node(), os.getpid(), uuid.uuid4().hex, self.clock.now_ms())
        self.warm = Warm()
        flows = mine.flows
        self.events = EventLog(self.warm, {flow.flow.name: flow.target for flow in flows}, self.clock.now_ms)
        manner = Manner(self.settings.engine, self._me, options.reset, options.until_caught_up, self.board, options.who)
        self._flows = FlowSet(flows, manner, self.warm, self.events, self._lanes_changed)
        self.certificates = CertificateWatch(flows, settings.path, self.warm, self.clock.now_ms)
        self.limits = Limits(flows, slots)
        self._reloader = self._new_reloader(mine)
        master = options.master or settings.engine.master or local_master(slots)
        self.engine = Engine(master, slots, dict(settings.engine.spark), options.spark_log)
        self._publisher = Publisher(self._me, self.board, self.meters, self.events, self.warm)
        self._publisher.held = self.held
        self._stop = asyncio.Event()
        self._is_caught_up = False
        """A run that ends by itself has come to its end."""
        self._outcome = Outcome(self.watches, self.board)
        self._workload = Workload(self.watches, self._outcome, self.steering, self.limits, self.board)
        self._workload.until_caught_up = options.until_caught_up
        self._loads = Loads(self.board)
        self._planned: tuple[list[FlowPlan], set[str]] = ([], set())
        """The plans that count now, and the keys of their lanes."""
        self._epochs: Epochs | None = None
        self._conductor: Conductor | None = None

    def _new_reloader(self, mine: Settings) -> Reloader:
        live = live_settings(self.options.until_caught_up)
        reloader = Reloader(mine, self.file, self.steering, self._flows, self.events, live)
        reloader.mine = self._mine
        reloader.adopted += [self.limits.change, self.certificates.change]
        self.steering.watches, self.steering.warm = self._flows.watches, self.warm
        self.steering.on_holds = self._lanes_changed
        self.steering.tell_holds = lambda: self._publish(at_once=True)
        return reloader

    def _mine(self, settings: Settings) -> Settings:
        """The flows of this run, as the command line has them."""
        flows = [
            replace(flow, flow=replace(flow.flow, trial=self.options.trial))
            for flow in settings.flows
            if not self.options.clusters or flow.flow.target in self.options.clusters
        ]
        return replace(settings, flows=tuple(flows))

    @property
    def watches(self) -> list[FlowWatch]:
        return self._flows.watches

    @property
    def read(self) -> Settings:
        """The settings that count now: the file with what was changed over it."""
        return self._reloader.read

    def carries(self, flow: str) -> bool:
        """Whether a task has a lane of this flow."""
        return self._conductor is not None and self._conductor.carries(flow)

    def about(self) -> dict[str, Any]:
        """The run itself, for whoever looks at it."""
        return {
            "version": self._version,
            "host": self._me.host,
            "process": self._me.process,
            "run": self._me.run,
            "since_ms": self._me.since_ms,
            "time_ms": self.clock.now_ms(),
            "epoch": self._epochs.number if self._epochs is not None else 0,
            "master": self.engine.master,
            "slots": self.settings.engine.slots,
            "spark": self.spark,
            "events_dropped": self.events.dropped,
        }

    def measured(self) -> dict[str, Any]:
        """What metrics are made of, lanes and flows themselves aside."""
        return {
            **self.meters.view(self.clock.monotonic(), self.events.counts),
            "gone": {flow: vars(totals) for flow, totals in self.board.gone.items()},
        }

    def groups(self) -> dict[str, Any]:
        """By flow: the consumer groups that it writes checkpoints of."""
        jobs = {watch.name: watch.jobs.jobs.get(CheckpointJob.NAME) for watch in self.watches}
        return {name: job.groups() for name, job in jobs.items() if isinstance(job, CheckpointJob)}

    @property
    def spark(self) -> dict[str, Any]:
        """What Spark last said of itself."""
        return self._publisher.spark

    async def plan(self) -> list[FlowPlan]:
        """Read all clusters; ConfigError where the file cannot be right. Flows out of reach are left for later."""
        # Connectors were taken once: what keeps one of them from beginning now must not keep the run from starting.
        patient = {watch.name for watch in self.watches} if self.options.standby else self.steering.by_rest
        return await self._flows.plan(patient)

    async def carriers(self) -> list[str]:
        """Of each flow that a run carries, which one it is."""
        found = await asyncio.gather(*(watch.carrier() for watch in self.watches))
        return [sentence for sentence in found if sentence]

    # -- running ----------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        self._stop.set()

    async def run(
        self, plans: list[FlowPlan], each_second: Callable[[], None] = lambda: None, beside: Beside = _nothing
    ) -> Summary:
        """`beside` runs as long as the run does, and ends with it: the desk that shows it to others."""
        local = self.engine.master.startswith("local")
        clock = self.clock.monotonic
        wait_s = float(self.settings.engine.takeover_wait_seconds)
        token = uuid.uuid4().hex
        conductor = Conductor(token, wait_s, clock, self._take_report, self._is_held)
        server, port = await serve("127.0.0.1" if local else "0.0.0.0", conductor.handle)  # noqa: S104  executors dial in
        epochs = Epochs(self.engine, conductor, self.settings.engine, self._workload.now, lambda: self._loads.by_lane)
        # Executors reach the driver under the name that Spark is told to use, if it is told one.
        reached_at = dict(self.settings.engine.spark).get("spark.driver.host", platform.node())
        epochs.address, epochs.token = ("127.0.0.1" if local else reached_at, port), token
        conductor.on_orphans = self._carry_soon
        conductor.on_gap, epochs.on_end = self.meters.gap, self.meters.epoch_ended
        self._epochs, self._conductor, self._flows.conductor = epochs, conductor, conductor
        spark = asyncio.create_task(self.engine.start())
        await self._flows.begin(plans)
        spark.add_done_callback(self._say_warm)
        jobs = [
            asyncio.create_task(tick_forever(conductor)),
            asyncio.create_task(self._every_second(conductor, each_second)),
            asyncio.create_task(self._tell_others()),
            asyncio.create_task(self.events.write_forever()),
            asyncio.create_task(self.certificates.watch(self.events.tell)),
            asyncio.create_task(self._reloader.keep()),
            asyncio.create_task(self._flows.tasks.supervise()),
            asyncio.create_task(self._source_ends(conductor).keep(lambda: list(self.watches))),
            asyncio.create_task(beside()),
        ]
        carrying = asyncio.create_task(epochs.run())
        try:
            await self._until_stopped(spark, carrying, jobs)
            if self._is_caught_up:
                await self._close_books(epochs)
        finally:
            await self._flows.tasks.end_all()
            await epochs.stop(DRAIN_SECONDS)
            for job in [*jobs, carrying, spark]:
                job.cancel()
            await asyncio.gather(*jobs, carrying, spark, return_exceptions=True)
            server.close()
            await self._leave()
        return self.summary()

    def _say_warm(self, spark: asyncio.Task[None]) -> None:
        if not spark.cancelled() and spark.exception() is None and any(watch.standing_by for watch in self.watches):
            _log.info("Spark is up: this run is ready to take over")

    async def _until_stopped(self, *tasks: Any) -> None:
        """Until somebody stops the run, or one of its parts fails, which must not go unnoticed."""
        spark, carrying, jobs = tasks
        stopped = asyncio.create_task(self._stop.wait())
        watched: set[asyncio.Task[Any]] = {spark, carrying, *jobs}
        try:
            while True:
                done, _ = await asyncio.wait({stopped, *watched}, return_when=asyncio.FIRST_COMPLETED)
                if stopped in done:
                    return
                for task in done:
                    task.result()
                    watched.discard(task)
        finally:
            stopped.cancel()

    async def _close_books(self, epochs: Epochs) -> None:
        """What tells how far records are copied, once more at the end; whoever stops the run now need not wait for it."""
        self._stop.clear()
        await epochs.stop(DRAIN_SECONDS)  # with its task's end a lane's last position is in the ledger
        closing = asyncio.create_task(self._flows.close_books())
        stopped = asyncio.create_task(self._stop.wait())
        done, waiting = await asyncio.wait({closing, stopped}, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        if closing in done:
            closing.result()

    def close(self) -> None:
        """Let go of every connection: at the end of a run, and where only a plan was asked for."""
        for watch in self.watches:
            watch.close()
        self.warm.close()
        self.steering.close()

    async def _leave(self) -> None:
        for event in self.board.take_events():
            self.events.tell(event)
        await self.events.flush(_FLUSH_SECONDS)
        await self._publish()
        await asyncio.gather(*(self._flows.leave(watch) for watch in self.watches))
        self.close()
        await self.engine.stop()

    # -- what is to be carried --------------------------------------------------------------------------------------

    def _lanes_changed(self) -> None:
        if self._epochs is not None and self._conductor is not None:
            self._conductor.keep_only({lane.id.key for lane in self._workload.now().lanes})
            self._epochs.changed()

    def _carry_soon(self, keys: set[str]) -> bool:
        """Lanes that lost their carrier: the next epoch begins now, if they are to be carried at all."""
        wanted = self._epochs is not None and any(lane.id.key in keys for lane in self._workload.now().lanes)
        if wanted and self._epochs is not None:
            _log.info("%d lanes lost their task: the next epoch begins", len(keys))
            self._epochs.changed()
        return wanted

    def held(self, key: str) -> dict[str, Any]:
        """What is to be said of a lane that somebody stopped; nothing of others."""
        return self._workload.held(key, self._conductor is not None and self._conductor.carries_lane(key))

    def _is_held(self, key: str) -> bool:
        watch = self._flows.of(key)
        return watch is not None and watch.turns.is_mine

    # -- limits -----------------------------------------------------------------------------------------------------

    def _source_ends(self, conductor: Conductor) -> SourceEnds:
        return SourceEnds(self.board, self.warm, self.clock, conductor.carries_lane)

    def _take_report(self, attempt: str, lanes: list[dict[str, Any]], slot: dict[str, Any]) -> None:
        self.board.take(attempt, lanes, {name: value for name, value in slot.items() if name not in _MEASURED})
        self.limits.take(attempt, slot)
        self.meters.take(attempt, slot, self.clock.monotonic())
        for name, (asked, granted) in slot.get("sockets", {}).items():
            if name not in self._sockets:
                self._sockets.add(name)
                _log.info("%s", socket_sentence(name, asked, granted))

    # -- accounting -------------------------------------------------------------------------------------------------

    async def _every_second(self, conductor: Conductor, each_second: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(1)
            for event in self.board.take_events():
                self.events.tell(event)
            heard = self.board.take_heard()
            if self.options.until_caught_up:
                self._outcome.done |= {key for key in heard if self.board.lanes[key].row.get("finished")}
                self._outcome.done.update(*(watch.reached() for watch in self.watches))
            self.limits.tell(conductor.tasks)
            self._loads.weigh(heard)
            self._look_where_parked()
            alive = {task.attempt for task in conductor.tasks}
            self.board.forget_attempts(alive)
            self.meters.forget_attempts(alive)
            self.meters.tick(self.clock.monotonic())
            self._forget_lanes(conductor)
            each_second()
            if self.options.until_caught_up and not self._is_caught_up and self._is_finished():
                self._is_caught_up = True
                self.stop()

    def _is_finished(self) -> bool:
        return self._outcome.is_reached(self.clock.now_ms()) and all(watch.jobs.is_settled for watch in self.watches)

    async def _tell_others(self) -> None:
        asked = self.clock.monotonic()
        while True:
            await asyncio.sleep(self.settings.engine.telemetry_interval_ms / 1000)
            if not self._publisher.spark or self.clock.monotonic() - asked >= _ASK_SPARK_SECONDS:
                asked = self.clock.monotonic()
                self._publisher.spark = await self.engine.status()
            await self._publish()

    def _forget_lanes(self, conductor: Conductor) -> None:
        """Those that are neither planned nor carried any more: a flow that ended, a topic that was taken out."""
        flows = {watch.name for watch in self.watches if watch.opened is None and not watch.standing_by}
        plans = [watch.opened.plan for watch in self.watches if watch.opened is not None]
        if plans != self._planned[0]:
            self._planned = (plans, {lane.id.key for plan in plans for lane in plan.lanes})
        for key in self.board.lanes.keys() - self._planned[1]:
            if key.split("/", 1)[0] not in flows and not conductor.carries_lane(key):
                self.board.forget_lane(key)

    def _look_where_parked(self) -> None:
        for watch in self.watches:
            watch.look_at_parked(key for key in self.board.parked if key.startswith(f"{watch.name}/"))

    async def _publish(self, at_once: bool = False) -> None:
        epoch = self._epochs.number if self._epochs is not None else 0
        publish = self._publisher.publish_at_once if at_once else self._publisher.publish
        await publish(self.watches, epoch)

    def summary(self) -> Summary:
        return self._outcome.summary(self.clock.monotonic() - self.started_at, self.options.until_caught_up)
