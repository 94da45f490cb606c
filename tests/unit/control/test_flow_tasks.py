"""Tasks of flows: begun and ended together; none fails unnoticed."""

from __future__ import annotations

import asyncio

import pytest

from heliograph.control.flow_tasks import FlowTasks


class Work:
    """Runs until it is told how to end, and says how it ended."""

    def __init__(self) -> None:
        self.told = asyncio.Event()
        self.error: Exception | None = None
        self.ended = ""

    async def run(self) -> None:
        try:
            await self.told.wait()
            if self.error is not None:
                raise self.error
            self.ended = "by itself"
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_part_of_a_flow_ends_alone_and_a_flow_with_all_its_parts() -> None:
    async def play() -> None:
        tasks, work = FlowTasks(), {name: Work() for name in ("watch", "jobs", "other")}
        tasks.begin("A->B", "watch", [work["watch"].run()])
        tasks.begin("A->B", "jobs", [work["jobs"].run()])
        tasks.begin("B->A", "watch", [work["other"].run()])
        await settle()
        await tasks.end("A->B", "jobs")
        assert [one.ended for one in work.values()] == ["", "cancelled", ""]
        await tasks.end("A->B")
        assert [one.ended for one in work.values()] == ["cancelled", "cancelled", ""]
        await tasks.end_all()
        assert work["other"].ended == "cancelled"

    asyncio.run(play())


def test_a_failure_is_noticed_also_of_work_that_began_later_and_an_end_is_none() -> None:
    async def play() -> None:
        tasks, ends, fails = FlowTasks(), Work(), Work()
        fails.error = ValueError("broken")
        supervising = asyncio.create_task(tasks.supervise())
        await settle()
        tasks.begin("A->B", "jobs", [ends.run()])
        tasks.begin("B->A", "jobs", [fails.run()])
        await settle()
        ends.told.set()
        await settle()
        assert ends.ended == "by itself"
        assert not supervising.done()
        fails.told.set()
        with pytest.raises(ValueError, match="broken"):
            await supervising
        await tasks.end_all()

    asyncio.run(play())


def test_what_was_ended_is_no_failure() -> None:
    async def play() -> None:
        tasks, work = FlowTasks(), Work()
        tasks.begin("A->B", "jobs", [work.run()])
        supervising = asyncio.create_task(tasks.supervise())
        await settle()
        await tasks.end("A->B")
        await settle()
        assert not supervising.done()
        supervising.cancel()

    asyncio.run(play())
