"""What the demo waits for at its end: that B has all records, except where somebody paused their topic."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from heliograph.cli import demo
from heliograph.control.replicate import Replicator
from heliograph.embedded.traffic import Traffic
from heliograph.errors import ClusterUnreachable
from heliograph.kafka.client import Leader, TopicView
from heliograph.model.holds import Hold, HoldKind


def said(monkeypatch: pytest.MonkeyPatch, looks: Sequence[Mapping[str, int]], *paused: str) -> str:
    """What it says when B lacks this much, look after look, while these topics are paused (empty: the flow)."""
    left = list(looks)

    async def missing(*_: object) -> Mapping[str, int]:
        return left.pop(0)

    holds = [Hold("A->B", topic, -1, HoldKind.PAUSE, "a test", "ann", 1) for topic in paused]
    replicator = SimpleNamespace(steering=SimpleNamespace(amended=SimpleNamespace(holds=holds)))
    monkeypatch.setattr(demo, "_missing", missing)
    monkeypatch.setattr(demo, "_LOOK_SECONDS", 0.0)

    async def run() -> str:
        running: asyncio.Task[Any] = asyncio.create_task(asyncio.sleep(60))
        try:
            return await demo._catch_up(cast(Replicator, replicator), cast(Traffic, None), running)
        finally:
            running.cancel()

    found = asyncio.run(run())
    assert left == [], "it waited no longer than it had to"
    return found


def test_it_waits_until_everything_is_there_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, [{"orders": 9, "clicks": 1}, {"orders": 3}, {}]) == ""


def test_it_does_not_wait_for_what_is_paused_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [{"orders": 1_200, "clicks": 4}, {"orders": 1_200}]
    assert said(monkeypatch, looks, "orders") == (
        "B does not have 1,200 records of A: A->B/orders is paused by ann: a test"
    )
    assert said(monkeypatch, looks[:1], "") == "B does not have 1,204 records of A: A->B is paused by ann: a test"
    assert said(monkeypatch, [{}], "orders") == ""


def test_after_a_while_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_CATCH_UP_SECONDS", -1)
    assert said(monkeypatch, [{"orders": 1}]) == "B does not have 1 record of A: after -1 s"


def test_a_mirror_that_ended_by_itself_is_not_waited_for() -> None:
    async def run() -> str:
        running: asyncio.Task[Any] = asyncio.create_task(asyncio.sleep(0))
        await running
        return await demo._catch_up(cast(Replicator, None), cast(Traffic, None), running)

    assert asyncio.run(run()) == ""


class Target:
    """Cluster B: the ends of its topics, by partition; None while it does not answer."""

    def __init__(self, ends: dict[str, tuple[int, ...]] | None) -> None:
        self._ends = ends

    def client(self, _: object) -> Target:
        return self

    async def metadata(self, topics: Iterable[str]) -> dict[str, TopicView]:
        if self._ends is None:
            raise ClusterUnreachable("gone")
        return {name: self._view(name) for name in topics}

    def _view(self, name: str) -> TopicView:
        found = (self._ends or {}).get(name)
        return TopicView("", {}, 3) if found is None else TopicView("t", {n: Leader(1, 0) for n in range(len(found))})

    async def offsets(self, node: int, names: Iterable[tuple[str, int]], *_: object) -> dict[tuple[str, int], int]:
        assert node == 1
        return {(name, partition): (self._ends or {})[name][partition] for name, partition in names}


WRITTEN = {"orders": 30, "clicks": 5}


@pytest.mark.parametrize(
    ("ends", "missing"),
    [
        ({"A.orders": (20, 10), "A.clicks": (5,)}, {}),
        ({"A.orders": (20, 9), "A.clicks": (5,)}, {"orders": 1}),
        ({"A.orders": (20, 10)}, {"clicks": 5}),
        (None, WRITTEN),
    ],
    ids=["all is there", "one record is not", "a topic is not made yet", "B does not answer"],
)
def test_what_is_missing_is_counted_on_the_target(ends: dict[str, tuple[int, ...]] | None, missing: object) -> None:
    settings = SimpleNamespace(flows=[SimpleNamespace(target="B")])
    replicator = cast(Replicator, SimpleNamespace(warm=Target(ends), settings=settings))
    traffic = cast(Traffic, SimpleNamespace(written=WRITTEN))
    assert asyncio.run(demo._missing(replicator, traffic)) == missing
