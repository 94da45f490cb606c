"""How a change is made: made ready, written down, then done. What cannot be written is not done, and taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from heliograph.config.flows import Settings
from heliograph.control.amendments import amendments
from heliograph.control.flow_watch import FlowWatch
from heliograph.control.state_topic import Row, StateTopic
from heliograph.control.steering import Change, Steering, Step
from heliograph.errors import ClusterUnreachable, Refused
from heliograph.model.clusters import Cluster
from heliograph.model.events import Deed

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
        self.on_read: Callable[[], None] = lambda: None

    async def read(self) -> dict[str, Row]:
        """As the topic gives them back, each with its version."""
        found = {key: {"version": 1, **row} for key, row in self.rows.items() if row is not None}
        self.on_read()
        return found

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


def test_it_is_answered_when_others_can_see_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path)

    async def told() -> None:
        stage.steps.append("told")

    stage.steering.tell_holds = told
    asyncio.run(stage.make(STOPPED))
    assert stage.steps[-2:] == [f"taken with {STOPPED}", "told"]


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


def test_a_change_is_told_once_it_is_made_and_not_if_it_is_refused_or_only_tried(tmp_path: Path) -> None:
    stage, told = Stage(tmp_path), []
    stage.steering.tell = lambda event: told.append((event.subject, event.kind, event.reason))
    change = Change("x", {KEY: STOPPED}, {}, settings=True, deeds=[Deed("A->B", "stopped", "ann", "night", "orders")])

    async def scenario() -> None:
        await stage.steering.make(change, dry_run=True)
        stage.refuses = True
        with pytest.raises(Refused):
            await stage.steering.make(change)
        assert told == []
        stage.refuses = False
        await stage.steering.make(change)

    asyncio.run(scenario())
    assert told == [("orders", "changed", "stopped by ann: night")]


def test_a_topic_that_was_added_and_is_not_there_yet_can_be_taken_out_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    file = tmp_path / "mm2.properties"
    file.write_text(f"{FILE}A->B.topics = orders\n")

    async def scenario() -> None:
        settings = await stage.steering.settings()
        stage.steering.watches = [
            SimpleNamespace(
                name="A->B", settings=settings.flows[0], plan_now=lambda: None, turns=SimpleNamespace(refusal="")
            )
        ]  # type: ignore[list-item]  # what steering looks at
        added = await stage.steering.add_topic("A->B", "nosuch", "soon", "ann")
        assert (added.answer["exists"], added.answer["source"]) == (None, "A")
        await stage.steering.make(added)
        removed = await stage.steering.remove_topic("A->B", "nosuch", "", "ann")
        await stage.steering.make(removed)
        assert set(stage.topic.rows.values()) == {None}
        with pytest.raises(Refused, match="does not copy a topic nosuch"):
            await stage.steering.remove_topic("A->B", "nosuch", "", "ann")

    asyncio.run(scenario())


class Elsewhere:
    """A flow that another run carries."""

    name, settings, plan = "A->B", None, None
    turns = SimpleNamespace(refusal="A->B is carried by north, process 7; this run stands by: make the change there")

    def plan_now(self) -> None:
        return None


@pytest.mark.parametrize("topic", ["", "orders"])
def test_a_run_that_stands_by_changes_nothing_and_says_who_can(tmp_path: Path, topic: str) -> None:
    """A pause that it wrote down would be answered as done, while the other run copies on."""

    async def scenario() -> None:
        stage = Stage(tmp_path)
        steering = stage.steering
        steering.watches = cast(Sequence[FlowWatch], [Elsewhere()])
        wishes: list[Callable[[], Awaitable[object]]] = [
            lambda: steering.pause("A->B", topic, -1, "why", "ann"),
            lambda: steering.drain("A->B", topic, -1, "why", "ann"),
            lambda: steering.resume("A->B", topic, -1, "why", "ann"),
            lambda: steering.throttle("A->B", topic, 5, "why", "ann"),
            lambda: steering.add_topic("A->B", topic, "why", "ann"),
            lambda: steering.remove_topic("A->B", topic, "why", "ann"),
            lambda: steering.restart("A->B"),
            lambda: steering.make(
                Change("connector x", {KEY: STOPPED}, {}, True, [Deed("A->B", "stopped", "ann", "")])
            ),
        ]
        for wish in wishes:
            with pytest.raises(Refused, match="carried by north, process 7; this run stands by") as refused:
                await wish()
            assert refused.value.status == 409
        assert (stage.steps, stage.topic.rows) == ([], {})

    asyncio.run(scenario())


def test_what_another_run_changed_is_seen_by_the_one_that_stands_by(tmp_path: Path) -> None:
    async def scenario() -> None:
        stage = Stage(tmp_path)
        await stage.make(STOPPED)
        assert not await stage.steering.look_again(), "it is all our own"
        stage.topic.rows = {KEY: PAUSED}
        assert await stage.steering.look_again()
        assert [one.state for one in stage.steering.amended.states] == ["PAUSED"]
        assert not await stage.steering.look_again()

    asyncio.run(scenario())


def test_a_look_that_began_before_a_change_of_our_own_does_not_undo_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        stage = Stage(tmp_path)
        stage.topic.rows = {KEY: PAUSED}
        ours = amendments({KEY: STOPPED})

        def changed_meanwhile() -> None:
            stage.steering.amended = ours

        stage.topic.on_read = changed_meanwhile
        assert not await stage.steering.look_again()
        assert stage.steering.amended is ours

    asyncio.run(scenario())
