"""Who carries which lane: grants, hand-overs, losses, and when the last attempt is known dead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from heliograph.control.conductor import Conductor
from heliograph.spark import line as words
from heliograph.spark.line import Line
from tests.unit.control.fakes import FakeClock, FakeLine

WAIT = 90.0
RACING, HELD, ALONE = "another run may write", "the flow is ours", "the last attempt is dead too"
STANDINGS = {(False, False): RACING, (True, False): HELD, (True, True): ALONE}
"""What a carrier may be told. Alone without held is no standing: then the last attempt may be another run's."""
A, B, C = "A->B/orders/0", "A->B/orders/1", "A->B/orders/2"


class Stage:
    """A conductor, its clock, and tasks that dial in."""

    def __init__(self, runner: asyncio.Runner, is_held: Callable[[str], bool] | None = None) -> None:
        self._runner = runner
        self.clock = FakeClock()
        self.held = True
        self.reports: list[tuple[str, list[dict[str, Any]], dict[str, Any]]] = []
        self.conductor = Conductor(
            "secret", WAIT, self.clock, lambda *report: self.reports.append(report), is_held or (lambda _: self.held)
        )
        self.orphans: list[set[str]] = []
        self.conductor.on_orphans = lambda keys: bool(self.orphans.append(keys)) or True
        self.gaps: list[tuple[str, float]] = []
        self.conductor.on_gap = lambda key, seconds: self.gaps.append((key, seconds))
        self._handlers: list[asyncio.Task[None]] = []

    def run(self) -> None:
        """Let every message that was said be heard."""

        async def turns() -> None:
            for _ in range(20):
                await asyncio.sleep(0)

        self._runner.run(turns())

    def dial(self, attempt: str, epoch: int = 1, slot: int = 0, token: str = "secret") -> FakeLine:  # noqa: S107  a test's
        line = FakeLine()

        async def begin() -> None:
            handler = self.conductor.handle(cast(Line, line))
            self._handlers.append(asyncio.get_running_loop().create_task(handler))

        self._runner.run(begin())
        line.hears(words.hello(token, epoch, slot, attempt, 1))
        self.run()
        return line

    def task(self, attempt: str, *lanes: str, epoch: int = 1, slot: int = 0) -> FakeLine:
        line = self.dial(attempt, epoch, slot)
        self.says(line, words.ready(lanes))
        return line

    def says(self, line: FakeLine, message: words.Message | None) -> None:
        line.hears(message)
        self.run()

    def lose(self, line: FakeLine) -> None:
        self.says(line, None)

    def tick(self, seconds: float) -> None:
        self.clock.now += seconds
        self.conductor.tick()

    def holder(self, lane: str) -> str | None:
        holder = self.conductor.owners[lane].holder
        return None if holder is None else holder.attempt


@pytest.fixture
def stage() -> Iterator[Stage]:
    with asyncio.Runner() as runner:
        yield Stage(runner)


def gos(line: FakeLine) -> list[tuple[list[str], str, dict[str, str]]]:
    """Lanes, standing and positions of every go."""
    return [(sorted(m["lanes"]), STANDINGS[m["held"], m["alone"]], m["entries"]) for m in line.said("go")]


# -- the beginning ------------------------------------------------------------------------------------------------------


def test_the_first_task_gets_its_lanes_at_once_and_alone(stage: Stage) -> None:
    line = stage.task("one", A, B)
    assert gos(line) == [([A, B], ALONE, {})]
    assert stage.conductor.started == {(1, 0)}


def test_while_another_run_holds_the_flow_nobody_is_alone_until_it_is_ours(stage: Stage) -> None:
    stage.held = False
    line = stage.task("one", A)
    assert gos(line) == [([A], RACING, {})]
    stage.tick(1)
    assert len(gos(line)) == 1
    stage.held = True
    stage.tick(1)
    assert gos(line)[1:] == [([A], ALONE, {})]
    stage.tick(1)
    assert len(gos(line)) == 2


def test_waiting_alone_does_not_make_a_lane_ours(stage: Stage) -> None:
    stage.held = False
    line = stage.task("one", A)
    stage.tick(10 * WAIT)
    assert gos(line) == [([A], RACING, {})]


def test_a_wrong_token_is_not_served(stage: Stage) -> None:
    line = stage.dial("stranger", token="guess")
    stage.says(line, words.ready([A]))
    assert line.sent == []
    assert stage.conductor.owners == {}
    assert stage.conductor.tasks == set()
    assert stage.conductor.started == set()


