"""A task on an executor: what ends it besides its lanes."""

from __future__ import annotations

import asyncio
import logging
import pickle
import time
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

import pytest

from heliograph.kafka.slot import SlotPlan, SlotSettings, Warm
from heliograph.model.clusters import Cluster
from heliograph.spark import carry
from heliograph.spark.carry import Order, Task, until_carried


class Slot:
    """Carries until it is told to stop."""

    def __init__(self) -> None:
        self.stopped = asyncio.Event()
        self.ended = False

    async def run(self) -> None:
        await self.stopped.wait()
        self.ended = True


async def forever() -> None:
    await asyncio.Event().wait()


async def dies() -> None:
    await asyncio.sleep(0)
    raise KeyError("entries")


async def ends() -> None:
    """As the one that hears the driver does when the line ends."""


def carried(slot: Slot, *helpers: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
    tasks = [asyncio.create_task(one) for one in helpers]
    return until_carried(asyncio.create_task(slot.run()), tasks, slot.stopped.set)


def test_a_helper_that_dies_ends_the_task_with_its_error_once_the_lanes_are_drained(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        slot = Slot()
        with pytest.raises(KeyError, match="entries"):
            await carried(slot, forever(), dies(), ends())
        assert slot.ended

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_a_helper_that_ends_leaves_the_lanes_alone() -> None:
    async def story() -> None:
        slot = Slot()
        task = asyncio.create_task(carried(slot, ends()))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not task.done()
        slot.stopped.set()
        await task

    asyncio.run(story())


def test_a_task_that_is_cancelled_takes_its_slot_along() -> None:
    async def story() -> None:
        slot = Slot()
        task = asyncio.create_task(carried(slot, forever()))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not slot.ended and len(others) == 1, "the slot was cancelled, the helper is the caller's"

    asyncio.run(story())


class Idle:
    """A slot without lanes, in place of the real one."""

    made: ClassVar[list[Idle]] = []

    def __init__(self, *_: object) -> None:
        self.lives: dict[str, object] = {}
        self.ended: list[str] = []
        self.began: list[str] = []
        self.ending = asyncio.Event()
        self.in_touch: Callable[[], bool] = lambda: True
        Idle.made.append(self)

    def go(self, *_: object) -> None:
        """Its lanes have no other carrier."""

    def stop(self) -> None:
        """Drain."""

    async def run(self) -> None:
        """All lanes are done."""


def order(alias: str, wait_s: float) -> Order:
    plan = SlotPlan((), {}, {alias: Cluster(alias, ("a:1",))}, {}, SlotSettings(takeover_wait_s=wait_s))
    return Order(1, 0, 60.0, "127.0.0.1", 1, "token", plan)


def test_clients_of_clusters_that_an_order_does_not_know_any_more_are_closed_before_its_task_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """L11: they stayed open."""
    monkeypatch.setattr(carry, "Slot", Idle)
    mine = carry._Process()
    monkeypatch.setattr(carry, "_process", mine)
    before = mine.warm.client(Cluster("A", ("old:1",)))
    assert len(list(carry.run_orders([pickle.dumps(order("A", 90.0))]))) == 1
    assert before._closed
    mine.loop.close()


@pytest.mark.parametrize(("wait_s", "quiet"), [(90.0, 10.0), (15.0, 5.0)])
def test_a_task_counts_on_what_the_driver_said_for_a_part_of_the_take_over_wait(
    wait_s: float, quiet: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L12, M10: ten seconds without a word are too many where the next attempt waits for fifteen."""
    monkeypatch.setattr(carry, "Slot", Idle)
    task = Task(order("A", wait_s), Warm())
    asyncio.run(task.run())
    slot = Idle.made[-1]
    heard = task._heard = time.monotonic()
    monkeypatch.setattr(carry.time, "monotonic", lambda: heard + quiet - 0.1)
    assert slot.in_touch()
    monkeypatch.setattr(carry.time, "monotonic", lambda: heard + quiet + 0.1)
    assert not slot.in_touch()
