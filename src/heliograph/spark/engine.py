"""Spark under watch, on the driver: a session that is started again when it is lost, and epochs submitted to it.

Blocking calls run in threads; the caller lives in an event loop. The lanes do not mind a lost session: the next epoch attaches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heliograph.spark.carry import Order
from heliograph.spark.epoch import EpochOutcome, EpochRunner
from heliograph.spark.session import start_session, stop_session

_log = logging.getLogger(__name__)


class Engine:
    """Starts on first use; `restart` after a loss."""

    def __init__(self, master: str, slots: int, settings: Mapping[str, str], log: Path) -> None:
        self.master = master
        self._slots = slots
        self._settings = settings
        self._log_path = log
        self._runner: EpochRunner | None = None
        self._context: Any = None
        self._lock = asyncio.Lock()
        self.sessions = 0

    async def start(self) -> None:
        """A session with warm workers; returns at once if there is one."""
        async with self._lock:
            if self._runner is None:
                self._context = await asyncio.to_thread(start_session, self.master, self._settings, self._log_path)
                runner = EpochRunner(self._context)
                await asyncio.to_thread(runner.warm_up, 2 * self._slots)
                self._runner = runner
                self.sessions += 1

    async def run(self, epoch: int, orders: Sequence[Order]) -> EpochOutcome:
        """One epoch, to its end."""
        await self.start()
        assert self._runner is not None  # noqa: S101  start() made it
        return await asyncio.wrap_future(self._runner.submit(epoch, orders))

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
            runner, self._runner = self._runner, None
            context, self._context = self._context, None
            if runner is not None:
                runner.close()
            if context is not None:
                await asyncio.to_thread(stop_session, context)

    async def restart(self, reason: str) -> None:
        _log.warning("Spark is started again: %s", reason)
        await self.stop()
        await self.start()
