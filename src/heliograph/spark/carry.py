"""On an executor: carry one assignment until its deadline, the driver's word, or the driver's end.

Runs inside a Python worker that Spark reuses, so one event loop and its broker connections outlive an epoch. Must not import
driver code: what a task needs travels in its order.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import pickle
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from heliograph.errors import HeliographError
from heliograph.kafka.life import LaneLife
from heliograph.kafka.slot import Slot, SlotPlan, Warm
from heliograph.model.events import Event
from heliograph.model.lanes import LaneState, LedgerEntry
from heliograph.model.takeover import quiet_s
from heliograph.replication.generations import decode_entry, encode_entry
from heliograph.spark import line as words
from heliograph.spark.gauges import PatientSelector, SlotGauges
from heliograph.spark.line import SILENCE_SECONDS, Line

_log = logging.getLogger(__name__)
_REPORT_SECONDS = 1.0
_LOOK_SECONDS = 0.2
_LOOK_AT_ALL = 10
_LOOKED_AT_A_SECOND = 100
_SETTLES_MS = 5000
_RELEASED_AT_ONCE = 500
"""Lanes in a message: their successor begins with the first ones while the others are still written out."""


@dataclass(frozen=True)
class Order:
    """What the driver gives to one task."""

    epoch: int
    slot: int
    seconds: float
    """How long at the most, on the task's own clock: clocks of two hosts are never compared."""
    host: str
    port: int
    token: str
    plan: SlotPlan


class _Process:
    """The part of a worker that is kept between epochs."""

    def __init__(self) -> None:
        self.selector = PatientSelector()
        self.loop = asyncio.SelectorEventLoop(self.selector)
        self.warm = Warm()
        self.daemon = os.getppid()

    def slept(self) -> float:
        return self.selector.slept


# A worker process serves many epochs, and its connections are to outlive them: the one module-level state there is.
_process: _Process | None = None


def run_orders(orders: Iterable[bytes]) -> Iterator[str]:
    """The function that Spark maps over partitions: pickled orders in, outcomes as JSON out."""
    mine = _this_process()
    for blob in orders:
        order = pickle.loads(blob)  # noqa: S301  our own driver's, over Spark's authenticated channel
        mine.warm.replace(order.plan.clusters.values())
        yield json.dumps(mine.loop.run_until_complete(Task(order, mine.warm, mine.daemon, mine.slept).run()))


def _this_process() -> _Process:
    global _process
    if _process is None:
        _process = _Process()
    return _process


def warm_up(_: Iterable[int]) -> Iterator[int]:
    """Start a worker and import everything before the first epoch counts."""
    _this_process()
    time.sleep(0.3)
    yield os.getpid()


