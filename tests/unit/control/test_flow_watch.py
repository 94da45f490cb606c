"""One flow under watch: when its tasks must be told of a new plan, and whose turn it is to carry it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from heliograph.config.load import load
from heliograph.control import flow_watch, looks
from heliograph.control.flow_watch import FlowWatch, Runner, _shape
from heliograph.control.opening import OpenedFlow
from heliograph.control.planner import FlowPlan
from heliograph.control.tenure import Tenure
from heliograph.errors import SetupError
from heliograph.kafka.slot import Warm
from heliograph.model.lanes import Identity, Lane, LaneId, LedgerEntry, Rule

SETTINGS = load(
    "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n", "mm2.properties"
)
LANE = Lane(LaneId("A->B", "orders", 0), "A", "B", "A.orders", "s", "t")
ENTRY = LedgerEntry(LANE.id, 3, Identity(1, 0), Rule("read_committed"), "c", "s", "t", 0, 0, 500, 0, 500, 500, 0)


def opened(reason: str = "", generation: int = 3, **changes: Any) -> OpenedFlow:
    plan = cast(FlowPlan, FakePlan((LANE,)))
    entries = {LANE.id.key: replace(ENTRY, generation=generation)}
    found = OpenedFlow(plan, entries, {"A->B/orders/1": reason} if reason else {})
    return replace(found, **changes)


class FakePlan:
    only: frozenset[str] | None = None

    def __init__(self, lanes: tuple[Lane, ...]) -> None:
        self.lanes = lanes
        self.unmade: dict[str, str] = {}
        self.ends = {("orders", 0): 500, ("orders", 1): 10}


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_watch, "flow_rules", lambda _: "rules")


def test_another_reason_or_another_generation_is_no_reason_for_the_next_epoch() -> None:
    assert _shape(opened("ends at 100")) == _shape(opened("ends at 101", generation=4))


def test_a_lane_that_is_refused_or_not_any_more_is_one() -> None:
    assert _shape(opened("ends at 100")) != _shape(opened())
    assert _shape(opened()) != _shape(opened(entries={}))


class FakeTenure:
    other = carrier = None
    waiting: tuple[()] = ()
    is_mine = may_work = is_cut_off = False
    may_carry = True


class Book:
    def __init__(self, *entries: LedgerEntry) -> None:
        self._entries = {entry.lane: entry for entry in entries}

    def latest(self, lane: LaneId) -> LedgerEntry | None:
        return self._entries.get(lane)


class FakeWarm:
    book = Book(ENTRY)

    def ledger(self, _: object) -> FakeWarm:
        return self


def watch_of(changes: list[str]) -> tuple[FlowWatch, FakeTenure]:
    me = Runner("here", 1, "run", 0)
    warm = cast(Warm, FakeWarm())
    watch = FlowWatch(SETTINGS.flows[0], SETTINGS.engine, warm, me, lambda: changes.append("changed"), lambda _: None)
    tenure = FakeTenure()
    watch.turns.tenure = cast(Tenure, tenure)
    return watch, tenure


def test_a_run_lets_go_of_its_lanes_when_it_is_another_ones_turn_and_opens_them_when_it_is_its_own() -> None:
    async def scenario() -> None:
        changes: list[str] = []
        watch, tenure = watch_of(changes)
        watch.opened = opened()
        watch.take_turns()
        assert (watch.standing_by, changes) == (False, [])
        tenure.may_carry = False
        watch.take_turns()
        watch.take_turns()
        assert (watch.standing_by, watch.opened, changes) == (True, None, ["changed"])
        assert watch.reached() == {"A->B/orders/0"}, "what the other run has copied meanwhile; orders-1 it has not"
        tenure.may_carry = True
        watch.take_turns()
        assert await is_asked(watch)
        watch.take_turns()
        assert not await is_asked(watch), "once is enough"
        watch.close()

    asyncio.run(scenario())


async def is_asked(watch: FlowWatch) -> bool:
    """Whether a look is due now."""
    try:
        async with asyncio.timeout(0.05):
            await watch.looks.wait(3600)
    except TimeoutError:
        return False
    return True


def test_parked_and_refused_lanes_have_their_topics_looked_at_more_and_more_seldom() -> None:
    async def scenario() -> None:
        watch, _ = watch_of([])
        watch.opened = opened("no permission")
        asked = []
        for second in range(300):
            watch._clock = cast(Any, At(float(second)))
            watch.look_at_parked(["A->B/clicks/0"])
            if watch.looks._soon.is_set():
                asked.append(await watch.looks.wait(0))
        assert asked == [{"orders", "clicks"}] * 8
        watch.close()

    asyncio.run(scenario())


def test_a_flow_in_trouble_or_with_other_settings_is_looked_at_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        watch, _ = watch_of([])
        asked: list[frozenset[str] | None] = []
        looked = asyncio.Event()

        async def look(topics: frozenset[str] | None) -> None:
            asked.append(topics)
            looked.set()

        monkeypatch.setattr(watch, "_look_again", look)
        monkeypatch.setattr(looks, "_LOOK_AGAIN_SECONDS", 0.01)
        watch.opened = opened()
        watching = asyncio.create_task(watch.watch())
        for number, prepare in enumerate(
            (lambda: None, lambda: watch.adopt(watch.settings), lambda: watch.fail(SetupError("x")))
        ):
            await asyncio.sleep(0)
            prepare()
            watch.look_at_parked([f"A->B/orders/{number}"])
            await looked.wait()
            looked.clear()
        assert asked == [{"orders"}, None, None]
        watching.cancel()
        watch.close()

    asyncio.run(scenario())


def test_a_look_at_some_topics_of_a_flow_that_is_let_go_meanwhile_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        watch, _ = watch_of([])
        plan = cast(Any, FakePlan((LANE,)))
        plan.only, plan.actions, plan.within = frozenset({"orders"}), (), set

        async def yes(*_: object) -> Any:
            return opened()

        monkeypatch.setattr(watch.turns, "may_begin", yes)
        monkeypatch.setattr(watch.turns, "join", yes)
        monkeypatch.setattr(watch.owners, "settle", lambda plan: plan)
        monkeypatch.setattr(watch.planner, "apply", lambda plan: plan)
        monkeypatch.setattr(flow_watch, "open_lanes", yes)
        await watch.open(plan)
        assert watch.opened is None
        assert await is_asked(watch)
        watch.close()

    asyncio.run(scenario())


class At:
    def __init__(self, now: float) -> None:
        self._now = now

    def monotonic(self) -> float:
        return self._now
