"""When the next epoch begins, what its tasks carry, and when Spark is started again; in virtual time, without Spark."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from heliograph.config.load import load
from heliograph.control.conductor import Conductor
from heliograph.control.epochs import Epochs, Work
from heliograph.kafka.slot import FlowRules
from heliograph.model.clusters import Cluster
from heliograph.model.lanes import Lane, LaneId
from heliograph.spark.carry import Order
from heliograph.spark.engine import Engine
from heliograph.spark.epoch import EpochOutcome
from heliograph.spark.line import Line
from tests.unit.control.fakes import FakeLine, VirtualLoop

FILE = """\
clusters = A, B, C
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
C.bootstrap.servers = c:1
A->B.enabled = true
epoch.seconds = 10
slots = 2
"""


def lane(number: int, flow: str = "A->B") -> Lane:
    source, _, target = flow.partition("->")
    return Lane(LaneId(flow, "orders", number), source, target, f"{source}.orders", "s", "t")


class FakeEngine:
    """Runs epochs as futures; a task of every slot dials in after `starts_after` seconds, or never."""

    def __init__(self, loop: VirtualLoop, conductor: Conductor) -> None:
        self._loop = loop
        self._conductor = conductor
        self.sessions = 1
        self.worked = 0
        self.alive = True
        self.starts_after: float | None = 0.0
        self.starts_always_after: float | None = None
        """Also after it was started again."""
        self.begun: list[float] = []
        self.orders: list[Sequence[Order]] = []
        self.running: list[asyncio.Future[EpochOutcome]] = []
        self.restarts: list[str] = []
        self._looked_at = 0.0
        self._looks = 0
        self.outcome: Callable[[int], EpochOutcome] | None = None

    async def run(self, epoch: int, orders: Sequence[Order]) -> EpochOutcome:
        self.begun.append(self._loop.time())
        self.orders.append(orders)
        if self.starts_always_after is not None:
            self.starts_after = self.starts_always_after
        if self.starts_after is not None:
            self._loop.call_later(self.starts_after, self._start, orders)
        if self.outcome is not None:
            await asyncio.sleep(0)
            return self.outcome(epoch)
        ending: asyncio.Future[EpochOutcome] = self._loop.create_future()
        self.running.append(ending)
        if self.starts_after is not None:
            self._loop.call_later(self.starts_after + orders[0].seconds, self._end, ending, EpochOutcome(epoch))
        return await ending

    def _start(self, orders: Sequence[Order]) -> None:
        self._conductor.started |= {(order.epoch, order.slot) for order in orders}

    def _end(self, ending: asyncio.Future[EpochOutcome], outcome: EpochOutcome) -> None:
        if not ending.done():
            ending.set_result(outcome)

    def end_all(self) -> None:
        for ending in self.running:
            self._end(ending, EpochOutcome(0))

    async def is_alive(self) -> bool:
        now = self._loop.time()
        self._looks = self._looks + 1 if now == self._looked_at else 0
        self._looked_at = now
        if self._looks > 100:
            raise AssertionError("the watchdog looks again and again without letting anybody else run")
        return self.alive

    def works(self) -> None:
        self.worked += 1

    async def restart(self, reason: str) -> None:
        self.restarts.append(reason)
        self.sessions += 1
        self.alive = True
        self.starts_after = 0.0
        for ending in self.running:
            self._end(ending, EpochOutcome(0, failure="the session ended"))


class Stage:
    def __init__(self, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        self._runner = runner
        self.loop = cast(VirtualLoop, runner.get_loop())
        monkeypatch.setattr("heliograph.control.epochs.Clock", lambda: self.loop)
        self.conductor = Conductor("token", 90, self.loop.time, lambda *_: None, lambda _: True)
        self.engine = FakeEngine(self.loop, self.conductor)
        rules = {flow: FlowRules(flow, flow[0], flow[-1], True, 86_400_000) for flow in ("A->B", "A->C")}
        clusters = {alias: Cluster(alias, (f"{alias}:1",)) for alias in "ABC"}
        self.work = Work((lane(0), lane(1), lane(2)), {}, clusters, rules)
        self.loads: dict[LaneId, float] = {}
        self.epochs = Epochs(
            cast(Engine, self.engine), self.conductor, load(FILE, "test").engine, lambda: self.work, lambda: self.loads
        )
        self._carrying: asyncio.Task[None] | None = None

    def do(self, what: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(what)

    def carry(self, seconds: float) -> None:
        """Let epochs run for so long."""

        async def some_time() -> None:
            if self._carrying is None:
                self._carrying = asyncio.create_task(self.epochs.run())
            await asyncio.sleep(seconds)

        self.do(some_time())
        if self._carrying is not None and self._carrying.done():
            self._carrying.result()

    def begun(self) -> list[float]:
        """When the epochs began, counted from the first."""
        return [round(moment - self.engine.begun[0], 2) for moment in self.engine.begun]

    def close(self) -> None:
        self.do(self.epochs.stop(0))
        if self._carrying is not None:
            self._carrying.cancel()
            self.do(asyncio.wait({self._carrying}))


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        stage = Stage(runner, monkeypatch)
        yield stage
        stage.close()


def test_the_next_epoch_begins_half_a_second_before_the_last_one_ends(stage: Stage) -> None:
    stage.carry(30)
    assert len(stage.begun()) == 4
    gaps = [later - sooner for sooner, later in zip(stage.begun(), stage.begun()[1:], strict=False)]
    assert all(9.5 <= gap <= 9.8 for gap in gaps), gaps
    assert [orders[0].epoch for orders in stage.engine.orders] == [1, 2, 3, 4]


def test_many_lanes_are_handed_over_less_often_and_a_change_is_still_taken_up_at_once(stage: Stage) -> None:
    stage.work = replace(stage.work, lanes=tuple(lane(number) for number in range(1500)))
    stage.carry(31)
    assert len(stage.begun()) == 2
    assert 29.5 <= stage.begun()[1] <= 29.8
    assert {order.seconds for order in stage.engine.orders[0]} == {36}
    stage.epochs.changed()
    stage.carry(0.5)
    assert len(stage.begun()) == 3


def test_load_that_has_moved_is_shared_out_again_without_waiting_for_the_end_of_a_long_epoch(stage: Stage) -> None:
    stage.work = replace(stage.work, lanes=tuple(lane(number) for number in range(3000)))
    stage.carry(9)
    heavy = [found.id for found in stage.engine.orders[0][0].plan.lanes[:2]]
    stage.loads = {found.id: 0.0 for found in stage.work.lanes} | dict.fromkeys(heavy, 1000000.0)
    stage.carry(2)
    assert len(stage.begun()) == 2
    places = [
        {found.id: order.slot for order in orders for found in order.plan.lanes} for orders in stage.engine.orders
    ]
    assert places[0][heavy[0]] == places[0][heavy[1]]
    assert places[1][heavy[0]] != places[1][heavy[1]]


def test_with_every_epoch_only_its_lanes_are_to_be_carried(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[set[str]] = []
    monkeypatch.setattr(stage.conductor, "keep_only", planned.append)
    stage.carry(1)
    stage.work = replace(stage.work, lanes=(lane(1),))
    stage.carry(10)
    assert planned == [{lane(number).id.key for number in range(3)}, {lane(1).id.key}]


def test_an_order_has_all_that_its_task_needs_and_nothing_of_other_flows(stage: Stage) -> None:
    stage.epochs.address = ("10.0.0.1", 4000)
    lanes = (lane(0), lane(1), lane(0, "A->C"))
    stage.work = replace(stage.work, lanes=lanes, until={lanes[0].id.key: 77, "A->B/gone/0": 5})
    stage.carry(0.1)
    [orders] = stage.engine.orders
    assert [order.slot for order in orders] == [0, 1]
    assert {(order.host, order.port, order.token) for order in orders} == {("10.0.0.1", 4000, stage.epochs.token)}
    assert all(order.seconds > 10 for order in orders), "a task outlives its epoch until its successor is there"
    carried = [found for order in orders for found in order.plan.lanes]
    assert sorted(carried, key=lambda found: found.id) == sorted(lanes, key=lambda found: found.id)
    for order in orders:
        flows = {found.id.flow for found in order.plan.lanes}
        assert order.plan.flows.keys() == flows
        assert order.plan.clusters.keys() == {"A", *(flow[-1] for flow in flows)}
        expected = {lanes[0].id.key: 77} if lanes[0] in order.plan.lanes else {}
        assert order.plan.until == expected


def test_a_change_begins_an_epoch_at_once_and_leaves_lanes_where_they_were(stage: Stage) -> None:
    stage.carry(3)
    stage.work = replace(stage.work, lanes=(*stage.work.lanes, lane(3)))
    stage.epochs.changed()
    stage.carry(0.5)
    assert len(stage.engine.begun) == 2
    before, after = (
        {found.id: order.slot for order in orders for found in order.plan.lanes} for orders in stage.engine.orders
    )
    assert {key: slot for key, slot in after.items() if key in before} == before
    assert len(after) == 4


def test_a_change_before_the_first_task_started_waits_for_it(stage: Stage) -> None:
    """Spark may still be starting; the others on this event loop, the tasks' lines among them, must go on meanwhile."""
    stage.engine.starts_after = 3
    stage.carry(1)
    stage.epochs.changed()
    stage.carry(1)
    assert len(stage.engine.begun) == 1
    stage.carry(1.5)
    assert len(stage.engine.begun) == 2


