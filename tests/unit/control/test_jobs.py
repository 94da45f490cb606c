"""The frame of jobs, with jobs that only remember and a clock that is turned by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pytest

from heliograph.control.clock import Clock
from heliograph.control.jobs import Found, JobRunner
from heliograph.errors import BrokerRefused, HeliographError
from heliograph.model.events import Event, EventKind
from tests.unit.control.fakes import FakeClock


@dataclass(frozen=True)
class Paint:
    subject: str = "wall"
    what: str = "paint"
    why: str = "it is grey"
    routine: bool = False


class Enough(Exception):
    """The test has seen what it wanted."""


class Painter:
    """Finds a wall at every look; `faults` are met by its looks, one after the other, None for none."""

    name = "painter"
    interval_s = 60.0

    def __init__(self, clock: FakeClock, faults: Sequence[Exception | None] = (), takes_s: float = 0.0) -> None:
        self._clock = clock
        self._faults = list(faults)
        self._takes_s = takes_s
        self.refused: Sequence[str] = ()
        self.unseen: Sequence[str] = ()
        self.walls: Sequence[Paint] = (Paint(),)
        self.looks = 0
        self.applied: list[Paint] = []

    async def look(self) -> Found[Paint]:
        self.looks += 1
        self._clock.now += self._takes_s
        fault = self._faults.pop(0) if self._faults else None
        if fault is not None:
            raise fault
        return Found(self.walls, self.unseen, "grey walls")

    async def apply(self, actions: Sequence[Paint]) -> Sequence[str]:
        self.applied += actions
        return self.refused


class Stage:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.may_run = True
        self.events: list[Event] = []
        self.pauses: list[float] = []
        self.enough = 1_000
        self.runner = JobRunner(
            "A->B", lambda: self.may_run, self.events.append, cast(Clock, self.clock), sleep=self._sleep
        )

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.now += seconds
        if len(self.pauses) >= self.enough:
            raise Enough

    def keep(self, job: Painter, pauses: int) -> None:
        self.enough = pauses
        with pytest.raises(Enough):
            asyncio.run(self.runner.keep(job))

    def once(self, job: Painter) -> bool:
        return asyncio.run(self.runner.once(job))

    def said(self) -> list[tuple[str, str, str]]:
        return [(event.subject, event.kind, event.reason) for event in self.events]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_job_runs_at_once_and_then_every_interval(stage: Stage) -> None:
    job = Painter(stage.clock)
    stage.keep(job, pauses=3)
    assert job.looks == 3 and len(job.applied) == 3
    assert stage.pauses == [60.0, 60.0, 60.0]
    assert stage.events == []


def test_the_time_that_a_turn_takes_is_part_of_its_interval(stage: Stage) -> None:
    stage.keep(Painter(stage.clock, takes_s=20.0), pauses=2)
    assert stage.pauses == [40.0, 40.0]
    [standing] = stage.runner.standing()
    assert (standing["took_ms"], standing["late"]) == (20_000, 0)


def test_a_turn_that_outlasts_its_interval_is_counted_as_late_and_the_next_one_does_not_begin_at_once(
    stage: Stage,
) -> None:
    stage.keep(Painter(stage.clock, takes_s=61.0), pauses=2)
    assert all(0 < pause < 1 for pause in stage.pauses)
    assert stage.runner.standing()[0]["late"] == 2


def test_nothing_to_do_applies_nothing(stage: Stage) -> None:
    job = Painter(stage.clock)
    job.walls = ()
    assert stage.once(job)
    assert job.looks == 1 and job.applied == []


def test_a_job_waits_until_it_may_run(stage: Stage) -> None:
    job = Painter(stage.clock)
    stage.may_run = False
    stage.keep(job, pauses=4)
    assert job.looks == 0


def test_trouble_is_said_once_tried_again_with_growing_pauses_and_its_end_is_said(stage: Stage) -> None:
    refusal = BrokerRefused(29, "cluster A: topic heartbeats")
    stage.keep(Painter(stage.clock, [refusal] * 5), pauses=6)
    assert stage.pauses == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]
    assert stage.said() == [
        ("painter", EventKind.TROUBLE, "cluster A: topic heartbeats: error 29"),
        ("painter", EventKind.RECOVERED, "it goes on"),
    ]


def test_the_pauses_begin_anew_after_a_good_turn(stage: Stage) -> None:
    fault = HeliographError("no")
    stage.keep(Painter(stage.clock, [fault, fault, None, fault]), pauses=4)
    assert stage.pauses == [5.0, 10.0, 60.0, 5.0]


def test_a_frequent_job_is_not_tried_again_more_often_than_others(stage: Stage) -> None:
    job = Painter(stage.clock, [HeliographError("no")] * 4)
    job.interval_s = 1.0
    stage.keep(job, pauses=4)
    assert stage.pauses == [5.0, 10.0, 15.0, 15.0]


def test_another_trouble_is_another_event(stage: Stage) -> None:
    stage.keep(Painter(stage.clock, [HeliographError("one"), TimeoutError()]), pauses=2)
    assert [reason for _, _, reason in stage.said()] == ["one", "a cluster did not answer in time"]


def test_trouble_with_a_part_is_said_and_the_rest_is_done(stage: Stage) -> None:
    job = Painter(stage.clock)
    job.unseen, job.refused = ("the door is locked",), ("the wall is wet", "the brush is gone")
    assert not stage.once(job)
    assert job.applied == [Paint()]
    [standing] = stage.runner.standing()
    assert standing["trouble"] == "the door is locked, and 2 more"
    assert standing["ended_ms"] == 0 and standing["actions"] == 1


def test_one_trouble_with_a_part_stands_alone(stage: Stage) -> None:
    job = Painter(stage.clock)
    job.refused = ("the wall is wet",)
    assert not stage.once(job)
    assert stage.said() == [("painter", EventKind.TROUBLE, "the wall is wet")]


def test_an_error_that_nobody_foresaw_ends_the_job_loudly(stage: Stage) -> None:
    with pytest.raises(ZeroDivisionError):
        stage.once(Painter(stage.clock, [ZeroDivisionError()]))


def test_how_a_job_stands_is_told(stage: Stage) -> None:
    assert stage.once(Painter(stage.clock, takes_s=0.25))
    assert stage.runner.standing() == [
        {
            "name": "painter",
            "ended_ms": 1_000_250,
            "took_ms": 250,
            "interval_ms": 60_000,
            "actions": 1,
            "late": 0,
            "trouble": "",
            "trouble_since_ms": 0,
            "summary": "grey walls",
            "detail": {},
        }
    ]


def test_jobs_are_settled_when_each_had_a_turn_well_or_not(stage: Stage) -> None:
    assert stage.runner.is_settled
    job = Painter(stage.clock, [HeliographError("no")])

    async def scene() -> list[bool]:
        stage.may_run = False
        waiting = asyncio.create_task(stage.runner.once(job))
        stage.enough = 1
        await asyncio.gather(waiting, return_exceptions=True)
        while_another_holds_the_flow = stage.runner.is_settled
        stage.may_run = True
        before = stage.runner.is_settled
        await stage.runner.once(job)
        return [while_another_holds_the_flow, before, stage.runner.is_settled]

    assert asyncio.run(scene()) == [True, False, True]


def test_at_the_end_a_job_has_one_turn_if_the_flow_is_still_ours() -> None:
    stage = Stage()
    job = Painter(stage.clock)
    asyncio.run(stage.runner.at_end(job))
    assert (job.looks, len(job.applied)) == (1, 1)
    stage.may_run = False
    asyncio.run(stage.runner.at_end(job))
    assert (job.looks, stage.pauses) == (1, [])


def test_what_was_counted_stays_when_settings_change_and_a_job_that_is_gone_is_not_shown(stage: Stage) -> None:
    stage.keep(Painter(stage.clock, takes_s=70.0), pauses=3)
    gone = Painter(stage.clock)
    gone.name = "gone"
    stage.once(gone)
    before = stage.runner
    stage.runner = JobRunner(
        "A->B", lambda: stage.may_run, stage.events.append, cast(Clock, stage.clock), before=before
    )
    assert set(stage.runner.before) == {"painter", "gone"}
    assert stage.once(Painter(stage.clock))
    [standing] = stage.runner.standing()
    assert (standing["name"], standing["actions"], standing["late"]) == ("painter", 4, 3)
    assert stage.runner.is_settled
