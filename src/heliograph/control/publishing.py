"""Every second's telemetry of a run, gathered from its parts, a record for each flow."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from heliograph.control.board import Board
from heliograph.control.clock import Clock
from heliograph.control.events import EventLog
from heliograph.control.flow_watch import FlowWatch, Runner
from heliograph.control.meters import Meters
from heliograph.control.opening import OpenedFlow
from heliograph.control.telemetry import Held, TelemetryWriter, rows_are_due, rows_of, snapshot
from heliograph.kafka.slot import Warm

_AT_ONCE_SECONDS = 10.0


class Publisher:
    """`spark` is what Spark last said of itself."""

    def __init__(self, me: Runner, board: Board, meters: Meters, events: EventLog, warm: Warm) -> None:
        self._me = me
        self._board = board
        self._meters = meters
        self._clock = Clock()
        self._events = events
        self._telemetry = TelemetryWriter(warm)
        self._rows_ms: dict[str, int] = {}
        """When the rows of a flow's lanes were last published."""
        self.spark: dict[str, Any] = {}
        self.held: Held = lambda _: {}
        self._writing = asyncio.Lock()

    async def publish(self, watches: Sequence[FlowWatch], epoch: int) -> None:
        """One after the other: what is gathered later is written later."""
        async with self._writing:
            now_ms = self._clock.now_ms()
            # Of a flow that another run carries that one tells.
            await asyncio.gather(*(self._flow(watch, epoch, now_ms) for watch in watches if not watch.standing_by))

    async def publish_at_once(self, watches: Sequence[FlowWatch], epoch: int) -> None:
        """With the rows of all lanes, however many: what was answered is seen by whoever looks next. Somebody waits for the
        answer, so that a target which does not take it is not waited for."""
        self._rows_ms.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_AT_ONCE_SECONDS):
                await self.publish(watches, epoch)

    async def _flow(self, watch: FlowWatch, epoch: int, now_ms: int) -> None:
        about = {
            "host": self._me.host,
            "process": self._me.process,
            "run": self._me.run,
            "since_ms": self._me.since_ms,
            "time_ms": now_ms,
            "epoch": epoch,
            "trouble": watch.trouble,
            "trouble_since_ms": watch.trouble_since_ms,
            "events_dropped": self._events.dropped,
            "spark": self.spark,
            "jobs": watch.jobs.standing(),
            "window": self._meters.window_of(watch.name, self._clock.monotonic()),
        }
        lanes = None
        known = len(watch.opened.plan.lanes) if watch.opened is not None else 0
        if rows_are_due(known, (now_ms - self._rows_ms.get(watch.name, 0)) / 1000):
            self._rows_ms[watch.name] = now_ms
            lanes = rows_of(watch.name, self._board, _unreported(watch.opened), self.held)
        for record in snapshot(watch.name, about, lanes):
            await self._telemetry.write(watch.settings.target, watch.name, record, now_ms)


def _unreported(opened: OpenedFlow | None) -> dict[str, str]:
    """Every lane that may have no report yet, with why it is refused."""
    if opened is None:
        return {}
    return {**{lane.id.key: "" for lane in opened.plan.lanes}, **opened.refused}
