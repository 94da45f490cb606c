"""Holding a flow, on a ledger in memory: never two at once, whatever the order of their steps."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from typing import Any, cast

import pytest

from heliograph.control.clock import Clock
from heliograph.control.tenure import Tenure
from heliograph.kafka.ledger import Ledger
from heliograph.model.takeover import hold_s
from heliograph.replication.generations import Holder, LedgerBook
from heliograph.replication.ledger_keys import LedgerKey
from heliograph.replication.standbys import STANDBY_NOTE
from tests.unit.control.fakes import FakeClock

WAIT = 90.0
FLOW = "A->B"
STEP = 2.0
HERE = "this machine"


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
        self.gone: set[tuple[str, int]] = set()

    def run(self, name: str) -> Tenure:
        me = Holder(
            FLOW, f"host-{name}", 1, name, self.clock.now_ms(), self.clock.now_ms(), released=False, machine=HERE
        )
        tenure = Tenure(cast(Ledger, MemoryLedger(self.log)), me, WAIT, cast(Clock, self.clock), self._is_gone)
        tenure.stands_by = True
        return tenure

    def _is_gone(self, machine: str, process: int) -> bool:
        return (machine, process) in self.gone

    def renew(self, *tenures: Tenure, after: float = 0, step: float = STEP) -> None:
        """Again and again for `after` seconds, as a run does: what is not heard meanwhile is silent."""
        rest = after % step
        steps = [step] * int(after // step) + ([rest] if rest or not after else [])
        asyncio.run(self._renew(tenures, steps))

    async def _renew(self, tenures: Iterable[Tenure], steps: Iterable[float]) -> None:
        for step in steps:
            self.clock.now += step
            for tenure in tenures:
                await tenure.renew()

    def holder(self) -> str | None:
        found = folded(self.log).holder(FLOW)
        return None if found is None else found.run

    def notes(self) -> dict[str, bytes]:
        return folded(self.log).notes(FLOW, STANDBY_NOTE)

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
    scene.clock.now += hold_s(WAIT) - 1
    assert one.is_mine
    scene.clock.now += 1
    assert not one.is_mine
    scene.renew(one)
    assert one.is_mine


def test_a_machine_that_was_suspended_counts_on_nothing_until_it_has_read_the_ledger_again(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two)
    scene.renew(two, after=WAIT)
    assert two.is_mine
    scene.clock.now -= WAIT  # of the machine that slept meanwhile
    scene.clock.suspended = WAIT
    assert not one.is_mine
    scene.renew(one)
    assert not one.is_mine
    assert one.other is not None and one.other.run == "two"


def test_a_machine_that_was_suspended_takes_nobody_for_silent_whom_it_could_not_hear(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two)
    scene.clock.suspended = 10 * WAIT
    scene.renew(two)
    assert not two.is_mine


def test_a_renewal_counts_from_when_it_was_sent(scene: Scene) -> None:
    one = scene.run("one")

    class Slow(MemoryLedger):
        async def write(self, records: Iterable[tuple[LedgerKey, bytes | None]], now_ms: int) -> None:
            await super().write(records, now_ms)
            scene.clock.now += hold_s(WAIT)

    one._ledger = cast(Ledger, Slow(scene.log))
    scene.renew(one)
    assert not one.is_mine


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
    assert [two.is_mine, three.is_mine].count(True) == 1


ORDERS = sorted(set(itertools.combinations(range(10), 5)))
"""Which of ten steps are the first one's: read, claim, read, hold, and the end."""


@pytest.mark.parametrize("gap", ["empty", "released", "silent"])
def test_two_at_the_same_moment_never_both_hold_whatever_the_order_of_their_steps(gap: str) -> None:
    winners = {race(gap, ["a" if step in firsts else "b" for step in range(10)]) for firsts in ORDERS}
    assert winners == {"first", "second"}


