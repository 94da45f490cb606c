"""A change that begins an epoch, and a lane that it does not touch: is it carried until its next task is ready?

The tasks of that epoch are kept from starting, by SIGSTOP. What carries goes on; whatever would carry after it stands still. A
mirror that lets a lane go before somebody can take it, or ends an epoch to begin the next, is found out without a clock.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tests.support.heliograph_run import HeliographRun
from tests.support.topics import ends
from tests.support.waiting import wait_until

_BEGINS = re.compile(r"epoch \d+ begins")
_BEGAN = re.compile(r"^(\d\d):(\d\d):(\d\d)\.\d+ debug +epoch (\d+) begins", re.MULTILINE)
_ENDED = re.compile(r"epoch (\d+) ended")
_YOUNG_SECONDS = 15.0
_LIFE_SECONDS = 45.0
"""`epoch.seconds`, which these runs leave as it is: a while later tasks end by themselves, whether somebody takes over or not."""
_DAY_SECONDS = 86_400
_GIVES_UP = "Spark is started again"
_SOME_RECORDS = 100


@dataclass(frozen=True)
class SteadyLane:
    """One that is written to all the time: partition 0 of a topic, and its copy, each with the address of its cluster."""

    source: tuple[str, str]
    target: tuple[str, str]

    @property
    def written(self) -> int:
        return ends(*self.source)[0]

    @property
    def copied(self) -> int:
        return ends(*self.target).get(0, 0)


def is_carried_through(
    run: HeliographRun, lane: SteadyLane, change: Callable[[], None], has_effect: Callable[[], bool]
) -> bool:
    """Make a change that begins an epoch; fail where `lane` is not carried by who has it until the next task is ready.

    False: nothing is shown, because the run gave up on the tasks that did not start and started Spark again, as it should, which
    takes twenty seconds; or because the tasks that carried came to the end of their own time. The run has `--log-level debug`, and `change` comes back when the run has noticed it.
    """
    wait_until(
        lambda: _age_of_the_only_epoch(run) < _YOUNG_SECONDS, "an epoch has just begun, and none ends", every=0.1
    )
    begun, given_up = _count(run, _BEGINS), run.output.count(_GIVES_UP)
    carried = max(_moments(run))
    with _next_tasks_frozen(run):
        change()
        wait_until(lambda: _count(run, _BEGINS) > begun, "the next epoch begins")
        written = lane.written
        wait_until(lambda: lane.copied > written + _SOME_RECORDS, "what was carried is carried")
        took_effect = has_effect()
        if run.output.count(_GIVES_UP) > given_up or _age(run, carried) > _LIFE_SECONDS:
            return False
        assert not took_effect, "a task of the next epoch found a worker: somebody let its lanes go before"
        return True


def _moments(run: HeliographRun) -> dict[int, float]:
    """By its number, when an epoch began, in seconds of the day."""
    found = _BEGAN.findall(run.output)
    return {int(number): int(hour) * 3600 + int(minute) * 60 + int(second) for hour, minute, second, number in found}


def _age(run: HeliographRun, epoch: int) -> float:
    return (time.time_ns() / 1e9 - _moments(run)[epoch]) % _DAY_SECONDS


def _age_of_the_only_epoch(run: HeliographRun) -> float:
    """Infinite while lanes are handed over: the workers that let them go would take the next tasks."""
    ended = {int(number) for number in _ENDED.findall(run.output)}
    left = _moments(run).keys() - ended
    return _age(run, left.pop()) if len(left) == 1 else math.inf


def _count(run: HeliographRun, line: re.Pattern[str]) -> int:
    return len(line.findall(run.output))


@contextlib.contextmanager
def _next_tasks_frozen(run: HeliographRun) -> Iterator[None]:
    """The workers that carry nothing, one of which would get the next task, and the daemons that fork more.

    The daemons first: the run warms up workers for its next epoch when it likes, and one that was forked after a look would be free.
    """
    frozen: set[int] = set()
    try:
        _freeze(run.daemons(), frozen)
        carriers = run.carriers()
        while idle := set(run.workers()) - frozen - set(carriers):
            _freeze(idle, frozen)
        yield
    finally:
        for process in frozen:
            _send(process, signal.SIGCONT)


def _freeze(processes: Iterable[int], frozen: set[int]) -> None:
    for process in processes:
        frozen.add(process)
        _send(process, signal.SIGSTOP)


def _send(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)