def test_who_does_not_say_hello_first_is_not_served(stage: Stage) -> None:
    line = FakeLine()
    line.hears(words.ready([A]))

    async def handled() -> None:
        await stage.conductor.handle(cast(Line, line))

    asyncio.run(handled())
    assert line.sent == []


def test_a_line_that_ends_before_hello_is_no_task(stage: Stage) -> None:
    line = FakeLine()
    line.hears(None)

    async def handled() -> None:
        await stage.conductor.handle(cast(Line, line))

    asyncio.run(handled())
    assert stage.conductor.tasks == set()


def test_reports_are_handed_on_with_their_attempt_and_epoch(stage: Stage) -> None:
    line = stage.task("one", A, epoch=7)
    stage.says(line, words.report([{"lane": A}], {"process": 9}))
    assert stage.reports == [("one", [{"lane": A}], {"process": 9, "epoch": 7, "slot": 0})]


# -- hand-over ----------------------------------------------------------------------------------------------------------


def test_a_hand_over_is_release_then_released_then_go_with_the_exact_position(stage: Stage) -> None:
    old = stage.task("old", A, B)
    new = stage.task("new", A, B, epoch=2)
    assert sorted(lane for message in old.said("release") for lane in message["lanes"]) == [A, B]
    assert gos(new) == []
    stage.says(old, words.released([(A, "entry-a", True)]))
    assert gos(new) == [([A], ALONE, {A: "entry-a"})]
    assert (stage.holder(A), stage.holder(B)) == ("new", "old")
    stage.says(old, words.released([(B, None, True)]))
    assert gos(new)[1:] == [([B], ALONE, {})]


def test_a_gap_is_from_the_last_read_of_the_old_task_to_the_first_of_the_new(stage: Stage) -> None:
    old = stage.task("old", A)
    stage.says(old, words.took({A: 0.0}))
    assert stage.gaps == []
    new = stage.task("new", A, epoch=2)
    stage.says(old, words.released([(A, "entry", True)], {A: 0.25, "A->B/unknown/0": 1.0}))
    stage.clock.now += 2
    stage.says(old, words.took({A: 0.0}))
    stage.says(new, words.took({A: 0.5, "A->B/unknown/0": 0.0}))
    assert stage.gaps == [(A, 1.75)]
    stage.says(new, words.took({A: 0.0}))
    assert len(stage.gaps) == 1


def test_a_task_that_is_lost_leaves_a_gap_from_then_on(stage: Stage) -> None:
    old = stage.task("old", A)
    stage.lose(old)
    stage.clock.now += 7
    new = stage.task("new", A, epoch=2)
    stage.says(new, words.took({A: 1.0}))
    assert stage.gaps == [(A, 6.0)]


def test_a_lane_that_was_taken_out_and_comes_back_had_no_gap(stage: Stage) -> None:
    old = stage.task("old", A)
    stage.conductor.keep_only(set())
    stage.says(old, words.released([(A, "entry", True)], {A: 0.1}))
    stage.clock.now += 600
    new = stage.task("new", A, epoch=2)
    stage.says(new, words.took({A: 0.0}))
    assert stage.gaps == []


def test_a_task_with_thousands_of_lanes_may_take_longer_to_let_go(stage: Stage) -> None:
    many = [f"A->B/orders/{number}" for number in range(2500)]
    stage.task("old", *many)
    new = stage.task("new", *many, epoch=2)
    stage.tick(15)
    assert gos(new) == []
    stage.tick(2)
    assert [len(lanes) for lanes, _, _ in gos(new)] == [2500]


def test_lanes_that_end_together_go_on_together(stage: Stage) -> None:
    old = stage.task("old", A, B, C)
    first = stage.task("first", A, B, epoch=2)
    second = stage.task("second", C, epoch=2, slot=1)
    stage.says(old, words.released([(A, "entry-a", True), (B, None, True), (C, "entry-c", True)]))
    assert gos(first) == [([A, B], ALONE, {A: "entry-a"})]
    assert gos(second) == [([C], ALONE, {C: "entry-c"})]
    assert [stage.holder(lane) for lane in (A, B, C)] == ["first", "first", "second"]


def test_lanes_that_were_released_with_nobody_waiting_are_free(stage: Stage) -> None:
    old = stage.task("old", A)
    stage.says(old, words.released([(A, "entry", True)]))
    assert stage.holder(A) is None
    new = stage.task("new", A, epoch=2)
    assert gos(new) == [([A], ALONE, {})]