def test_without_lanes_there_is_no_epoch_until_there_are_some(stage: Stage) -> None:
    lanes = stage.work.lanes
    stage.work = replace(stage.work, lanes=())
    stage.carry(60)
    assert stage.engine.begun == []
    stage.work = replace(stage.work, lanes=lanes)
    stage.epochs.changed()
    stage.carry(0.1)
    assert len(stage.engine.begun) == 1


def test_no_task_within_twenty_seconds_means_a_new_session(stage: Stage) -> None:
    stage.engine.starts_after = None
    stage.carry(19)
    assert stage.engine.restarts == []
    stage.carry(2)
    assert stage.engine.restarts == ["no task of epoch 1 started within 20 s"]
    stage.carry(2)
    assert len(stage.engine.begun) == 2


def test_spark_on_a_machine_that_is_too_busy_gets_twice_as_long_after_each_new_start(stage: Stage) -> None:
    stage.engine.starts_always_after = 70.0
    stage.carry(20.5 + 40.5 + 90.0)
    assert stage.engine.restarts == [
        "no task of epoch 1 started within 20 s",
        "no task of epoch 2 started within 40 s",
    ]
    assert (3, 0) in stage.conductor.started, "the third session was given the time it needs"
    stage.engine.starts_always_after = stage.engine.starts_after = None
    stage.carry(60.0)
    assert stage.engine.restarts[2:3] == ["no task of epoch 4 started within 20 s"], "patience is short again"


