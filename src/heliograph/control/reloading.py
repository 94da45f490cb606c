"""The file of a run, read again: when it was saved, or when somebody asks (SIGHUP, REST); and what it changes then."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from heliograph.config.changes import LIMITS, LIVE, changes
from heliograph.config.flows import FlowSettings, Settings
from heliograph.control.clock import Clock
from heliograph.control.events import EventLog
from heliograph.control.flow_set import FlowSet
from heliograph.control.steering import RELOADED, Steering, Step
from heliograph.errors import HeliographError
from heliograph.model.events import Deed, Event, EventKind

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 0.5
_RETRY_SECONDS = 5.0
_SEE_SECONDS = 3.0


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
        self._is_amended = False
        """Whether somebody changed something beside the file that this run does not go by yet."""
        self.mine: Callable[[Settings], Settings] = lambda settings: settings
        """The flows of this run, as the command line has them."""
        self.adopted: list[Callable[[tuple[FlowSettings, ...]], None]] = []
        """Who must know of other settings."""
        steering.prepare = self.prepare
        flows.before_taking_over = self._see_holds
        steering.tell = events.tell

    async def keep(self) -> None:
        """For ever."""
        tried = self._clock.monotonic()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            due = self._file.is_due()
            if self._clock.monotonic() - tried >= _RETRY_SECONDS:
                tried = self._clock.monotonic()
                due = await self._tried_again() or due
            if due or self._is_amended:
                self._is_amended = False
                try:
                    async with self._steering.lock:
                        await self._reload(is_news=due)
                except (HeliographError, TimeoutError) as error:
                    self._tell_refused(str(error) or "a cluster did not answer in time")

    async def _reload(self, is_news: bool) -> None:
        """Connectors were taken once: what keeps one of them from beginning now must not refuse the file.

        What was changed by REST is no news: it was told when it was made, with who and why.
        """
        step = await self.prepare(await self._steering.settings(), self._steering.by_rest)
        await step.take()
        if step.said and is_news:
            done = f"{RELOADED}: {'; '.join(step.said)}"
            # Of a flow that another run carries, that run says it.
            mine = [watch.name for watch in self._flows.watches if not watch.standing_by]
            self._steering.record(*(Deed(name, done, "", "", self._file.path) for name in mine))

    async def _tried_again(self) -> bool:
        """What waits for a cluster, or for what a connector refers to; whether that may be there now."""
        steering = self._steering
        with contextlib.suppress(HeliographError, TimeoutError):  # as long as it is out of reach, or cannot be right
            if not steering.is_known:
                await steering.recall()
                steering.on_holds()
                self._is_amended = True
            elif any(watch.standing_by for watch in self._flows.watches) and await steering.look_again():
                steering.on_holds()
                self._is_amended = True
            await steering.take_back()
            if steering.unfit:
                before = dict(steering.unfit)
                return dict((await steering.settings()).unfit) != before
        return False

    async def _see_holds(self) -> None:
        """What somebody changed at the run that carried a flow until now; where that cannot be known, the last look counts."""
        with contextlib.suppress(HeliographError, TimeoutError):
            async with asyncio.timeout(_SEE_SECONDS):
                self._is_amended |= await self._steering.look_again()  # settings may be others, too

    async def prepare(self, settings: Settings, patient: Collection[str] = ()) -> Step:
        """HeliographError or TimeoutError where flows do not fit together or cannot be; then all stays as it was.

        `patient` are flows that begin in trouble instead, and are tried again.
        """
        wanted = self.mine(settings)
        found = changes(self.read, wanted, self._live)
        prepared = await self._flows.prepare(found, patient)

        async def take() -> None:
            await self._flows.carry_out(prepared)
            self._adopt(wanted, found.said)

        return Step(take, lambda: self._flows.drop(prepared), found.said)

    def _adopt(self, wanted: Settings, said: Sequence[str]) -> None:
        flows = tuple(watch.settings for watch in self._flows.watches)
        # What waits for the next start is said once, so it counts as read; only flows are compared with what they run on.
        self.read = replace(wanted, flows=flows)
        self._file.interval_s = wanted.engine.reload_interval_s
        for adopt in self.adopted:
            adopt(flows)
        for sentence in said or ("nothing changed",):
            _log.info("the file was read again: %s", sentence)

    def _tell_refused(self, reason: str) -> None:
        advice = "mend it and save it again; the run goes on as before"
        for watch in self._flows.watches:
            told = f"the file was read again and is not used: {reason}"
            self._events.tell(Event(self._clock.now_ms(), watch.name, self._file.path, EventKind.FILE, told, advice))


def live_settings(until_caught_up: bool) -> frozenset[str]:
    """A run that ends by itself copies what was there when it began: only its limits change."""
    return LIMITS if until_caught_up else LIVE
