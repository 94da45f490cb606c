"""The flows of a run: what counts once in it, what refuses a change, and what begins in trouble and is tried again."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import cast

import pytest

from heliograph.config.changes import Changes
from heliograph.config.load import load
from heliograph.control import flow_set
from heliograph.control.conductor import Conductor
from heliograph.control.events import EventLog
from heliograph.control.flow_set import FlowSet, Manner
from heliograph.control.flow_watch import FlowWatch, Runner
from heliograph.control.planner import FlowPlan
from heliograph.control.tenure import Tenure
from heliograph.errors import SetupError
from heliograph.kafka.slot import Warm
from tests.unit.control.test_turns import FakeTenure

NOWHERE = "127.0.0.1:1"


def file(source: str = NOWHERE) -> str:
    return f"clusters = A, B\nA.bootstrap.servers = {source}\nB.bootstrap.servers = {NOWHERE}\nA->B.enabled = true\n"


FLOWS = load(file(), "mm2.properties").flows


def with_flows(scenario: Callable[[FlowSet], Awaitable[None]], text: str = "") -> None:
    """A set of flows whose clusters are nowhere, ended in good order."""
    settings = load(text or file(), "mm2.properties")

    async def life() -> None:
        warm = Warm()
        manner = Manner(settings.engine, Runner("here", 1, "run", 0), reset=True, until_caught_up=False)
        flows = FlowSet(settings.flows if text else (), manner, warm, EventLog(warm, {}, lambda: 0), lambda: None)
        try:
            await scenario(flows)
        finally:
            await flows.tasks.end_all()
            for watch in flows.watches:
                watch.close()
            warm.close()

    asyncio.run(life())


def test_a_flow_that_ends_and_begins_anew_in_a_run_with_reset_is_not_copied_a_third_time() -> None:
    async def scenario(flows: FlowSet) -> None:
        found = [watch.reset for watch in flows.watches]
        await flows.carry_out(await flows.prepare(Changes(removed=("A->B",))))
        await flows.carry_out(await flows.prepare(Changes(added=FLOWS)))
        assert [*found, *(watch.reset for watch in flows.watches)] == [True, False]

    with_flows(scenario, file())


def test_clusters_that_do_not_answer_refuse_nothing_and_nobody_waits_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_set, "_PATIENCE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        added = load(file(f"127.0.0.1:{silent.getsockname()[1]}"), "mm2.properties").flows

        async def scenario(flows: FlowSet) -> None:
            prepared = await flows.prepare(Changes(added=added))
            assert not any(look.done() for look in prepared.looks.values()), "it is asked on"
            await flows.carry_out(prepared)
            (watch,) = flows.watches
            assert (watch.opened, "its clusters have not answered yet" in watch.trouble) == (None, True)

        with_flows(scenario)


def test_what_refuses_a_new_flow_is_the_trouble_of_one_that_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    async def refused(watch: FlowWatch, _: object = None) -> FlowPlan:
        looks.append(watch.name)
        raise SetupError("a MirrorMaker 2 copies it")

    monkeypatch.setattr(FlowWatch, "discover", refused)

    async def scenario(flows: FlowSet) -> None:
        with pytest.raises(SetupError):
            await flows.prepare(Changes(added=FLOWS))
        assert flows.watches == []
        await flows.carry_out(await flows.prepare(Changes(added=FLOWS), patient={"A->B"}))
        (watch,) = flows.watches
        assert watch.trouble == "a MirrorMaker 2 copies it"
        watch.looks.now()
        while len(looks) < 3:  # it is tried again by itself, and at once if somebody asks
            await asyncio.sleep(0.01)

    with_flows(scenario)


def test_at_the_start_the_files_flow_is_refused_and_a_connectors_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(_: FlowWatch, topics: object = None) -> FlowPlan:
        raise SetupError("a MirrorMaker 2 copies it")

    async def faulty(_: FlowWatch, topics: object = None) -> FlowPlan:
        raise ZeroDivisionError

    async def scenario(flows: FlowSet) -> None:
        monkeypatch.setattr(FlowWatch, "discover", refused)
        with pytest.raises(SetupError):
            await flows.plan()
        assert await flows.plan(patient={"A->B"}) == []
        assert flows.watches[0].trouble == "a MirrorMaker 2 copies it"
        monkeypatch.setattr(FlowWatch, "discover", faulty)
        with pytest.raises(ZeroDivisionError):  # a fault of our own is nobody's trouble
            await flows.plan(patient={"A->B"})

    with_flows(scenario, file())


@pytest.mark.parametrize("in_order", [True, False])
def test_a_run_says_that_it_left_in_good_order_only_if_nothing_is_on_its_way(
    in_order: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """M4: it always did."""
    hold = FakeTenure()

    async def scenario(flows: FlowSet) -> None:
        (watch,) = flows.watches
        watch.turns.tenure = cast(Tenure, hold)
        flows.conductor = cast(Conductor, SimpleNamespace(is_in_order=lambda flow: in_order and flow == "A->B"))
        await flows.leave(watch)

    with_flows(scenario, file())
    assert hold.left == (["released", "withdrawn"] if in_order else [])
    assert ("the next run waits up to 90 s" in caplog.text) is not in_order