def test_one_task_of_many_that_started_is_a_sign_of_life(stage: Stage) -> None:
    stage.engine.starts_after = None
    stage.carry(1)
    stage.conductor.started.add((1, 1))
    stage.carry(40)
    assert stage.engine.begun[1] - stage.engine.begun[0] < 10
    assert [reason for reason in stage.engine.restarts if "epoch 1 " in reason] == []


def test_the_engine_is_told_that_its_session_ran_a_task(stage: Stage) -> None:
    stage.engine.starts_after = 5.0
    stage.carry(4)
    assert stage.engine.worked == 0
    stage.carry(4)
    assert stage.engine.worked > 0


def test_a_session_that_takes_long_to_start_is_not_started_twice(stage: Stage) -> None:
    stage.engine.sessions = 0
    stage.engine.alive = False
    stage.engine.starts_after = None
    stage.carry(15.9)
    assert stage.engine.restarts == []
    stage.engine.sessions, stage.engine.alive = 1, True
    stage.carry(19)
    assert stage.engine.restarts == [], "the twenty seconds count from when the session is there"
    stage.carry(3)
    assert len(stage.engine.restarts) == 1


def test_a_dead_jvm_is_replaced_within_a_second(stage: Stage) -> None:
    stage.carry(3)
    stage.engine.alive = False
    stage.carry(1)
    assert stage.engine.restarts == ["its JVM is gone"]
    assert len(stage.engine.begun) == 2


def test_jobs_that_fail_at_once_are_tried_again_ever_more_slowly(stage: Stage) -> None:
    stage.engine.outcome = lambda epoch: EpochOutcome(epoch, failure="no executor")
    stage.carry(200)
    gaps = [later - sooner for sooner, later in zip(stage.begun(), stage.begun()[1:], strict=False)]
    assert gaps == sorted(gaps)
    assert gaps[0] < 1
    assert 4.9 <= gaps[-1] <= 5.6
    stage.engine.outcome = None
    stage.carry(30)
    assert len(stage.engine.running) >= 2


def test_epochs_that_ended_are_not_kept(stage: Stage) -> None:
    """A run lasts for months: what ended must be forgotten, also if it ended while the next one ran."""
    seen: list[weakref.ref[EpochOutcome]] = []
    stage.carry(1)
    finish = stage.engine._end

    def noted(ending: asyncio.Future[EpochOutcome], outcome: EpochOutcome) -> None:
        seen.append(weakref.ref(outcome))
        finish(ending, outcome)

    stage.engine._end = noted  # type: ignore[method-assign]  # only to see the outcomes
    stage.carry(200)
    stage.engine.running.clear()
    gc.collect()
    assert len(seen) > 10
    assert sum(ref() is not None for ref in seen) <= 3


def test_stop_tells_every_task_and_waits_for_the_jobs(stage: Stage) -> None:
    stage.carry(1)
    line = FakeLine()
    task = asyncio.Task(stage.conductor.handle(cast(Line, line)), loop=stage.loop)
    line.hears({"kind": "hello", "token": "token", "epoch": 1, "slot": 0, "attempt": "x", "process": 1})
    stage.carry(0.1)
    stage.loop.call_later(0.3, stage.engine.end_all)
    before = stage.loop.time()
    assert stage.do(stage.epochs.stop(6)) is True
    assert stage.loop.time() - before < 1
    assert line.said("stop")
    line.hears(None)
    stage.do(asyncio.wait({task}))


def test_a_job_that_does_not_end_in_time_is_given_up(stage: Stage) -> None:
    stage.carry(1)
    before = stage.loop.time()
    assert stage.do(stage.epochs.stop(6)) is False
    assert 6 <= stage.loop.time() - before < 7


def test_after_a_stop_no_epoch_begins(stage: Stage) -> None:
    stage.carry(1)
    stage.loop.call_later(0.1, stage.engine.end_all)
    stage.do(stage.epochs.stop(6))
    stage.carry(100)
    assert len(stage.engine.begun) == 1