def test_a_release_by_who_does_not_hold_the_lane_says_nothing(stage: Stage) -> None:
    stage.task("old", A)
    other = stage.task("other", B, slot=1)
    stage.says(other, words.released([(A, "forged", True)]))
    stage.says(other, words.released([("A->B/unknown/0", None, True)]))
    assert stage.holder(A) == "old"


def test_a_lane_that_moves_to_another_slot_waits_for_its_own_holder_only(stage: Stage) -> None:
    first = stage.task("first", A, slot=0)
    second = stage.task("second", B, slot=1)
    moved = stage.task("moved", A, C, epoch=2, slot=1)
    assert gos(moved) == [([C], ALONE, {})]
    assert first.said("release") == [words.release([A])]
    assert second.said("release") == []


def test_the_newest_task_that_wants_a_lane_gets_it(stage: Stage) -> None:
    old = stage.task("old", A)
    overtaken = stage.task("overtaken", A, epoch=2)
    newest = stage.task("newest", A, epoch=3)
    stage.says(old, words.released([(A, "entry", True)]))
    assert gos(overtaken) == []
    assert gos(newest) == [([A], ALONE, {A: "entry"})]


def test_ready_again_does_not_ask_the_holder_to_release_to_itself(stage: Stage) -> None:
    line = stage.task("one", A)
    stage.says(line, words.ready([A]))
    assert line.said("release") == []
    assert stage.holder(A) == "one"


def test_a_release_that_may_leave_a_request_behind_hands_over_no_position_and_no_certainty(stage: Stage) -> None:
    old = stage.task("old", A)
    new = stage.task("new", A, epoch=2)
    stage.says(old, words.released([(A, "entry", False)]))
    assert gos(new) == [([A], HELD, {})]
    stage.tick(WAIT)
    assert gos(new)[1:] == [([A], ALONE, {})]


def test_an_unclean_release_with_nobody_waiting_is_remembered(stage: Stage) -> None:
    old = stage.task("old", A)
    stage.says(old, words.released([(A, "entry", False)]))
    assert gos(stage.task("new", A, epoch=2)) == [([A], HELD, {})]


def test_only_the_newest_epochs_are_remembered_as_started(stage: Stage) -> None:
    for epoch in range(1, 200):
        stage.dial(f"task-{epoch}", epoch=epoch)
    assert (199, 0) in stage.conductor.started
    assert len(stage.conductor.started) < 50


# -- losses -------------------------------------------------------------------------------------------------------------


def test_after_a_loss_the_next_task_goes_on_at_once_but_not_alone(stage: Stage) -> None:
    stage.lose(stage.task("lost", A))
    heir = stage.task("heir", A, epoch=2)
    assert gos(heir) == [([A], HELD, {})]
    stage.tick(WAIT - 1)
    assert len(gos(heir)) == 1
    stage.tick(1)
    assert gos(heir)[1:] == [([A], ALONE, {})]
    stage.tick(1)
    assert len(gos(heir)) == 2


def test_a_loss_under_another_runs_hold_is_upgraded_step_by_step(stage: Stage) -> None:
    """First the flow becomes ours, which lets a fresh epoch fence; then the last attempt is dead too."""
    stage.held = False
    stage.lose(stage.task("lost", A))
    heir = stage.task("heir", A, epoch=2)
    assert gos(heir) == [([A], RACING, {})]
    stage.tick(30)
    assert len(gos(heir)) == 1
    stage.held = True
    stage.tick(1)
    assert gos(heir)[1:] == [([A], HELD, {})]
    stage.tick(WAIT - 32)
    assert len(gos(heir)) == 2
    stage.tick(1)
    assert gos(heir)[2:] == [([A], ALONE, {})]
    stage.tick(1)
    assert len(gos(heir)) == 3


def test_a_flow_that_becomes_ours_after_the_wait_is_told_in_one_step(stage: Stage) -> None:
    stage.held = False
    stage.lose(stage.task("lost", A))
    heir = stage.task("heir", A, epoch=2)
    stage.tick(WAIT)
    assert len(gos(heir)) == 1
    stage.held = True
    stage.tick(1)
    assert gos(heir)[1:] == [([A], ALONE, {})]