class Task:
    """One attempt at one order."""

    def __init__(
        self, order: Order, warm: Warm, parent: int | None = None, slept: Callable[[], float] = lambda: 0.0
    ) -> None:
        """`parent` is the daemon that forked this worker: an idle worker outlives it, and Spark would go on using it. `slept`
        says for how many seconds the loop had nothing to do."""
        self._order = order
        self._warm = warm
        self._attempt = uuid.uuid4().hex
        self._parent = os.getppid() if parent is None else parent
        self._heard = time.monotonic()
        self._line: Line | None = None
        self._shown: dict[str, object] = {}
        """What was last reported of each lane: those that stand still are left out."""
        self._gauges = SlotGauges(slept)
        self._reports = 0

    async def run(self) -> dict[str, Any]:
        slot = Slot(self._order.plan, self._warm, self._attempt)
        quiet = quiet_s(self._order.plan.settings.takeover_wait_s)
        slot.in_touch = lambda: time.monotonic() - self._heard <= quiet
        try:
            host, port = self._order.host, self._order.port
            async with asyncio.timeout(SILENCE_SECONDS):
                self._line = await Line.dial(host, port)
        except (OSError, TimeoutError):
            self._line = None
        helpers = [asyncio.create_task(work) for work in (self._talk(slot), self._watch(slot), self._hand_over(slot))]
        try:
            await until_carried(asyncio.create_task(slot.run()), helpers, slot.stop)
            self._report(slot)
        finally:
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
            if self._line is not None:
                await self._line.close()
        return {
            "epoch": self._order.epoch,
            "slot": self._order.slot,
            "lanes": len(slot.lives),
        }

    async def _talk(self, slot: Slot) -> None:
        order, line = self._order, self._line
        keys = list(slot.lives)
        if line is None:
            slot.go(keys, False, {})
            return
        line.send(words.hello(order.token, order.epoch, order.slot, self._attempt, os.getpid()))
        with contextlib.suppress(
            HeliographError, TimeoutError
        ):  # attach meets the same trouble and says so, lane by lane
            async with asyncio.timeout(SILENCE_SECONDS):
                await slot.prepare()
        line.send(words.ready(keys))
        while (message := await line.receive()) is not None:
            if self._is_silent():
                break  # whatever is heard now was said while others took this task for dead
            self._heard = time.monotonic()
            match message["kind"]:
                case "go":
                    entries = {key: _entry(text) for key, text in message["entries"].items()}
                    slot.go(message["lanes"], message["alone"], entries, message["held"])
                case "revoke":
                    slot.revoke(message["lanes"])
                case "release":
                    slot.release(message["lanes"])
                case "throttle":
                    slot.limit(message["rates"])
                case "stop":
                    slot.stop()
        self._abandon(slot)

    def _is_silent(self) -> bool:
        return self._line is not None and time.monotonic() - self._heard > SILENCE_SECONDS

    def _abandon(self, slot: Slot) -> None:
        """The driver's word is gone, and with it the certainty that nobody else writes where the target guards nothing."""
        slot.revoke(list(slot.lives))
        slot.stop()

    async def _watch(self, slot: Slot) -> None:
        """Deadline, parent, driver, reports."""
        deadline = time.monotonic() + self._order.seconds
        reported = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            if os.getppid() != self._parent:
                # The daemon is gone and with it whoever would stop this worker: two copies must not go on for long.
                os._exit(1)
            if self._is_silent():
                self._abandon(slot)
            elif now > deadline:
                slot.stop()
            if now - reported >= _REPORT_SECONDS:
                reported = now
                self._report(slot)

    async def _hand_over(self, slot: Slot) -> None:
        """Say of lanes that they ended, at once: somebody waits for them. Thousands end in the same moment."""
        while True:
            await slot.ending.wait()
            self._say_released(slot)

    def _say_released(self, slot: Slot) -> None:
        ended, slot.ended = slot.ended, []
        began, slot.began = slot.began, []
        slot.ending.clear()
        if self._line is None:
            return
        now = time.monotonic()
        if began:
            self._line.send(words.took({key: now - slot.lives[key].followed_since for key in began}))
        for at in range(0, len(ended), _RELEASED_AT_ONCE):
            some = ended[at : at + _RELEASED_AT_ONCE]
            unread = {key: now - slot.lives[key].left_at for key in some}
            self._line.send(words.released([_last_word(slot.lives[key]) for key in some], unread))

    def _report(self, slot: Slot) -> None:
        self._say_released(slot)
        if self._line is not None:
            about = {
                "memory_peak": slot.memory.peak,
                "process": os.getpid(),
                "throttle": asdict(slot.throttle.take_spending()),
                "sockets": slot.sockets(),
                **self._gauges.read(slot),
            }
            self._line.send(words.report(list(self._news(slot)), about))

    def _news(self, slot: Slot) -> Iterator[dict[str, Any]]:
        self._reports += 1
        stirred = [slot.lives[run.lane.id.key] for run in slot.news]
        slot.news.clear()
        for life in list(slot.lives.values()) if self._reports % reports_of_a_look(len(slot.lives)) == 0 else stirred:
            key, events, face = life.run.lane.id.key, life.take_events(), _face(life)
            if not events and _is_beginning(life):
                slot.news.add(life.run)
            elif events or self._shown.get(key) != face:
                self._shown[key] = face
                yield _row(life) | _taken(life, events)


