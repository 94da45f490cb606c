"""Periodic jobs of a flow, all of one shape: read both sides, let a pure function name the actions, apply them, record them.

`look` changes nothing, so `heliograph plan` is the same call without `apply`. A job that fails is late, never lost: its reason
is an event and is shown by status, the other jobs go on, and it is tried again soon. What stands against a part of a job's
work is its trouble too, while the rest is done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from heliograph.control.clock import Clock
from heliograph.errors import HeliographError
from heliograph.model.events import Event, EventKind

_log = logging.getLogger(__name__)
_RETRY_SECONDS = 5.0
_LONGEST_RETRY_SECONDS = 15.0
_WAITING_SECONDS = 0.5
_SHORTEST_PAUSE_SECONDS = 0.1


class Action(Protocol):
    """One change that a job would make, as a person reads it."""

    @property
    def subject(self) -> str:
        """A topic, a group, an ACL."""

    @property
    def what(self) -> str: ...

    @property
    def why(self) -> str: ...

    @property
    def routine(self) -> bool:
        """Done at every turn, whatever is found: nothing that is pending, so `plan` does not name it."""


AnyAction = TypeVar("AnyAction", bound=Action)


@dataclass(frozen=True)
class Found(Generic[AnyAction]):
    """What a look came to; `troubles` are sentences about what could not be looked at, `summary` is what status shows."""

    actions: Sequence[AnyAction]
    troubles: Sequence[str] = ()
    summary: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """The same as values, for metrics and the page."""


class Job(Protocol[AnyAction]):
    """`interval_s` is asked before every turn: settings may change while it runs."""

    @property
    def name(self) -> str: ...

    @property
    def interval_s(self) -> float: ...

    async def look(self) -> Found[AnyAction]: ...

    async def apply(self, actions: Sequence[AnyAction]) -> Sequence[str]:
        """Sentences about what could not be applied; the rest is done."""


@dataclass
class Turn:
    """How a job stands, for status: when it last ended well, how long it took, what it did, what troubles it."""

    name: str
    ended_ms: int = 0
    took_ms: int = 0
    interval_ms: int = 0
    actions: int = 0
    """That it applied in this run."""
    late: int = 0
    """Turns that took longer than the interval."""
    trouble: str = ""
    trouble_since_ms: int = 0
    summary: str = ""
    """What the last look found, in a few words; not every job has something to say."""
    detail: Mapping[str, Any] = field(default_factory=dict)


class JobRunner:
    """Runs the jobs of one flow while `may_run` says so: this run has the flow, and its plan is known."""

    def __init__(
        self,
        flow: str,
        may_run: Callable[[], bool],
        tell: Callable[[Event], None],
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        before: JobRunner | None = None,
    ) -> None:
        """`before` ran them with other settings: what it counted of jobs that are still there goes on from there."""
        self._flow = flow
        self._may_run = may_run
        self._tell = tell
        self._clock = clock
        self._sleep = sleep
        self._turns: dict[str, Turn] = {}
        self._turns_before = before._turns if before is not None else {}
        self.before: Mapping[str, Job[Any]] = before.jobs if before is not None else {}
        """The jobs as they were with other settings, by name."""
        self._had: set[str] = set()
        self.jobs: dict[str, Job[Any]] = {}
        """By name; those that are kept."""

    async def keep(self, job: Job[Any]) -> None:
        """For ever: at once, then every interval; after trouble sooner, with growing pauses."""
        retry = _RETRY_SECONDS
        while True:
            begun = self._clock.monotonic()
            if await self.once(job):
                retry, pause = _RETRY_SECONDS, job.interval_s
            else:
                pause, retry = retry, min(retry * 2, max(_LONGEST_RETRY_SECONDS, job.interval_s))
            took = self._clock.monotonic() - begun
            await self._sleep(max(_SHORTEST_PAUSE_SECONDS, pause - took))

    async def once(self, job: Job[Any]) -> bool:
        """One turn, as soon as it may be; False where trouble kept it from its end."""
        self._turns.setdefault(job.name, self._turns_before.get(job.name) or Turn(job.name))
        self.jobs[job.name] = job
        while not self._may_run():
            await self._sleep(_WAITING_SECONDS)
        done = await self._turn(job)
        self._had.add(job.name)
        return done

    async def at_end(self, job: Job[Any]) -> None:
        """One turn, unless the flow is another run's by now."""
        if self._may_run():
            await self.once(job)

    @property
    def is_settled(self) -> bool:
        """Every job had a turn, well or not, or none may have one."""
        return self._had >= self._turns.keys() or not self._may_run()

    async def _turn(self, job: Job[Any]) -> bool:
        turn = self._turns[job.name]
        begun = self._clock.monotonic()
        try:
            found = await job.look()
            troubles = list(found.troubles)
            if found.actions:
                troubles += await job.apply(found.actions)
        except (HeliographError, TimeoutError) as error:
            self._settle(turn, str(error) or "a cluster did not answer in time")
            return False
        for action in found.actions:
            _log.debug("%s: %s: %s %s: %s", self._flow, job.name, action.what, action.subject, action.why)
        took = self._clock.monotonic() - begun
        turn.took_ms, turn.interval_ms = int(took * 1000), int(job.interval_s * 1000)
        turn.late += took > job.interval_s
        turn.actions += len(found.actions)
        turn.summary, turn.detail = found.summary, dict(found.detail)
        if not troubles:
            turn.ended_ms = self._clock.now_ms()
        more = f", and {len(troubles) - 1} more" if len(troubles) > 1 else ""
        self._settle(turn, f"{troubles[0]}{more}" if troubles else "")
        return not troubles

    def _settle(self, turn: Turn, trouble: str) -> None:
        if trouble == turn.trouble:
            return
        turn.trouble, turn.trouble_since_ms = trouble, self._clock.now_ms()
        if trouble:
            self._say(turn.name, EventKind.TROUBLE, trouble)
        else:
            self._say(turn.name, EventKind.RECOVERED, "it goes on")

    def _say(self, subject: str, kind: EventKind, reason: str) -> None:
        self._tell(Event(self._clock.now_ms(), self._flow, subject, kind, reason))

    def detail(self, name: str) -> Mapping[str, Any]:
        """What a job's last look found, as values; nothing of a job that is not there."""
        turn = self._turns.get(name)
        return turn.detail if turn is not None else {}

    def standing(self) -> list[dict[str, Any]]:
        """All jobs, for telemetry."""
        return [asdict(turn) for turn in self._turns.values()]
