"""A run: flows planned, lanes carried in epochs, everything accounted, stopped in good order.

The parts do the work; this file joins their lives. Everything runs in one event loop, what blocks is sent to a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import platform
import uuid
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heliograph.config.flows import Settings
from heliograph.config.load import load_file
from heliograph.control.board import Board
from heliograph.control.certificate_watch import CertificateWatch
from heliograph.control.clock import Clock
from heliograph.control.conductor import Conductor, tick_forever
from heliograph.control.epochs import Epochs, Work, way_to
from heliograph.control.events import EventLog
from heliograph.control.flow_jobs import Ground, lasting_jobs, repeated_jobs
from heliograph.control.flow_watch import FlowWatch, Runner
from heliograph.control.limits import FileChanges, Limits, socket_sentence
from heliograph.control.outcome import Outcome, Summary
from heliograph.control.planner import FlowPlan, flow_rules
from heliograph.control.publishing import Publisher
from heliograph.control.remote_owners import RemoteOwners
from heliograph.errors import (
    AccessRefused,
    BrokerRefused,
    BrokersUnsupported,
    ClusterUnreachable,
    ConfigError,
    ConnectionLost,
)
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.model.lanes import Lane, LaneId
from heliograph.replication.topic_plan import remote_conflicts
from heliograph.spark.engine import Engine
from heliograph.spark.line import serve
from heliograph.spark.session import local_master

_log = logging.getLogger(__name__)

_DRAIN_SECONDS = 6.0
_FLUSH_SECONDS = 1.5


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


class Replicator:
    """Built from settings, connected by `plan`, running in `run` until `stop`."""

    def __init__(self, settings: Settings, options: RunOptions) -> None:
        slots = settings.engine.slots or max(1, os.cpu_count() or 1)
        self.settings = replace(settings, engine=replace(settings.engine, slots=slots))
        self.options = options
        self.clock = Clock()
        self.board = Board()
        self._file = FileChanges(settings.path)
        self._sockets: set[str] = set()
        self.started_at = self.clock.monotonic()
        self._me = Runner(platform.node(), os.getpid(), uuid.uuid4().hex, self.clock.now_ms())
        self.warm = Warm()
        flows = [
            replace(flow, flow=replace(flow.flow, trial=options.trial))
            for flow in settings.flows
            if not options.clusters or flow.flow.target in options.clusters
        ]
        targets = {flow.flow.name: flow.target for flow in flows}
        self.events = EventLog(self.warm, targets, self.clock.now_ms)
        self.watches = [
            FlowWatch(flow, self.settings.engine, self.warm, self._me, self._lanes_changed, self.events.tell)
            for flow in flows
        ]
        self.certificates = CertificateWatch(flows, settings.path, self.warm, self.clock.now_ms)
        self.limits = Limits(flows, slots)
        owners = RemoteOwners()
        for watch in self.watches:
            watch.reset = options.reset
            watch.owners = owners
        master = options.master or settings.engine.master or local_master(slots)
        self.engine = Engine(master, slots, dict(settings.engine.spark), options.spark_log)
        self._publisher = Publisher(self._me, self.board, self.events, self.warm)
        self._stop = asyncio.Event()
        self._outcome = Outcome(self.watches, self.board)
        self._loads: dict[LaneId, float] = {}
        self._carried: dict[str, int] = {}
        self._epochs: Epochs | None = None

    @property
    def spark(self) -> dict[str, Any]:
        """What Spark last said of itself."""
        return self._publisher.spark

    # -- planning ---------------------------------------------------------------------------------------------------

    async def plan(self) -> list[FlowPlan]:
        """Read all clusters; ConfigError where the file cannot be right. Flows out of reach are left for later."""
        found = await asyncio.gather(*(watch.discover() for watch in self.watches), return_exceptions=True)
        refused = [result for result in found if isinstance(result, BrokersUnsupported)]
        if refused and len(refused) == len(found):
            raise refused[0]  # nothing is left to run
        plans: list[FlowPlan] = []
        faults: list[str] = []
        for watch, result in zip(self.watches, found, strict=True):
            match result:
                case FlowPlan():
                    plans.append(result)
                case ConfigError():
                    faults.extend(result.faults)
                case ClusterUnreachable() | BrokersUnsupported():
                    watch.expect(result)
                case AccessRefused() if not any(isinstance(other, FlowPlan) for other in found):
                    raise result  # with other flows to carry, they need not wait until a person has acted
                case ConnectionLost():
                    watch.expect(result)
                case BaseException():
                    raise result
        faults += remote_conflicts(_writers(plans))
        if faults:
            raise ConfigError(faults)
        return plans

    # -- running ----------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        self._stop.set()

    async def run(self, plans: list[FlowPlan], each_second: Callable[[], None] = lambda: None) -> Summary:
        local = self.engine.master.startswith("local")
        clock = self.clock.monotonic
        wait_s = float(self.settings.engine.takeover_wait_seconds)
        token = uuid.uuid4().hex
        conductor = Conductor(token, wait_s, clock, self._take_report, self._is_held)
        server, port = await serve("127.0.0.1" if local else "0.0.0.0", conductor.handle)  # noqa: S104  executors dial in
        epochs = Epochs(self.engine, conductor, self.settings.engine, self._work, lambda: self._loads)
        # Executors reach the driver under the name that Spark is told to use, if it is told one.
        reached_at = dict(self.settings.engine.spark).get("spark.driver.host", platform.node())
        epochs.address, epochs.token = ("127.0.0.1" if local else reached_at, port), token
        self._epochs = epochs
        by_name = {plan.name: plan for plan in plans}
        spark = asyncio.create_task(self.engine.start())
        for watch in self.watches:
            watch.tell_trouble()
            if watch.name in by_name:
                try:
                    await watch.open(by_name[watch.name])
                except (BrokerRefused, ClusterUnreachable, ConnectionLost, TimeoutError) as error:
                    watch.fail(error)  # its watch tries again
        jobs = [
            asyncio.create_task(tick_forever(conductor)),
            asyncio.create_task(self._every_second(conductor, each_second)),
            asyncio.create_task(self._tell_others()),
            asyncio.create_task(self.events.write_forever()),
            asyncio.create_task(self.certificates.watch(self.events.tell)),
            *(asyncio.create_task(watch.watch()) for watch in self.watches),
            *(asyncio.create_task(work) for watch in self.watches for work in self._flow_jobs(watch)),
            *(asyncio.create_task(watch.keep_tenure(conductor.stop_all)) for watch in self.watches),
        ]
        carrying = asyncio.create_task(epochs.run())
        try:
            await self._until_stopped(spark, carrying, jobs)
        finally:
            await epochs.stop(_DRAIN_SECONDS)
            for job in [*jobs, carrying, spark]:
                job.cancel()
            await asyncio.gather(*jobs, carrying, spark, return_exceptions=True)
            server.close()
            await self._leave()
        return self.summary()

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

    def close(self) -> None:
        """Let go of every connection: at the end of a run, and where only a plan was asked for."""
        for watch in self.watches:
            watch.close()
        self.warm.close()

    async def _leave(self) -> None:
        for event in self.board.take_events():
            self.events.tell(event)
        await self.events.flush(_FLUSH_SECONDS)
        await self._publish()
        for watch in self.watches:
            if watch.tenure is not None:
                with contextlib.suppress(Exception):  # leaving: a target out of reach must not keep us
                    async with asyncio.timeout(1.5):
                        await watch.tenure.release()
        self.close()
        await self.engine.stop()

    def _flow_jobs(self, watch: FlowWatch) -> Iterator[Coroutine[Any, Any, Any]]:
        """What is done around the records; a run that ends by itself does once what another does at intervals."""
        ground = Ground(watch.settings, watch.plan_now, self.warm, self.clock, watch.look_soon, self.events.tell)
        if self.options.until_caught_up:
            yield from (watch.jobs.once(job) for job in repeated_jobs(ground))
        else:
            yield from (watch.jobs.keep(job) for job in [*repeated_jobs(ground), *lasting_jobs(ground)])

    # -- what is to be carried --------------------------------------------------------------------------------------

    def _lanes_changed(self) -> None:
        if self._epochs is not None:
            self._epochs.changed()

    def _work(self) -> Work:
        lanes: list[Lane] = []
        until: dict[str, int] = {}
        planned = set(self._outcome.planned())
        flows = {}
        clusters: dict[Cluster, str] = {}
        for watch in self.watches:
            if watch.opened is None:
                continue
            plan = watch.opened.plan
            source, target = (way_to(cluster, clusters) for cluster in (watch.settings.source, watch.settings.target))
            rules = flow_rules(plan, self.limits.beginning(plan.name))
            flows[plan.name] = replace(rules, source=source, target=target)
            for lane in plan.lanes:
                key = lane.id.key
                if key in watch.opened.refused or key in self._outcome.done or key not in watch.opened.entries:
                    continue
                if self.options.until_caught_up:
                    if watch.first is None or key not in planned:
                        continue  # made since; what was planned and refused at first is carried once it may be
                    until[key] = watch.first.plan.ends.get((lane.id.topic, lane.id.partition), 0)
                lanes.append(lane)
        return Work(tuple(lanes), until, {name: cluster for cluster, name in clusters.items()}, flows)

    def _is_held(self, key: str) -> bool:
        for watch in self.watches:
            if key.startswith(f"{watch.name}/"):
                return watch.tenure is not None and watch.tenure.is_mine
        return False

    # -- limits -----------------------------------------------------------------------------------------------------

    def _take_report(self, attempt: str, lanes: list[dict[str, Any]], slot: dict[str, Any]) -> None:
        self.board.take(attempt, lanes, slot)
        self.limits.take(attempt, slot)
        for name, (asked, granted) in slot.get("sockets", {}).items():
            if name not in self._sockets:
                self._sockets.add(name)
                _log.info("%s", socket_sentence(name, asked, granted))

    async def _read_file_again(self) -> None:
        """Limits count as soon as the file is saved; everything else waits for the next start."""
        if not self._file.noticed():
            return
        try:
            settings = await asyncio.to_thread(load_file, self.settings.path)
        except ConfigError as error:
            _log.warning("the file was changed and is wrong, so its limits are not read: %s", "; ".join(error.faults))
            return
        for sentence in self.limits.change(settings) or ["the file was saved, nothing changed"]:
            _log.info("%s", sentence)

    # -- accounting -------------------------------------------------------------------------------------------------

    async def _every_second(self, conductor: Conductor, each_second: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(1)
            for event in self.board.take_events():
                self.events.tell(event)
            for key, view in self.board.lanes.items():
                if view.row.get("finished"):
                    self._outcome.done.add(key)
            await self._read_file_again()
            self.limits.tell(conductor.tasks)
            self._weigh()
            self._look_where_parked()
            self.board.forget_attempts({task.attempt for task in conductor.tasks})
            each_second()
            if self.options.until_caught_up and self._is_finished():
                self.stop()

    def _is_finished(self) -> bool:
        return self._outcome.is_reached(self.clock.now_ms()) and all(watch.jobs.is_settled for watch in self.watches)

    async def _tell_others(self) -> None:
        while True:
            await asyncio.sleep(self.settings.engine.telemetry_interval_ms / 1000)
            self._publisher.spark = await self.engine.status()
            await self._publish()

    def _weigh(self) -> None:
        """What each lane carries, smoothed over some seconds: the next epoch's slots are balanced by it."""
        for key, view in self.board.lanes.items():
            flow, topic, partition = key.rsplit("/", 2)
            lane = LaneId(flow, topic, int(partition))
            carried = view.totals.bytes - self._carried.get(key, 0)
            self._carried[key] = view.totals.bytes
            self._loads[lane] = 0.8 * self._loads.get(lane, float(carried)) + 0.2 * carried

    def _look_where_parked(self) -> None:
        """What parked a lane may have changed on a cluster, or may be mended by a plan made now."""
        for watch in self.watches:
            lanes = (view.row for key, view in self.board.lanes.items() if key.startswith(f"{watch.name}/"))
            if any(row["state"] == "parked" for row in lanes):
                watch.look_soon()

    async def _publish(self) -> None:
        epoch = self._epochs.number if self._epochs is not None else 0
        await self._publisher.publish(self.watches, epoch, self.clock.now_ms())

    def summary(self) -> Summary:
        return self._outcome.summary(self.clock.monotonic() - self.started_at, self.options.until_caught_up)


def _writers(plans: list[FlowPlan]) -> list[tuple[str, str, dict[str, str]]]:
    """Flows by the cluster they write to: two aliases of one cluster are one target."""
    aliases: dict[str, str] = {}
    return [
        (plan.name, aliases.setdefault(plan.target_cluster_id, plan.settings.flow.target), dict(plan.remote))
        for plan in plans
    ]
