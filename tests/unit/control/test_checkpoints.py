"""What the job of checkpoints shows of groups, without a broker; what it writes is in tests/integration/test_checkpoints.py."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from heliograph.config.load import load
from heliograph.control.checkpoints import CheckpointJob
from heliograph.control.clock import Clock
from heliograph.control.group_positions import GroupPositions, Look
from heliograph.kafka.slot import Warm
from heliograph.replication.group_positions import Pair, Placed

FLOW = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"


class Groups:
    """One group, which commits more with every look."""

    def __init__(self) -> None:
        self.committed = 0

    async def look(self) -> Look:
        self.committed += 1
        pair = Pair(self.committed, self.committed)
        return Look([Placed("billing", "orders", "A.orders", 0, self.committed, "", pair)], [])


class Job(CheckpointJob):
    """With an empty topic."""

    async def _read_on(self) -> bool:
        return True


def test_groups_are_shown_as_the_last_turn_found_them_and_made_once_for_each() -> None:
    warm = Warm()
    (settings,) = load(FLOW, "mm2.properties").flows
    job = Job(settings, cast(GroupPositions, Groups()), warm, Clock(), lambda _: None)

    async def after_a_look() -> list[dict[str, Any]]:
        await job.look()
        return job.groups()

    assert job.groups() == []
    first = asyncio.run(after_a_look())
    assert [(row["group"], row["topic"], row["committed"]) for row in first] == [("billing", "orders", 1)]
    assert job.groups() is first
    assert [row["committed"] for row in asyncio.run(after_a_look())] == [2]
    warm.close()