def test_to_be_told_held_does_not_end_the_wait_for_the_lost(stage: Stage) -> None:
    stage.held = False
    stage.lose(stage.task("lost", A))
    middle = stage.task("middle", A, epoch=2)
    stage.held = True
    stage.tick(10)
    new = stage.task("new", A, epoch=3)
    stage.says(middle, words.released([(A, "entry", True)]))
    assert gos(new) == [([A], HELD, {A: "entry"})]
    stage.tick(WAIT - 10)
    assert gos(new)[1:] == [([A], ALONE, {})]


def test_a_flow_that_was_lost_is_taken_back_once_and_its_successor_races(stage: Stage) -> None:
    old = stage.task("old", A)
    stage.held = False
    stage.tick(1)
    stage.tick(1)
    assert gos(old) == [([A], ALONE, {})]
    assert old.said("revoke") == [words.revoke([A])]
    assert [message["kind"] for message in old.sent[:3]] == ["go", "revoke", "ping"], "before it may believe in peace"
    new = stage.task("new", A, epoch=2)
    stage.says(old, words.released([(A, "entry", True)]))
    assert gos(new) == [([A], RACING, {A: "entry"})]
    stage.held = True
    stage.tick(1)
    assert gos(new)[1:] == [([A], ALONE, {})]


def test_a_carrier_that_was_told_that_it_is_not_alone_is_told_when_it_is_again(stage: Stage) -> None:
    line = stage.task("one", A)
    stage.held = False
    stage.conductor.take_back()
    assert line.said("revoke") == [words.revoke([A])]
    stage.held = True
    stage.tick(1)
    assert gos(line)[1:] == [([A], ALONE, {})]
    stage.held = False
    stage.tick(1)
    assert line.said("revoke")[1:] == [words.revoke([A])]


def test_only_the_lanes_of_the_flow_that_was_lost_are_taken_back() -> None:
    ours = {"A->B", "A->C"}
    with asyncio.Runner() as runner:
        stage = Stage(runner, is_held=lambda key: key.split("/")[0] in ours)
        line = stage.task("one", A, "A->C/orders/0")
        ours.remove("A->C")
        stage.tick(1)
        assert line.said("revoke") == [words.revoke(["A->C/orders/0"])]


def test_a_flow_is_in_order_only_when_nothing_of_it_can_be_on_its_way(stage: Stage) -> None:
    in_order = stage.conductor.is_in_order
    line = stage.task("one", A, B)
    other = stage.task("other", "A->C/orders/0", slot=1)
    assert not in_order("A->B")
    stage.says(line, words.released([(A, "entry", True), (B, "entry", True)]))
    assert in_order("A->B")
    assert not in_order("A->C")
    stage.lose(other)
    stage.clock.now += WAIT - 1
    assert not in_order("A->C")
    stage.clock.now += 1
    assert in_order("A->C")


def test_a_lane_that_was_released_with_answers_due_is_not_in_order(stage: Stage) -> None:
    line = stage.task("one", A)
    stage.says(line, words.released([(A, "entry", False)]))
    stage.lose(line)
    assert not stage.conductor.is_in_order("A->B")


def test_lanes_of_one_task_are_told_by_their_own_standing(stage: Stage) -> None:
    stage.lose(stage.task("lost", A))
    heir = stage.task("heir", A, B, epoch=2)
    assert sorted(gos(heir)) == [([A], HELD, {}), ([B], ALONE, {})]
    stage.tick(WAIT)
    assert gos(heir)[2:] == [([A], ALONE, {})]


def test_lanes_are_held_flow_by_flow() -> None:
    with asyncio.Runner() as runner:
        stage = Stage(runner, is_held=lambda key: key.startswith("A->B"))
        line = stage.task("one", A, B, "A->C/orders/0")
        assert sorted(gos(line)) == [([A, B], ALONE, {}), (["A->C/orders/0"], RACING, {})]


def test_who_comes_after_the_take_over_wait_is_alone(stage: Stage) -> None:
    stage.lose(stage.task("lost", A))
    stage.clock.now += WAIT
    assert gos(stage.task("heir", A, epoch=2)) == [([A], ALONE, {})]


def test_an_heir_that_waits_already_gets_the_lanes_of_the_lost(stage: Stage) -> None:
    old = stage.task("old", A, B)
    heir = stage.task("heir", A, B, epoch=2)
    stage.lose(old)
    assert gos(heir) == [([A, B], HELD, {})]