async def until_carried(
    carrying: asyncio.Task[None], helpers: Sequence[asyncio.Task[None]], stop: Callable[[], None]
) -> None:
    """Until the slot has ended. When a helper dies, nobody hears the driver or looks at the deadline any more: drain, and fail."""
    try:
        waiting: set[asyncio.Task[None]] = {carrying, *helpers}
        while not carrying.done():
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            broken = [error for helper in done - {carrying} if (error := helper.exception()) is not None]
            if broken and not carrying.done():
                _log.error("a helper of this task died, its lanes are drained", exc_info=broken[0])
                stop()
                await asyncio.wait({carrying}, timeout=SILENCE_SECONDS)
                raise broken[0]
        await carrying
    finally:
        carrying.cancel()
        await asyncio.wait({carrying})


def reports_of_a_look(lanes: int) -> int:
    """Every so many reports all lanes are looked at, for what becomes due by time alone; of many lanes less often.

    >>> reports_of_a_look(3), reports_of_a_look(1000), reports_of_a_look(2500)
    (10, 10, 25)
    """
    return max(_LOOK_AT_ALL, lanes // _LOOKED_AT_A_SECOND)


def _last_word(life: LaneLife) -> tuple[str, str | None, bool]:
    entry = life.run.entry(0)
    return life.run.lane.id.key, None if entry is None else encode_entry(entry).decode(), life.run.is_clean()


def _entry(text: str) -> LedgerEntry:
    return decode_entry(text.encode())


def _face(life: LaneLife) -> object:
    """What changes whenever anything of a lane's row does."""
    run, counts = life.run, life.run.counts
    moved = (run.position(), run.fetch_offset, run.source_end, run.high_watermark, run.log_start, run.target_next)
    counted = (counts.records, counts.refused, counts.attaches, counts.foreign)
    generation = run.acked.generation if run.acked is not None else -1
    return (run.state, run.reason, generation, life.guard, life.finished, *moved, *counted)


def _is_beginning(life: LaneLife) -> bool:
    """It has just got its turn and knows less than the task before: whatever comes of it is the news."""
    run = life.run
    attaches = run.state is LaneState.ATTACHING and not run.reason and run.start is None
    return attaches and life.now_ms() - run.since_ms < _SETTLES_MS


def _taken(life: LaneLife, events: list[Event]) -> dict[str, Any]:
    """Events and latencies, each told once."""
    return {
        "latency_ms": life.run.times.take_samples(),
        "events": [event.as_fields() for event in events],
    }


def _row(life: LaneLife) -> dict[str, Any]:
    """A lane as the driver sees it."""
    run = life.run
    entry = run.acked
    return {
        "lane": run.lane.id.key,
        "state": str(run.state),
        "reason": run.reason,
        "since_ms": run.since_ms,
        "told_ms": life.now_ms(),
        "position": run.position(),
        "read_position": run.fetch_offset if entry else -1,
        "source_end": run.source_end,
        "high_watermark": run.high_watermark,
        "log_start": run.log_start,
        "target_next": run.target_next if run.target_next is not None else (entry.target_next if entry else -1),
        "generation": entry.generation if entry else -1,
        "producer_id": entry.identity.producer_id if entry else -1,
        "producer_epoch": entry.identity.producer_epoch if entry else -1,
        "guard": str(life.guard),
        "finished": life.finished,
        "waiting_since_ms": run.waiting_since(),
        "replication_latency_ms": run.times.latency.figures(),
        "record_age_ms": run.times.age.figures(),
        "counts": dict(vars(run.counts)),
    }
