"""What a lane does when its source refuses the place it reads: nothing is asked again without a pause."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from heliograph.kafka.client import EARLIEST
from heliograph.kafka.lane import Failure
from heliograph.kafka.remedies import Remedies
from tests.unit.kafka.lanes import NOW, OLD, entry, following, push, start

REFUSED = Failure(1, "orders-3: OFFSET_OUT_OF_RANGE", finding="source_range")


class Stage:
    """A lane's life and its policies, which write down what is asked of them."""

    def __init__(self, begins: int | None, ends: int | None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.run = following()
        self.rules = SimpleNamespace(source="A")
        self.slot = SimpleNamespace(
            warm=SimpleNamespace(client=lambda _: self),
            plan=SimpleNamespace(clusters={"A": None}, settings=SimpleNamespace(takeover_wait_s=90.0)),
        )
        self._spans = (begins, ends)

    async def offsets(self, _: int, names: list[tuple[str, int]], which: int) -> dict[tuple[str, int], int]:
        found = self._spans[0 if which == EARLIEST else 1]
        return {} if found is None else {names[0]: found}

    async def pause(self, state: object, reason: str, soon: bool = False, seconds: float | None = None) -> None:
        self.calls.append(("pause", reason, soon) if seconds is None else ("wait", seconds))

    async def park(self, _: object, reason: str) -> None:
        self.calls.append(("park", reason))

    async def data_lost(self, _: object, position: int, begins: int) -> None:
        self.calls.append(("data lost", position, begins))

    async def source_short(self, *found: int) -> None:
        self.calls.append(("source short", *found))

    async def carry_out(self, steps: Any, _: str) -> None:
        await steps

    def moved_on(self) -> None:
        """Pauses begin small again."""

    def must_be_alone(self) -> None:
        self.calls.append(("must be alone",))

    def react(self, times: int = 1, failure: Failure = REFUSED) -> list[tuple[Any, ...]]:
        remedies = Remedies(self, self)  # type: ignore[arg-type]  # stands in for both
        for _ in range(times):
            asyncio.run(remedies.react(failure))
        return self.calls


def test_a_refused_place_that_the_source_has_is_asked_for_again_after_a_pause() -> None:
    """L1: it came round in a hot loop."""
    calls = Stage(50, 200).react(times=3)
    assert [(kind, soon) for kind, _, soon in calls] == [("pause", True), ("pause", False), ("pause", False)]
    assert "it has 50 to 200 and the lane is at 100" in calls[0][1]


@pytest.mark.parametrize(
    ("begins", "ends", "call"),
    [
        (130, 200, ("data lost", 100, 130)),
        (0, 90, ("source short", 100, 90, 0)),
        (None, 200, ("pause", REFUSED.message, False)),
        (0, None, ("pause", REFUSED.message, False)),
    ],
)
def test_a_place_that_the_source_has_not_is_for_the_policies(
    begins: int | None, ends: int | None, call: tuple[Any, ...]
) -> None:
    assert Stage(begins, ends).react() == [call]


@pytest.mark.parametrize("code", [-1, 2, 56])
def test_a_source_that_cannot_read_its_disk_is_left_ten_times_to_another_replica_and_then_parks(code: int) -> None:
    """L2: it parked with an alarm at once, and paused for up to a minute."""
    calls = Stage(0, 200).react(times=12, failure=Failure(code, "reading orders-3: KAFKA_STORAGE_ERROR", "source"))
    assert [call[0] for call in calls] == [*["pause"] * 10, "park", "park"]
    assert [call[2] for call in calls[:5]] == [True, True, True, False, False]


@pytest.mark.parametrize("finding", ["revoked", "unguarded", "source_cut", "source_replaced", ""])
@pytest.mark.parametrize(("stamp", "waits"), [(OLD, True), (NOW, False)])
def test_what_was_sent_unguarded_and_not_answered_is_waited_out_whatever_stopped_the_lane(
    finding: str, stamp: int, waits: bool
) -> None:
    """M3: the connection may end after the lane stopped for another reason, and the request still land."""
    stage = Stage(0, 200)
    stage.run.begin(replace(start(entry()), last_timestamp=NOW), NOW)
    push(stage.run, max_timestamp=stamp)
    stage.run.take(NOW)
    if finding:
        stage.run.fail(Failure(None, "stopped", finding=finding))
    stage.run.connection_ended("broker 1: closed")
    assert stage.run.failure is not None
    if waits:
        assert stage.react(failure=stage.run.failure) == [("wait", 90.0)]
    elif finding != "source_cut":
        assert ("wait", 90.0) not in stage.react(failure=stage.run.failure)
