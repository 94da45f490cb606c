"""Spark under watch, on the driver: a session that is started again when it is lost, and epochs submitted to it.

Blocking calls run in threads; the caller lives in an event loop. The lanes do not mind a lost session: the next epoch attaches.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heliograph.spark.carry import Order
from heliograph.spark.epoch import EpochOutcome, EpochRunner
from heliograph.spark.session import start_session, stop_session

_log = logging.getLogger(__name__)
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_NO_EPOCH_SECONDS = 0.5
_SETTLED_SECONDS = 10.0
"""How long an epoch has the machine for itself: what began with it is caught up with, or the epoch lasts for long."""


class Engine:
    """Starts on first use; `restart` after a loss. An epoch begins as soon as there is a session: its own tasks start the workers that
    it needs. Those of the next one are warmed up when it has run for a while, or at once where no epoch comes: a run that stands by.

    The first start fails at once, with its reason: a person waits for it. A later one is tried until it succeeds: a JVM that is
    killed while it starts must not end a run that could carry on a moment later.
    """

    def __init__(
        self,
        master: str,
        slots: int,
        settings: Mapping[str, str],
        log: Path,
        start: Callable[[str, Mapping[str, str], Path], Any] = start_session,
    ) -> None:
        self.master = master
        self._slots = slots
        self._settings = settings
        self._log_path = log
        self._start_session = start
        self._runner: EpochRunner | None = None
        self._context: Any = None
        self._lock = asyncio.Lock()
        self._warming: asyncio.Task[None] | None = None
        self._epoch_came = asyncio.Event()
        """Of this session."""
        self._has_worked = False
        self.sessions = 0
        """Those that ran a task: while executors are still being started, Spark is not stuck."""

    async def start(self) -> None:
        """A session with warm workers; returns at once if there is one."""
        await self._session()
        if self._warming is not None:
            await asyncio.shield(self._warming)

    async def _session(self, warm_at_once: bool = False) -> EpochRunner:
        """A session whose workers may still be starting."""
        async with self._lock:
            pause_s = _FIRST_PAUSE_SECONDS
            while self._runner is None:
                try:
                    self._runner = await self._begin(warm_at_once)
                except Exception as error:  # a JVM that dies while it starts shows as many kinds
                    if not self.sessions:
                        raise
                    _log.warning("Spark did not start; the next try is in %.0f s: %s", pause_s, error)
                    await self._end()
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, _LONGEST_PAUSE_SECONDS)
            return self._runner

    async def _begin(self, warm_at_once: bool) -> EpochRunner:
        began = time.monotonic()
        self._context = await asyncio.to_thread(self._start_session, self.master, self._settings, self._log_path)
        _log.debug("Spark has a session after %.1f s", time.monotonic() - began)
        runner = EpochRunner(self._context)
        self._has_worked = False
        self._epoch_came = asyncio.Event()
        if warm_at_once:
            self._warming = asyncio.create_task(self._warm_up(runner, began))
        else:
            self._warming = asyncio.create_task(self._warm_up_when_due(runner, began, self._epoch_came))
        self._warming.add_done_callback(lambda task: task.cancelled() or task.exception())
        return runner

    async def _warm_up_when_due(self, runner: EpochRunner, began: float, epoch_came: asyncio.Event) -> None:
        """Forking workers takes a core from whoever copies, and most is copied when an epoch begins."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_NO_EPOCH_SECONDS):
                await epoch_came.wait()
        if epoch_came.is_set():
            await asyncio.sleep(_SETTLED_SECONDS)
        if runner is self._runner:  # else it is over
            await self._warm_up(runner, began)

    async def _warm_up(self, runner: EpochRunner, began: float) -> None:
        try:
            await asyncio.to_thread(runner.warm_up, self._slots)
        except Exception as error:  # as above
            if not self.sessions:
                raise
            _log.warning("Spark's workers were not warmed up: %s", error)  # whoever misses a task starts Spark again
            return
        _log.debug("Spark's workers are warm after %.1f s", time.monotonic() - began)
        if runner is self._runner:
            self.works()

    def works(self) -> None:
        """A task of this session was heard."""
        if not self._has_worked:
            self._has_worked = True
            self.sessions += 1

    async def run(self, epoch: int, orders: Sequence[Order]) -> EpochOutcome:
        """One epoch, to its end."""
        runner = await self._session()
        self._epoch_came.set()
        return await asyncio.wrap_future(runner.submit(epoch, orders))

    async def status(self) -> dict[str, Any]:
        """What Spark says; empty while there is no session to ask."""
        runner = self._runner
        if runner is None:
            return {}
        try:
            async with asyncio.timeout(5):
                return await asyncio.to_thread(runner.status)
        except Exception:  # noqa: BLE001  whatever a dying JVM raises: the watchdog deals with it
            return {}

    async def is_alive(self) -> bool:
        context = self._context
        if self._runner is None or context is None:
            return False
        process = getattr(context._gateway, "proc", None)
        return process is None or process.poll() is None

    async def stop(self) -> None:
        async with self._lock:
            await self._end()

    async def _end(self) -> None:
        runner, self._runner = self._runner, None
        context, self._context = self._context, None
        if runner is not None:
            runner.close()
        if context is not None:
            await asyncio.to_thread(stop_session, context)

    async def restart(self, reason: str) -> None:
        _log.warning("Spark is started again: %s", reason)
        await self.stop()
        await self._session(warm_at_once=True)  # no epoch runs, and the next one is not to be taken for stuck
        await self.start()