def race(gap: str, order: list[str]) -> str:
    scene = Scene()
    first, second = scene.run("first"), scene.run("second")
    first.stands_by = second.stands_by = False  # without notes there is no order among them
    if gap != "empty":
        before = scene.run("before")
        scene.renew(before, first, second)
        scene.renew(first, second, after=WAIT - 1, step=9.0)
        if gap == "released":
            asyncio.run(before.release())
        scene.clock.now += 1
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


# -- standing by ---------------------------------------------------------------------------------------------------------


def test_who_waits_carries_nothing_until_the_holder_is_silent_and_then_only_what_the_target_guards(
    scene: Scene,
) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two)
    assert (one.may_carry, two.may_carry) == (True, False)
    scene.renew(one, two, after=20)
    assert (one.may_carry, two.may_carry) == (True, False)
    scene.renew(two, after=6)
    assert not two.may_carry
    scene.renew(two, after=1)
    assert two.may_carry
    assert (two.is_mine, two.may_work) == (False, False)


def test_a_holder_that_is_heard_again_is_left_alone_again(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two)
    scene.renew(two, after=20)
    assert two.may_carry
    scene.renew(one, two)
    assert (one.is_mine, one.may_carry, two.may_carry) == (True, True, False)


def test_a_holder_that_cannot_renew_stops_before_who_waits_begins(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two)
    scene.renew(one, two)
    assert [standby.host for standby in one.waiting] == ["host-two"]
    for _ in range(100):
        scene.renew(two, after=0.1)
        assert not (one.may_carry and two.may_carry)
    assert (one.may_carry, two.may_carry) == (False, True)
    assert one.is_mine, "nobody can hold the flow yet"


def test_a_holder_that_cannot_renew_goes_on_where_nobody_waits(scene: Scene) -> None:
    one = scene.run("one")
    scene.renew(one)
    scene.clock.now += 10 * WAIT
    assert one.may_carry
    assert not one.is_mine


def test_who_could_not_read_the_ledger_takes_nobody_for_silent(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two)
    scene.clock.now += 10 * WAIT
    asyncio.run(two.renew())
    assert not two.may_carry
    assert scene.holder() == "one"


def test_a_holder_whose_process_is_gone_from_this_machine_is_not_waited_for(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two)
    scene.gone.add((HERE, 1))
    scene.renew(two)
    assert two.may_carry
    assert not two.is_mine, "its tasks may live"


def test_who_waits_is_seen_by_others_until_it_holds_the_flow_or_leaves(scene: Scene) -> None:
    one, two, three = scene.run("one"), scene.run("two"), scene.run("three")
    scene.renew(one, two, three, after=4)
    assert [standby.run for standby in one.waiting] == ["three", "two"]
    asyncio.run(three.withdraw())
    asyncio.run(three.withdraw())
    asyncio.run(one.release())
    scene.renew(two)
    scene.renew(two)
    assert two.is_mine
    assert scene.notes() == {}
    asyncio.run(two.withdraw())


def test_one_that_waited_and_was_killed_is_forgotten(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two, after=4)
    scene.renew(one, after=20)
    assert one.waiting == []
    assert set(scene.notes()) == {"two"}
    scene.renew(one, after=700)
    assert scene.notes() == {}