def test_a_lost_heir_leaves_the_holder_alone(stage: Stage) -> None:
    old = stage.task("old", A)
    heir = stage.task("heir", A, epoch=2)
    stage.lose(heir)
    assert stage.holder(A) == "old"
    stage.says(old, words.released([(A, "entry", True)]))
    assert stage.holder(A) is None
    assert gos(heir) == []


def test_a_retry_of_the_same_slot_takes_over_from_the_attempt_that_died(stage: Stage) -> None:
    dead = stage.task("attempt-1", A, B)
    stage.lose(dead)
    retry = stage.task("attempt-2", A, B)
    assert gos(retry) == [([A, B], HELD, {})]
    assert stage.holder(A) == "attempt-2"


def test_a_retry_whose_dead_attempt_is_not_noticed_yet_waits_for_it(stage: Stage) -> None:
    dead = stage.task("attempt-1", A)
    retry = stage.task("attempt-2", A)
    assert gos(retry) == []
    stage.lose(dead)
    assert gos(retry) == [([A], HELD, {})]


def test_doubt_is_inherited_by_who_takes_over_in_good_order(stage: Stage) -> None:
    """The middle task never was alone with the lane, so its successor is not either until the wait is over."""
    stage.lose(stage.task("lost", A))
    middle = stage.task("middle", A, epoch=2)
    stage.clock.now += 30
    new = stage.task("new", A, epoch=3)
    stage.says(middle, words.released([(A, "entry", True)]))
    assert gos(new) == [([A], HELD, {A: "entry"})]
    stage.tick(WAIT - 30)
    assert gos(new)[1:] == [([A], ALONE, {})]


def test_a_second_loss_begins_the_wait_again(stage: Stage) -> None:
    stage.lose(stage.task("first", A))
    second = stage.task("second", A)
    stage.clock.now += 60
    stage.lose(second)
    third = stage.task("third", A)
    stage.tick(60)
    assert gos(third) == [([A], HELD, {})]
    stage.tick(30)
    assert gos(third)[1:] == [([A], ALONE, {})]


def test_a_task_that_was_lost_is_pinged_no_more(stage: Stage) -> None:
    line = stage.task("lost", A)
    stage.lose(line)
    stage.tick(1)
    assert line.said("ping") == []


# -- overdue ------------------------------------------------------------------------------------------------------------


def test_after_six_seconds_without_a_word_the_successor_goes_on_not_alone(stage: Stage) -> None:
    old = stage.task("old", A)
    new = stage.task("new", A, epoch=2)
    stage.tick(6)
    assert gos(new) == []
    stage.tick(0.5)
    assert gos(new) == [([A], HELD, {})]
    assert stage.holder(A) == "new"
    stage.says(old, words.released([(A, "late", True)]))
    assert stage.holder(A) == "new"
    assert len(gos(new)) == 1
    stage.tick(WAIT)
    assert gos(new)[1:] == [([A], ALONE, {})]


def test_one_overdue_lane_does_not_take_the_others_from_their_holder(stage: Stage) -> None:
    old = stage.task("old", A, B)
    new = stage.task("new", A, B, epoch=2)
    stage.says(old, words.released([(A, "entry", True)]))
    stage.tick(7)
    assert gos(new) == [([A], ALONE, {A: "entry"}), ([B], HELD, {})]


# -- the rest -----------------------------------------------------------------------------------------------------------


def test_every_tick_is_heard_by_every_task(stage: Stage) -> None:
    lines = [stage.task("one", A), stage.task("two", B, slot=1)]
    stage.tick(1)
    stage.tick(1)
    assert [len(line.said("ping")) for line in lines] == [2, 2]


def test_stop_is_told_to_every_task(stage: Stage) -> None:
    lines = [stage.task("one", A), stage.task("two", B, slot=1)]
    stage.conductor.stop_all()
    assert [line.said("stop") for line in lines] == [[words.stop()], [words.stop()]]


def test_lanes_that_are_no_longer_planned_are_released_by_their_holder(stage: Stage) -> None:
    line = stage.task("one", A, B)
    stage.conductor.keep_only({B, "A->B/never-seen/0"})
    assert line.said("release") == [words.release([A])]
    stage.says(line, words.released([(A, "entry", True)]))
    stage.conductor.keep_only({B})
    assert len(line.said("release")) == 1
    assert stage.conductor.carries(B.split("/")[0])
    assert stage.holder(A) is None
    assert stage.holder(B) == "one"


