"""How a change is made: made ready, written down, then done. What cannot be written is not done, and taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from heliograph.config.flows import Settings
from heliograph.control.state_topic import Row, StateTopic
from heliograph.control.steering import Change, Steering, Step
from heliograph.errors import ClusterUnreachable, Refused
from heliograph.model.clusters import Cluster

FILE = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
KEY = "connector-state/x"
STOPPED = {"name": "x", "state": "STOPPED"}
PAUSED = {"name": "x", "state": "PAUSED"}


class Kept(StateTopic):
    """A topic whose cluster takes a row and says nothing, or takes it and says so."""

    def __init__(self) -> None:
        super().__init__(Cluster("B", ("b:1",)), 1)
        self.rows: dict[str, Row | None] = {}
        self.is_silent = False

    async def write(self, rows: Mapping[str, Row | None], now_ms: int) -> None:
        del now_ms
        self.rows |= rows
        if self.is_silent:
            raise TimeoutError


class Stage:
    """A steering whose steps are written down."""

    def __init__(self, tmp_path: Path) -> None:
        file = tmp_path / "mm2.properties"
        file.write_text(FILE)
        self.topic = Kept()
        self.steering = Steering(str(file), self.topic)
        self.steering.is_known = True
        self.steering.prepare = self._prepare
        self.refuses = False
        self.steps: list[str] = []

    async def _prepare(self, settings: Settings, patient: Collection[str]) -> Step:
        names = [flow.flow.name for flow in settings.flows]
        self.steps.append(f"ready for {names}, patient with {sorted(patient)}")
        if self.refuses:
            raise ClusterUnreachable("gone")

        async def take() -> None:
            self.steps.append(f"taken with {self.steering.amended.rows.get(KEY)}")

        return Step(take, lambda: self.steps.append("dropped"))

    async def make(self, row: Row | None) -> None:
        await self.steering.make(Change("x", {KEY: row}, {}, settings=True))


def test_it_is_made_ready_written_and_then_done(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    asyncio.run(stage.make(STOPPED))
    assert stage.steps == ["ready for ['A->B'], patient with []", f"taken with {STOPPED}"]
    assert stage.topic.rows == {KEY: STOPPED}


def test_what_cannot_be_is_not_written(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.refuses = True
    with pytest.raises(Refused, match="gone") as error:
        asyncio.run(stage.make(STOPPED))
    assert (error.value.status, stage.topic.rows, stage.steering.amended.rows) == (409, {}, {})


def test_what_may_be_written_all_the_same_is_not_done_and_taken_back_once_the_cluster_answers(tmp_path: Path) -> None:
    stage = Stage(tmp_path)

    async def scenario() -> None:
        await stage.make(PAUSED)
        stage.topic.is_silent = True
        with pytest.raises(Refused, match="cluster B does not keep the change: no answer") as error:
            await stage.make(STOPPED)
        assert (error.value.status, stage.steps[-1]) == (503, "dropped")
        assert stage.steering.amended.rows == {KEY: PAUSED}
        assert stage.topic.rows == {KEY: STOPPED}, "it arrived, which nobody knows"
        with pytest.raises(TimeoutError):
            await stage.steering.take_back()
        stage.topic.is_silent = False
        await stage.steering.take_back()
        assert stage.topic.rows == {KEY: PAUSED}
        stage.topic.rows.clear()
        await stage.steering.take_back()
        assert stage.topic.rows == {}, "once"

    asyncio.run(scenario())


def test_the_next_change_takes_it_back_too(tmp_path: Path) -> None:
    stage = Stage(tmp_path)

    async def scenario() -> None:
        stage.topic.is_silent = True
        for key in (KEY, "option/y"):
            with pytest.raises(Refused):
                await stage.steering.make(Change("x", {key: STOPPED}, {}))
        stage.topic.is_silent = False
        await stage.make(PAUSED)

    asyncio.run(scenario())
    assert stage.topic.rows == {KEY: PAUSED, "option/y": None}


def test_who_comes_in_the_middle_of_another_change_is_refused_and_the_file_waits(tmp_path: Path) -> None:
    stage = Stage(tmp_path)

    async def scenario() -> None:
        async with stage.steering.alone("one"):
            with pytest.raises(Refused, match=r"another change is being made \(one\): try again"):
                await stage.make(STOPPED)
            assert stage.steering.lock.locked()
        async with stage.steering.lock:  # the file is read again: a person's change waits for it
            change = asyncio.create_task(stage.make(STOPPED))
            await asyncio.sleep(0)
            assert not change.done()
        await change

    asyncio.run(scenario())
    assert stage.topic.rows == {KEY: STOPPED}


def test_a_restart_is_patient_with_its_flow_alone(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    asyncio.run(stage.steering.restart("A->B"))
    ready = [step for step in stage.steps if step.startswith("ready")]
    assert ready == ["ready for [], patient with ['A->B']", "ready for ['A->B'], patient with ['A->B']"]
