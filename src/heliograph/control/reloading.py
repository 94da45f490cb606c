"""The file of a run, read again: when it was saved, or when somebody asks (SIGHUP, REST); and what it changes then."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from heliograph.config.changes import LIMITS, LIVE, changes
from heliograph.config.flows import FlowSettings, Settings
from heliograph.control.clock import Clock
from heliograph.control.events import EventLog
from heliograph.control.flow_set import FlowSet
from heliograph.control.steering import Steering
from heliograph.errors import HeliographError
from heliograph.model.events import Event, EventKind

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 0.5
_RECALL_SECONDS = 5.0


class FileWatch:
    """Whether the file is to be read. One that is not there has not changed."""

    def __init__(self, path: str, interval_s: int, clock: Callable[[], float]) -> None:
        self.path = path
        self.interval_s = interval_s
        """How often it is looked at; 0: never, only `ask` counts."""
        self._clock = clock
        self._looked = clock()
        self._seen = self._stamp()
        self._asked = False

    def ask(self) -> None:
        self._asked = True

    def is_due(self) -> bool:
        """Once for each time that it was saved or asked for."""
        if self._asked:
            self._asked, self._seen = False, self._stamp()
            return True
        if not self.interval_s or self._clock() - self._looked < self.interval_s:
            return False
        self._looked = self._clock()
        stamp = self._stamp()
        changed = stamp not in ((0, 0), self._seen)
        self._seen = stamp if changed else self._seen
        return changed

    def _stamp(self) -> tuple[int, int]:
        try:
            found = Path(self.path).stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino


class Reloader:
    """Makes a run go by other settings, without disturbing what they do not change."""

    def __init__(
        self,
        read: Settings,
        file: FileWatch,
        steering: Steering,
        flows: FlowSet,
        events: EventLog,
        live: frozenset[str] = LIVE,
    ) -> None:
        """`read` are the settings of this run's flows; `live` is what may change of them."""
        self.read = read
        self._file = file
        self._steering = steering
        self._flows = flows
        self._events = events
        self._live = live
        self._clock = Clock()
        self.mine: Callable[[Settings], Settings] = lambda settings: settings
        """The flows of this run, as the command line has them."""
        self.adopted: list[Callable[[tuple[FlowSettings, ...]], None]] = []
        """Who must know of other settings."""
        steering.apply = self.apply

    async def keep(self) -> None:
        """For ever."""
        recalled = self._clock.monotonic()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = self._clock.monotonic()
            due = self._file.is_due()
            if not self._steering.is_known and now - recalled >= _RECALL_SECONDS:
                recalled = now
                with contextlib.suppress(HeliographError, TimeoutError):  # as long as the cluster is out of reach
                    await self._steering.recall()
                    self._steering.on_holds()
                    due = True
            if due:
                try:
                    await self.apply(await self._steering.settings())
                except (HeliographError, TimeoutError) as error:
                    self._tell_refused(str(error) or "a cluster did not answer in time")

    async def apply(self, settings: Settings) -> None:
        """HeliographError or TimeoutError where flows do not fit together or cannot be; then all stays as it was."""
        wanted = self.mine(settings)
        found = changes(self.read, wanted, self._live)
        await self._flows.change(found)
        flows = tuple(watch.settings for watch in self._flows.watches)
        # What waits for the next start is said once, so it counts as read; only flows are compared with what they run on.
        self.read = replace(wanted, flows=flows)
        self._file.interval_s = wanted.engine.reload_interval_s
        for adopt in self.adopted:
            adopt(flows)
        for sentence in found.said or ("nothing changed",):
            _log.info("the file was read again: %s", sentence)

    def _tell_refused(self, reason: str) -> None:
        advice = "mend it and save it again; the run goes on as before"
        for watch in self._flows.watches:
            told = f"the file was read again and is not used: {reason}"
            self._events.tell(Event(self._clock.now_ms(), watch.name, self._file.path, EventKind.FILE, told, advice))


def live_settings(until_caught_up: bool) -> frozenset[str]:
    """A run that ends by itself copies what was there when it began: only its limits change."""
    return LIMITS if until_caught_up else LIVE
