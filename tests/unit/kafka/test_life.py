"""What a lane's life believes of other attempts. Its whole course is shown on brokers (tests/integration/protocol)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from heliograph.errors import ConnectionLost
from heliograph.kafka.life import LaneLife
from tests.unit.kafka.lanes import following


def test_a_task_that_was_not_told_anything_for_a_while_does_not_believe_that_it_is_alone() -> None:
    """L12: frozen, it woke up and sent its whole queue before it heard what had happened meanwhile."""
    in_touch = True
    slot: Any = SimpleNamespace(
        plan=SimpleNamespace(settings=SimpleNamespace(retry_ms=100)), in_touch=lambda: in_touch, news=set()
    )
    rules: Any = SimpleNamespace(policies=SimpleNamespace(foreign_writer="continue"))
    run = following()
    life = LaneLife(slot, run, cast(Any, rules))
    assert not run.is_alone()
    life.allow(held=True, alone=True, entry=None)
    assert run.is_alone()
    in_touch = False
    assert not run.is_alone()
    in_touch = True
    assert run.is_alone()
    life.revoke()
    assert not run.is_alone()


def test_a_lane_that_attaches_again_shows_why_until_it_follows() -> None:
    settings = SimpleNamespace(retry_ms=1, retry_max_ms=1)
    slot: Any = SimpleNamespace(plan=SimpleNamespace(settings=settings), in_touch=lambda: True, news=set())
    rules: Any = SimpleNamespace(policies=SimpleNamespace(foreign_writer="continue"), flow="A->B")
    run = following()
    life = LaneLife(slot, run, cast(Any, rules))
    shown: list[tuple[str, str]] = []

    async def position() -> Any:
        shown.append((run.state.value, run.reason))
        raise ConnectionLost("127.0.0.1:9092: closed by the broker")

    life.generation = cast(Any, SimpleNamespace(position=position))
    for _ in range(2):
        asyncio.run(life._attach())
    assert shown == [("attaching", ""), ("attaching", "127.0.0.1:9092: closed by the broker")]
