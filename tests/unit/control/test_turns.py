"""Whose turn it is: that a hold is lost is noticed and told, whatever it was lost by, and who carries a flow is named."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from heliograph.control import turns
from heliograph.control.clock import Clock
from heliograph.control.tenure import Tenure
from heliograph.control.turns import Turns
from heliograph.kafka.ledger import Ledger
from heliograph.model.events import Event, EventKind
from heliograph.replication.generations import Holder
from heliograph.replication.standbys import Standby
from tests.unit.control.test_tenure import MemoryLedger

ME = Holder("A->B", "here", 1, "mine", 0, 0, released=False)
OTHER = Holder("A->B", "north", 7, "other", 0, 0, released=False, held=True)
SILENT = 7.0


class FakeTenure:
    """A hold that a test gives and takes; the target never answers."""

    renew_s = 0.001
    silence_s = SILENT

    def __init__(self) -> None:
        self.is_mine = self.may_work = self.may_carry = True
        self.is_cut_off = False
        self.other: Holder | None = None
        self.waiting: list[Standby] = []
        self.left: list[str] = []

    @property
    def carrier(self) -> Holder | None:
        return self.other

    async def renew(self) -> None:
        await asyncio.sleep(3600)

    async def release(self) -> None:
        self.left.append("released")

    async def withdraw(self) -> None:
        self.left.append("withdrawn")


class Scene:
    def __init__(self) -> None:
        self.told: list[Event] = []
        self.tenure = FakeTenure()
        self.lost = self.looks = 0
        self.turns = Turns(ME, 90.0, Clock(), self.told.append)
        self.turns.tenure = cast(Tenure, self.tenure)

    def on_lost(self) -> None:
        self.lost += 1

    def look(self) -> None:
        self.looks += 1

    @property
    def kinds(self) -> list[EventKind]:
        return [event.kind for event in self.told]


def with_turns(monkeypatch: pytest.MonkeyPatch, scenario: Callable[[Scene], Awaitable[None]]) -> None:
    monkeypatch.setattr(turns, "_NOTICE_SECONDS", 0.001)

    async def life() -> None:
        scene = Scene()
        kept = [
            asyncio.create_task(scene.turns.keep()),
            asyncio.create_task(scene.turns.notice(scene.on_lost, scene.look)),
        ]
        try:
            async with asyncio.timeout(10):
                await until(lambda: scene.looks > 0)
                await scenario(scene)
        finally:
            for task in kept:
                task.cancel()
            await asyncio.gather(*kept, return_exceptions=True)

    asyncio.run(life())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_a_hold_that_runs_out_while_nothing_answers_is_told_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(scene: Scene) -> None:
        assert scene.lost == 0
        scene.tenure.is_mine = False
        await until(lambda: scene.lost > 0)
        await asyncio.sleep(0.02)
        assert (scene.lost, scene.kinds) == (1, [EventKind.TROUBLE])
        assert "could not be renewed" in scene.told[0].reason
        scene.tenure.is_mine = True
        await until(lambda: len(scene.told) > 1)
        assert scene.kinds[1:] == [EventKind.RECOVERED]
        scene.tenure.is_mine = False
        await until(lambda: scene.lost > 1)

    with_turns(monkeypatch, scenario)


def test_who_took_the_flow_over_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(scene: Scene) -> None:
        scene.tenure.is_mine, scene.tenure.other = False, OTHER
        await until(lambda: scene.lost > 0)
        assert (scene.kinds, scene.told[0].reason) == (
            [EventKind.TAKEN_OVER],
            "process 7 on north took the flow over",
        )

    with_turns(monkeypatch, scenario)


def test_who_stands_by_says_for_whom_and_when_it_takes_over(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.tenure.other, scene.tenure.may_carry = OTHER, False
    with caplog.at_level("INFO"):
        scene.turns.stand_by()
        scene.turns.stand_by()
    (record,) = caplog.records
    assert record.message == (
        "A->B is carried by north, process 7, since 1970-01-01 00:00:00 UTC; this run stands by and takes over when that one "
        "is not heard for 7 s (lanes that the target does not guard: 90 s)"
    )
    assert scene.turns.view()["carried_by"] == {"host": "north", "process": 7, "since_ms": 0}
    scene.turns.take_over()
    scene.turns.take_over()
    assert [event.reason for event in scene.told] == [
        "this run carries the flow: process 7 on north is not heard any more"
    ]


def test_a_run_that_lets_go_because_it_cannot_renew_says_so() -> None:
    scene = Scene()
    scene.tenure.other, scene.tenure.is_cut_off = OTHER, True
    scene.turns.stand_by()
    assert "cannot say that it holds the flow" in scene.turns.sentence()
    scene.tenure.other, scene.tenure.is_cut_off = None, False
    scene.tenure.waiting = [Standby("two", "south", 9, 5, 6)]
    scene.turns.take_over()
    assert scene.told[0].reason == "this run carries the flow: no other run holds it"
    assert scene.turns.view() == {
        "standing_by": False,
        "carried_by": None,
        "standbys": [{"host": "south", "process": 9, "since_ms": 5}],
    }


def test_a_free_flow_may_begin_before_anything_is_claimed_and_one_that_is_held_is_waited_for() -> None:
    async def scenario() -> None:
        log: list[tuple[str, bytes | None]] = []
        first, second = (Turns(me, 90.0, Clock(), lambda _: None) for me in (ME, OTHER))
        ledger = cast(Ledger, ReadableLedger(log))
        assert await first.may_begin(ledger)
        assert (first.tenure, log) == (None, [])
        assert await first.join(ledger)
        assert first.is_mine and first.may_work
        assert not await second.may_begin(ledger)
        assert second.tenure is not None and second.tenure.other is not None
        assert not await second.may_begin(ledger)
        await second.leave()
        await first.leave()
        third = Turns(OTHER, 90.0, Clock(), lambda _: None)
        assert await third.may_begin(ledger)

    asyncio.run(scenario())


class ReadableLedger(MemoryLedger):
    async def refresh_if_there(self) -> object:
        return await self.refresh()


def test_nobody_leaves_what_it_never_joined() -> None:
    async def scenario() -> None:
        turns_of_nobody = Turns(ME, 90.0, Clock(), lambda _: None)
        await turns_of_nobody.hold()
        await turns_of_nobody.leave()
        assert not turns_of_nobody.is_mine and not turns_of_nobody.may_work
        assert turns_of_nobody.view() == {"standing_by": False, "carried_by": None, "standbys": []}

    asyncio.run(scenario())


def test_what_another_run_carries_is_changed_there() -> None:
    scene = Scene()
    assert scene.turns.refusal == ""
    scene.tenure.other, scene.tenure.may_carry = OTHER, False
    scene.turns.stand_by()
    assert scene.turns.refusal == (
        "A->B is carried by north, process 7, since 1970-01-01 00:00:00 UTC; this run stands by: make the change there"
    )
    scene.tenure.is_cut_off = True
    assert "cannot say that it holds the flow" in scene.turns.refusal
