"""Epochs one after another: when the next one is due, what its tasks carry, and when Spark must be started again."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from heliograph.config.flows import EngineSettings
from heliograph.control.clock import Clock
from heliograph.control.conductor import Conductor
from heliograph.kafka.slot import FlowRules, SlotPlan, SlotSettings
from heliograph.model.clusters import Cluster
from heliograph.model.lanes import Lane, LaneId
from heliograph.replication.assignments import balance, epoch_length
from heliograph.spark.carry import Order
from heliograph.spark.engine import Engine
from heliograph.spark.epoch import EpochOutcome

_log = logging.getLogger(__name__)
_OVERLAP_SECONDS = 0.5
_GRACE_SECONDS = 6.0
"""A task's own deadline lies this long after the epoch's: by then its successor has taken over, or never will."""
_NO_TASK_SECONDS = 20.0
"""Until Spark counts as stuck; twice as long after each time that it was started again and still had no task: on a machine that is
too busy to start one in this time, starting again only takes more of it away."""
_NO_TASK_MAX_SECONDS = 160.0
_LOOK_SECONDS = 0.25
_LAST_WORDS_SECONDS = 0.5


@dataclass(frozen=True)
class Work:
    """All that is to be carried now."""

    lanes: tuple[Lane, ...]
    until: Mapping[str, int]
    clusters: Mapping[str, Cluster]
    flows: Mapping[str, FlowRules]


def way_to(cluster: Cluster, names: dict[Cluster, str]) -> str:
    """A name for each way to reach a cluster: its alias, and a number where flows log in to it differently."""
    if cluster not in names:
        others = sum(1 for other in names if other.alias == cluster.alias)
        names[cluster] = f"{cluster.alias}#{others + 1}" if others else cluster.alias
    return names[cluster]


def _slot_of(slots: list[tuple[Lane, ...]]) -> dict[LaneId, int]:
    return {lane.id: index for index, lanes in enumerate(slots) for lane in lanes}


class Epochs:
    """Runs epochs until it is stopped. `work` is asked before each one."""

    def __init__(
        self,
        engine: Engine,
        conductor: Conductor,
        settings: EngineSettings,
        work: Callable[[], Work],
        loads: Callable[[], Mapping[LaneId, float]],
    ) -> None:
        self._engine = engine
        self._conductor = conductor
        self._settings = settings
        self._work = work
        self._loads = loads
        self._clock = Clock()
        self._slots = settings.slots
        self._changed = asyncio.Event()
        self._stopping = False
        self._jobs: set[asyncio.Task[EpochOutcome]] = set()
        self._previous: dict[LaneId, int] = {}
        self._failures = 0
        self._patience = _NO_TASK_SECONDS
        self.number = 0
        self.on_end: Callable[[float], None] = lambda seconds: None
        """Told of each epoch that ended: how long it lasted."""
        self.address = ("127.0.0.1", 0)
        self.token = secrets.token_hex(16)

    def changed(self) -> None:
        """The lanes changed: the next epoch begins now."""
        self._changed.set()

    async def run(self) -> None:
        while not self._stopping:
            self._changed.clear()
            work = self._work()
            self._conductor.keep_only({lane.id.key for lane in work.lanes})
            orders = self._orders(work, self._placed(work))
            if not orders:
                await self._pause(1.0)
                continue
            self.number += 1
            job = asyncio.create_task(self._one(orders))
            self._jobs.add(job)
            await self._until_next(job, orders)
            for ended in [one for one in self._jobs if one.done()]:
                await self._account(ended)

    async def _one(self, orders: list[Order]) -> EpochOutcome:
        number, begun = self.number, self._clock.monotonic()
        _log.debug("epoch %d begins with %d slots", number, len(orders))
        try:
            return await self._engine.run(number, orders)
        finally:
            _log.debug("epoch %d ended", number)
            self.on_end(self._clock.monotonic() - begun)

    async def _until_next(self, job: asyncio.Task[EpochOutcome], orders: list[Order]) -> None:
        """Return when the next epoch is due: its time has come, the lanes changed, the job ended, or Spark is lost.

        Of many lanes the time is longer; that their load would be shared out otherwise is looked at as often as ever.
        """
        begun = looked = self._clock.monotonic()
        sessions = self._engine.sessions
        epoch = self.number
        due = orders[0].seconds - _GRACE_SECONDS - _OVERLAP_SECONDS
        while not (job.done() or self._stopping):
            # A change that came before the first task dialled in stays set, and would make _pause return at once, for ever.
            await (asyncio.sleep(_LOOK_SECONDS) if self._changed.is_set() else self._pause(_LOOK_SECONDS))
            passed = self._clock.monotonic() - begun
            if self._engine.sessions != sessions:
                begun, sessions = self._clock.monotonic(), self._engine.sessions
                continue
            started = any((epoch, order.slot) in self._conductor.started for order in orders)
            if not await self._engine.is_alive() and sessions:
                await self._engine.restart("its JVM is gone")
                return
            if started:
                self._engine.works()
                self._patience = _NO_TASK_SECONDS
            elif passed > self._patience and sessions:
                await self._start_again(epoch)
                return
            if started and (passed >= due or self._changed.is_set()):
                return
            if started and self._clock.monotonic() - looked >= self._settings.epoch_seconds:
                looked = self._clock.monotonic()
                if self._is_out_of_balance():
                    return

    async def _start_again(self, epoch: int) -> None:
        reason = f"no task of epoch {epoch} started within {self._patience:g} s"
        self._patience = min(self._patience * 2, _NO_TASK_MAX_SECONDS)
        await self._engine.restart(reason)

    def _is_out_of_balance(self) -> bool:
        slots = self._placed(self._work())
        return self._previous != _slot_of(slots)

    async def _account(self, job: asyncio.Task[EpochOutcome]) -> None:
        self._jobs.discard(job)
        outcome = job.result()
        if outcome.failure:
            self._failures += 1
            _log.warning("epoch %d ended early: %s", outcome.epoch, outcome.failure)
            if not self._stopping:
                await self._pause(min(0.1 * self._failures, 5.0))
        else:
            self._failures = 0

    def _placed(self, work: Work) -> list[tuple[Lane, ...]]:
        return balance(list(work.lanes), self._loads(), self._slots, self._previous)

    def _orders(self, work: Work, slots: list[tuple[Lane, ...]]) -> list[Order]:
        self._previous = _slot_of(slots)
        seconds = epoch_length(self._settings.epoch_seconds, len(work.lanes)) + _GRACE_SECONDS
        host, port = self.address
        return [
            Order(self.number + 1, index, seconds, host, port, self.token, self._slot_plan(work, lanes))
            for index, lanes in enumerate(slots)
        ]

    def _slot_plan(self, work: Work, lanes: tuple[Lane, ...]) -> SlotPlan:
        settings = self._settings
        flows = {lane.id.flow: work.flows[lane.id.flow] for lane in lanes}
        aliases = {alias for rules in flows.values() for alias in (rules.source, rules.target)}
        return SlotPlan(
            lanes=lanes,
            until={lane.id.key: work.until[lane.id.key] for lane in lanes if lane.id.key in work.until},
            clusters={alias: work.clusters[alias] for alias in aliases},
            flows=flows,
            settings=SlotSettings(
                window=settings.in_flight_batches,
                memory_bytes=settings.slot_memory_bytes,
                request_timeout_ms=settings.request_timeout_ms,
                ledger_interval_ms=settings.ledger_interval_ms,
                retry_ms=settings.lane_retry_backoff_ms,
                retry_max_ms=settings.lane_retry_backoff_max_ms,
                takeover_wait_s=float(settings.takeover_wait_seconds),
                merge_below=settings.merge_below_bytes,
                merge_target=settings.merge_target_bytes,
            ),
        )

    async def _pause(self, seconds: float) -> None:
        if self._stopping:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    async def stop(self, seconds: float) -> bool:
        """Drain: tell every task, wait for the jobs. False if one did not end in time."""
        self._stopping = True
        self._changed.set()
        jobs = [job for job in self._jobs if not job.done()]
        deadline = self._clock.monotonic() + seconds
        while jobs and self._clock.monotonic() < deadline:
            self._conductor.stop_all()
            await asyncio.wait(jobs, timeout=0.2)
            jobs = [job for job in jobs if not job.done()]
        for job in jobs:
            job.cancel()
        # What a task said before its job ended may still be on the line.
        deadline = min(deadline, self._clock.monotonic() + _LAST_WORDS_SECONDS)
        while not jobs and self._conductor.tasks and self._clock.monotonic() < deadline:
            await asyncio.sleep(_LAST_WORDS_SECONDS / 50)
        return not jobs