def test_an_order_that_is_older_than_the_plan_does_not_bring_a_lane_back(stage: Stage) -> None:
    """It was paused or taken out after the epoch was ordered and before its task dialled in."""
    stage.conductor.keep_only({B})
    line = stage.task("one", A, B)
    assert line.said("release") == [words.release([A])]
    assert gos(line) == [([B], ALONE, {})]
    assert not stage.conductor.carries_lane(A)
    stage.lose(line)
    stage.conductor.keep_only({A, B})
    assert sorted(gos(stage.task("two", A, B, epoch=2))) == [([A], ALONE, {}), ([B], HELD, {})]


def test_a_lane_that_is_taken_out_while_it_changes_hands_goes_to_nobody(stage: Stage) -> None:
    old = stage.task("one", A, B)
    new = stage.task("two", A, B, epoch=2)
    stage.conductor.keep_only({B})
    assert new.said("release") == [words.release([A])]
    stage.says(old, words.released([(A, "entry", True), (B, "entry", True)]))
    assert gos(new) == [([B], ALONE, {B: "entry"})]
    assert stage.holder(A) is None
    stage.tick(10)
    assert len(gos(new)) == 1


# -- lanes that nobody has ----------------------------------------------------------------------------------------------


def test_lanes_whose_task_lost_its_line_are_orphans_while_other_tasks_go_on(stage: Stage) -> None:
    broken = stage.task("broken", A, B)
    stage.task("other", C, slot=1)
    stage.lose(broken)
    stage.tick(2)
    assert stage.orphans == []
    stage.tick(1)
    assert stage.orphans == [{A, B}]
    stage.tick(60)
    assert len(stage.orphans) == 1, "told once"


def test_a_lane_that_left_by_itself_is_an_orphan_and_one_that_is_not_planned_is_none(stage: Stage) -> None:
    line = stage.task("one", A, B, C)
    stage.conductor.keep_only({A, C})
    stage.says(line, words.released([(A, "entry", True), (B, "entry", True)]))
    stage.tick(3)
    assert stage.orphans == [{A}]


def test_an_orphan_that_is_taken_out_of_the_plan_is_none_any_more(stage: Stage) -> None:
    line = stage.task("one", A, C)
    stage.says(line, words.released([(A, "entry", True)]))
    stage.conductor.keep_only({C})
    stage.tick(10)
    assert stage.orphans == []


def test_lanes_that_somebody_took_or_is_about_to_take_are_no_orphans(stage: Stage) -> None:
    broken = stage.task("broken", A)
    stage.task("other", C, slot=1)
    stage.lose(broken)
    stage.tick(1)
    retry = stage.dial("retry")
    stage.tick(5)
    assert stage.orphans == [], "it gets ready"
    stage.says(retry, words.ready([A]))
    stage.tick(5)
    assert stage.orphans == []


def test_while_no_task_is_there_the_job_itself_ended_and_nobody_is_told(stage: Stage) -> None:
    stage.lose(stage.task("only", A))
    stage.tick(60)
    assert stage.orphans == []


def test_orphans_again_and_again_are_told_more_and_more_seldom(stage: Stage) -> None:
    stage.task("other", C, slot=1)
    told_after = []
    for epoch in range(1, 5):
        stage.lose(stage.task("fenced", A, epoch=epoch))
        before, count = stage.clock.now, len(stage.orphans)
        while len(stage.orphans) == count:
            stage.tick(1)
        told_after.append(stage.clock.now - before)
    assert told_after == [3, 6, 12, 24]
    stage.tick(200)
    stage.lose(stage.task("fenced", A, epoch=9))
    stage.tick(3)
    assert len(stage.orphans) == 5


# -- an order of an epoch that is over -----------------------------------------------------------------------------------


def test_a_late_retry_of_an_old_epoch_takes_no_lane_from_a_newer_one(stage: Stage) -> None:
    new = stage.task("new", A, epoch=5)
    stale = stage.task("stale", A, B, epoch=4)
    assert stale.said("release") == [words.release([A])]
    assert new.said("release") == []
    assert (stage.holder(A), stage.holder(B)) == ("new", "stale"), "what nobody has it may carry"


def test_a_late_retry_does_not_push_ahead_of_a_newer_task_that_waits(stage: Stage) -> None:
    old = stage.task("old", A, epoch=4)
    new = stage.task("new", A, epoch=5)
    stale = stage.task("stale", A, epoch=4)
    assert stale.said("release") == [words.release([A])]
    stage.says(old, words.released([(A, "entry", True)]))
    assert gos(new) == [([A], ALONE, {A: "entry"})]