def test_who_is_no_standby_leaves_no_note(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    two.stands_by = False
    scene.renew(one, two)
    assert scene.notes() == {}


def test_a_short_take_over_wait_is_renewed_so_often_that_jobs_are_not_kept_waiting(scene: Scene) -> None:
    one = scene.run("one")
    one._wait_s = 2.0
    scene.renew(one)
    assert one.renew_s == 0.25
    scene.clock.now += 1.2  # a renewal that is late
    assert (one.is_mine, one.may_work) == (False, True)
    scene.clock.now += 0.3
    assert not one.may_work


@pytest.mark.parametrize("wait_s", [6.0, 15.0, 90.0])
def test_jobs_may_work_all_the_time_though_each_renewal_takes_half_of_the_take_over_wait(
    scene: Scene, wait_s: float
) -> None:
    """From the shortest wait that a file may have. What no broker guards waits half of that time; jobs are not held up."""
    one = scene.run("one")
    one._wait_s = wait_s
    scene.renew(one)
    seen = list[tuple[bool, bool]]()
    for _ in range(20):
        for _ in range(8):
            scene.clock.now += (one.renew_s + wait_s / 2) / 8
            seen.append((one.is_mine, one.may_work))
        scene.renew(one)
    assert all(may_work for _, may_work in seen)
    assert {is_mine for is_mine, _ in seen} == {True, False}


def test_a_hold_is_renewed_more_often_while_somebody_waits(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one)
    assert one.renew_s == 2.0
    scene.renew(one, two)
    scene.renew(one)
    assert (one.renew_s, two.renew_s) == (1.0, 1.0)


def test_a_run_that_released_a_flow_and_wants_it_again_may_find_it_taken(scene: Scene) -> None:
    one, two, again = scene.run("one"), scene.run("two"), scene.run("one")
    scene.renew(one)
    asyncio.run(one.release())
    steps = again.renew()
    steps.send(None)  # it has read that the flow is free
    scene.renew(two)
    with contextlib.suppress(StopIteration):
        while True:
            steps.send(None)
    assert (two.is_mine, again.is_mine) == (True, False)
    assert again.other is not None and again.other.run == "two"


def test_of_two_that_wait_for_the_same_holder_one_carries(scene: Scene) -> None:
    one, two, three = scene.run("one"), scene.run("two"), scene.run("three")
    scene.renew(one, two, three)
    for _ in range(60):
        scene.renew(two, three, after=1)
        assert not (two.may_carry and three.may_carry)
    assert (two.may_carry, three.may_carry) == (False, True), "both came at the same moment: by name"
    assert two.carrier is not None and two.carrier.host == "host-three"
    scene.renew(two, three, after=WAIT)
    assert (two.is_mine, three.is_mine) == (False, True)


def test_who_comes_while_another_has_taken_over_stands_by_though_the_holder_is_gone(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two)
    scene.gone.add((HERE, 1))
    two._me = replace(two._me, process=2)
    scene.renew(two)
    scene.renew(two)
    assert two.may_carry
    late = scene.run("a late one")
    late._me = replace(late._me, process=3)
    for _ in range(20):
        scene.renew(two, late, after=1)
        assert (two.may_carry, late.may_carry) == (True, False)
    scene.gone.add((HERE, 2))
    scene.renew(late)
    assert late.may_carry, "who had taken over is gone too"


def test_one_that_had_taken_over_from_elsewhere_and_falls_silent_is_followed(scene: Scene) -> None:
    one, two, three = scene.run("one"), scene.run("two"), scene.run("three")
    scene.renew(one, two, three)
    scene.renew(two, three, after=10)
    assert three.may_carry
    scene.renew(two, after=6)
    assert not two.may_carry
    scene.renew(two, after=4)
    assert two.may_carry


def test_one_that_had_taken_over_and_is_cut_off_stops_before_the_next_one_begins(scene: Scene) -> None:
    one, two, three = scene.run("one"), scene.run("two"), scene.run("three")
    scene.renew(one, two, three)
    scene.renew(three, two, after=10)
    assert (three.may_carry, two.may_carry) == (True, False)
    for _ in range(300):
        scene.renew(two, after=0.1)
        assert not (three.may_carry and two.may_carry)
    assert (three.may_carry, two.may_carry) == (False, True)


def test_a_holder_that_is_cut_off_does_not_forget_who_waits(scene: Scene) -> None:
    one, two = scene.run("one"), scene.run("two")
    scene.renew(one, two, after=4)
    scene.clock.now += 40
    assert [standby.run for standby in one.waiting] == ["two"]
    assert not one.may_carry
