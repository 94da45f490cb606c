"""Holding a flow, on a ledger in memory: never two at once, whatever the order of their steps."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Iterable
from typing import Any, cast

import pytest

from heliograph.control.tenure import Tenure
from heliograph.kafka.ledger import Ledger
from heliograph.replication.generations import Holder, LedgerBook, LedgerKey
from tests.unit.control.fakes import FakeClock

WAIT = 90.0
FLOW = "A->B"


class MemoryLedger:
    """One log for all; every reader folds it into a book of its own, as processes do. Each call yields once."""

    def __init__(self, log: list[tuple[str, bytes | None]]) -> None:
        self.log = log

    async def refresh(self) -> LedgerBook:
        await asyncio.sleep(0)
        return folded(self.log)

    async def write(self, records: Iterable[tuple[LedgerKey, bytes | None]], now_ms: int) -> None:
        await asyncio.sleep(0)
        self.log += [(str(key), value) for key, value in records]


def folded(log: Iterable[tuple[str, bytes | None]]) -> LedgerBook:
    book = LedgerBook()
    for offset, (key, value) in enumerate(log):
        book.apply(key, value, offset)
    return book


class Scene:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.log: list[tuple[str, bytes | None]] = []

    def run(self, name: str) -> Tenure:
        me = Holder(FLOW, f"host-{name}", 1, name, self.clock.now_ms(), self.clock.now_ms(), released=False)
        return Tenure(cast(Ledger, MemoryLedger(self.log)), me, WAIT, self.clock, self.clock.now_ms)

    def renew(self, *tenures: Tenure, after: float = 0) -> None:
        self.clock.now += after
        for tenure in tenures:
            asyncio.run(tenure.renew())

    def holder(self) -> str | None:
        found = folded(self.log).holder(FLOW)
        return None if found is None else found.run

    def compact(self) -> None:
        """The last record of each key, where it lay."""
        last = {key: place for place, (key, _) in enumerate(self.log)}
        self.log[:] = [record for place, record in enumerate(self.log) if last[record[0]] == place]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_the_first_run_holds_the_flow_at_once(scene: Scene) -> None:
    one = scene.run("one")
    assert not one.is_mine
    scene.renew(one)
    assert one.is_mine
    assert one.other is None
    assert scene.holder() == "one"


def test_a_flow_that_is_held_is_contested_and_the_holder_is_named(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two)
    assert (one.is_mine, two.is_mine) == (True, False)
    assert two.other is not None
    assert two.other.host == "host-one"


def test_a_holder_that_goes_on_renewing_is_never_superseded(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    for _ in range(60):
        scene.renew(one, two, after=5)
    assert (one.is_mine, two.is_mine) == (True, False)


def test_a_silent_holder_is_superseded_after_the_take_over_wait(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two)
    scene.renew(two, after=WAIT - 1)
    assert not two.is_mine
    scene.renew(two, after=1)
    assert two.is_mine
    assert scene.holder() == "two"
    assert not one.is_mine, "long before it could be superseded it no longer counts on holding the flow"
    scene.renew(one)
    assert not one.is_mine
    assert one.other is not None
    assert one.other.run == "two"


def test_silence_is_measured_from_when_it_was_seen_never_by_the_others_clock(scene: Scene) -> None:
    one = scene.run("one")
    scene.renew(one)
    scene.clock.now += 10 * WAIT
    late = scene.run("late")
    scene.renew(late)
    assert not late.is_mine, "its record is old, but who knows whose clock is wrong"
    scene.renew(late, after=WAIT)
    assert late.is_mine


def test_a_holder_that_renews_again_begins_the_wait_anew(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two)
    scene.renew(one, two, after=WAIT - 1)
    scene.renew(two, after=WAIT - 1)
    assert not two.is_mine


def test_a_holder_that_cannot_renew_stops_counting_on_it_in_time(scene: Scene) -> None:
    one = scene.run("one")
    scene.renew(one)
    scene.clock.now += WAIT / 2 - 1
    assert one.is_mine
    scene.clock.now += 1
    assert not one.is_mine
    scene.renew(one)
    assert one.is_mine


def test_a_released_flow_is_taken_without_waiting(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two)
    asyncio.run(one.release())
    scene.renew(two)
    assert two.is_mine
    assert scene.holder() == "two"


def test_who_does_not_hold_the_flow_cannot_release_it(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two)
    asyncio.run(two.release())
    assert scene.holder() == "one"
    scene.renew(one, after=1)
    assert one.is_mine


def test_two_that_supersede_the_same_silent_holder_do_not_both_hold(scene: Scene) -> None:
    one, two, three = scene.run("one"), scene.run("two"), scene.run("three")
    scene.renew(one, two, three)
    scene.renew(two, three, after=WAIT)
    assert [two.is_mine, three.is_mine] == [True, False]


ORDERS = sorted(set(itertools.combinations(range(10), 5)))
"""Which of ten steps are the first one's: read, claim, read, hold, and the end."""


@pytest.mark.parametrize("gap", ["empty", "released", "silent"])
def test_two_at_the_same_moment_never_both_hold_whatever_the_order_of_their_steps(gap: str) -> None:
    winners = {race(gap, ["a" if step in firsts else "b" for step in range(10)]) for firsts in ORDERS}
    assert winners == {"first", "second"}


def race(gap: str, order: list[str]) -> str:
    scene = Scene()
    first, second = scene.run("first"), scene.run("second")
    if gap != "empty":
        before = scene.run("before")
        scene.renew(before, first, second)
        if gap == "released":
            asyncio.run(before.release())
        scene.clock.now += WAIT
    steps: dict[str, Coroutine[Any, Any, None]] = {"a": first.renew(), "b": second.renew()}
    for name in [*order, *"aabb"]:
        if name in steps:
            try:
                steps[name].send(None)
            except StopIteration:
                del steps[name]
    assert not steps
    assert [first.is_mine, second.is_mine].count(True) == 1, order
    winner = "first" if first.is_mine else "second"
    assert scene.holder() == winner, order
    scene.compact()
    assert scene.holder() == winner, ("compaction must not bring the loser back", order)
    scene.renew(first, second, after=1)
    assert [first.is_mine, second.is_mine].count(True) == 1, order
    assert scene.holder() == winner, order
    return winner
