"""One lane's rules of sending and acknowledging (P3, P4), and that every buffer comes back."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from heliograph.kafka.lane import Failure, LaneRun, Start
from heliograph.model.lanes import LaneState, LedgerEntry
from tests.unit.kafka.lanes import (
    DAY_MS,
    NOW,
    OLD,
    Pool,
    answer,
    batch,
    entry,
    following,
    lane,
    push,
    send_all,
    start,
)

HOUR_MS = 3_600_000
SECOND_MS = 1_000


def acknowledged(run: LaneRun, base: int, now_ms: int = NOW) -> None:
    """One batch goes and comes back."""
    assert run.can_send(now_ms)
    run.take(now_ms)
    run.answered(answer(base), "", now_ms)


# -- the window ---------------------------------------------------------------------------------------------------------


def test_one_batch_is_on_its_way_until_the_first_acknowledgement() -> None:
    run = following()
    for _ in range(8):
        push(run)
    assert send_all(run) == 1
    run.answered(answer(40), "", NOW)
    assert send_all(run) == 5
    assert not run.can_send(NOW)
    run.answered(answer(50), "", NOW)
    assert send_all(run) == 1
    assert len(run.in_flight) == 5


@pytest.mark.parametrize("window", [1, 2, 3])
def test_no_more_than_the_window_is_on_its_way(window: int) -> None:
    run = following(window=window)
    push(run)
    acknowledged(run, 40)
    for _ in range(8):
        push(run)
    assert send_all(run) == window


def test_after_another_attach_the_window_is_one_again() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    run.fail(Failure(6, "moved"))
    assert run.acked is not None
    run.begin(run_start(run), NOW)
    for _ in range(3):
        push(run)
    assert send_all(run) == 1


def run_start(run: LaneRun) -> Start:
    """Attach again, at what is acknowledged."""
    assert run.acked is not None
    return start(run.acked)


def test_old_records_are_never_pipelined() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    for _ in range(3):
        push(run, max_timestamp=OLD)
    assert send_all(run) == 1
    run.answered(answer(50), "", NOW)
    assert send_all(run) == 1


def test_one_old_batch_stops_the_pipeline_until_it_is_acknowledged() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    push(run)
    push(run, max_timestamp=OLD)
    for _ in range(3):
        push(run)
    assert send_all(run) == 1, "a fresh batch goes, the old one may not follow it"
    run.answered(answer(50), "", NOW)
    assert send_all(run) == 1, "the old one goes alone"
    run.answered(answer(60), "", NOW)
    assert send_all(run) == 1, "the target may have forgotten the lane by the old one's time"
    run.answered(answer(70), "", NOW)
    assert send_all(run) == 2


@pytest.mark.parametrize(
    ("idle_ms", "sent"), [(0, 3), (22 * HOUR_MS, 3), (23 * HOUR_MS - 1, 3), (23 * HOUR_MS, 1), (3 * DAY_MS, 1)]
)
def test_a_lane_that_was_idle_too_long_has_a_window_of_one_again(idle_ms: int, sent: int) -> None:
    """Case 9b: two in flight on a forgotten state, the first refused, the second taken: the first would be lost."""
    run = following()
    push(run)
    acknowledged(run, 40)
    later = NOW + idle_ms
    for _ in range(3):
        push(run, max_timestamp=later)
    assert send_all(run, later) == sent


def test_an_idle_lane_pipelines_again_after_one_answer() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    later = NOW + 2 * DAY_MS
    for _ in range(7):
        push(run, max_timestamp=later)
    assert send_all(run, later) == 1
    assert not run.memory.may_pipeline(later), "sent is not answered"
    run.answered(answer(50), "", later)
    assert run.memory.may_pipeline(later)
    assert send_all(run, later) == 5


def test_an_idle_lane_whose_first_batch_is_refused_has_sent_nothing_behind_it() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    later = NOW + 2 * DAY_MS
    for _ in range(4):
        push(run, max_timestamp=later)
    send_all(run, later)
    run.answered(answer(-1, 10), "too large", later)
    assert not run.in_flight
    assert run.idle.is_set()
    assert run.position() == 110


@pytest.mark.parametrize(("idle_ms", "sent"), [(22 * HOUR_MS, 3), (2 * DAY_MS, 1)])
def test_a_target_with_append_time_forgets_an_idle_lane_by_the_time_of_its_last_append(idle_ms: int, sent: int) -> None:
    """L8: whatever the records say, the broker remembers as long as its own clock does."""
    run = following(on=lane(target_append_time=True))
    push(run, max_timestamp=OLD)
    acknowledged(run, 40)
    later = NOW + idle_ms
    for _ in range(3):
        push(run, max_timestamp=later)
    assert send_all(run, later) == sent


def test_the_age_of_the_last_acknowledgement_is_its_records_age_not_its_own() -> None:
    """The broker forgets by the timestamp inside the batch, however lately it was written."""
    run = following()
    push(run, max_timestamp=OLD)
    acknowledged(run, 40)
    for _ in range(3):
        push(run)
    assert send_all(run) == 1


def test_another_attach_forgets_what_the_last_one_had_acknowledged() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    run.fail(Failure(6, "moved"))
    run.begin(run_start(run), NOW)
    push(run)
    run.take(NOW)
    assert not run.memory.may_pipeline(NOW)


def test_a_target_with_append_time_pipelines_old_records() -> None:
    run = following(on=lane(target_append_time=True))
    push(run, max_timestamp=OLD)
    acknowledged(run, 40)
    for _ in range(3):
        push(run, max_timestamp=OLD)
    assert send_all(run) == 3


def test_a_lane_is_guarded_after_a_fresh_acknowledgement_only() -> None:
    run = following()
    assert not run.memory.is_kept(NOW)
    push(run)
    run.take(NOW)
    assert not run.memory.is_kept(NOW)
    run.answered(answer(40), "", NOW)
    assert run.memory.is_kept(NOW)
    push(run, max_timestamp=OLD)
    acknowledged(run, 50)
    assert not run.memory.is_kept(NOW)


def test_an_attach_that_found_the_lane_remembered_guards_its_first_batch() -> None:
    run = following(last_timestamp=NOW)
    push(run)
    assert run.take(NOW).guarded


# -- alone --------------------------------------------------------------------------------------------------------------


def test_records_that_take_the_guard_away_stop_a_lane_that_is_not_alone() -> None:
    """M3: a second attempt may be there, and nothing would refuse what it repeats."""
    run = following(last_timestamp=NOW)
    run.is_alone = lambda: False
    push(run)
    acknowledged(run, 40)
    push(run)
    push(run, max_timestamp=OLD)
    assert send_all(run) == 1, "the fresh batch goes, the old one does not"
    assert run.failure is not None and run.failure.finding == "unguarded"
    run.answered(answer(50), "", NOW)
    assert run.position() == 120, "what was on its way counts"
    assert run.idle.is_set()


def test_a_lane_that_the_target_does_not_remember_sends_nothing_unless_it_is_alone() -> None:
    """L12: a task that was frozen wakes up with a full queue, and does not know yet what happened meanwhile."""
    run = following(guarded=False)
    run.is_alone = lambda: False
    push(run)
    assert not run.can_send(NOW)
    assert run.failure is not None and run.failure.finding == "unguarded"


def test_a_lost_connection_is_waited_out_only_for_batches_that_nothing_guarded() -> None:
    run = following(guarded=False)
    push(run)
    acknowledged(run, 40)
    push(run)
    run.take(NOW)
    run.connection_ended("closed")
    assert not run.is_clean() and not run.lost_unguarded, "the first acknowledgement restored the guard"
    run.begin(run_start(run), NOW)
    push(run, max_timestamp=OLD)
    run.take(NOW)
    run.connection_ended("closed")
    assert run.lost_unguarded


# -- acknowledgements ---------------------------------------------------------------------------------------------------


def test_the_position_moves_with_acknowledgements_in_order() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    for _ in range(3):
        push(run, 5)
    send_all(run)
    assert run.position() == 110
    for step, base in enumerate((50, 55, 60), start=1):
        run.answered(answer(base), "", NOW)
        position = run.entry(NOW)
        assert position is not None
        assert position.source_next == run.position() == 110 + 5 * step
        assert position.target_next == base + 5
        assert position.sequence_next == 50 + 5 * step


def test_an_entry_never_passes_what_is_queued_or_on_its_way() -> None:
    run = following()
    push(run)
    assert run.entry(NOW) == entry_at(run, 100)
    run.take(NOW)
    assert run.entry(NOW) == entry_at(run, 100)
    run.answered(answer(40), "", NOW)
    moved = run.entry(NOW)
    assert moved is not None
    assert (moved.source_next, moved.source_epoch, moved.target_next, moved.sequence_next) == (110, 5, 50, 50)
    push(run)
    assert run.entry(NOW) == moved


def entry_at(run: LaneRun, source_next: int) -> LedgerEntry:
    assert run.acked is not None
    return replace(run.acked, source_next=source_next, time_ms=NOW)


def test_batches_that_were_dropped_are_passed_when_nothing_is_left_before_them() -> None:
    run = following()
    push(run)
    run.fetch_offset, run.fetch_epoch = 130, 6
    assert run.position() == 100
    acknowledged(run, 40)
    assert run.position() == 130
    passed = run.entry(NOW)
    assert passed is not None
    assert (passed.source_next, passed.source_epoch, passed.target_next, passed.sequence_next) == (130, 6, 50, 50)


def test_dropped_batches_are_not_passed_before_the_target_confirmed_the_position() -> None:
    run = following(target_next=None, source_next=110, sequence=50)
    run.fetch_offset = 130
    assert run.position() == 100
    push(run)
    acknowledged(run, 57)
    assert run.position() == 140


def test_dropped_batches_are_passed_where_others_write_behind_our_last_record() -> None:
    """All that came home is passed, though nobody knows where our next record lands: else it is read again at each attach."""
    run = following(target_next=None)
    run.fetch_offset, run.fetch_epoch = 130, 6
    passed = run.entry(NOW)
    assert passed is not None
    assert (passed.source_next, passed.source_epoch, passed.target_next, passed.sequence_next) == (130, 6, 40, 40)


def test_a_confirmed_start_counts_as_a_position_at_once() -> None:
    run = following()
    run.fetch_offset = 130
    assert run.position() == 130


def test_after_a_failure_the_position_is_the_last_acknowledgement() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    run.fetch_offset = 130
    assert run.position() == 130
    run.fail(Failure(None, "gone"))
    assert run.position() == 110


def test_a_lane_that_never_attached_has_no_position() -> None:
    run = LaneRun(lane(), 5, 1000, None)
    assert run.position() == -1
    assert run.entry(NOW) is None
    assert not run.is_finished()


def test_an_acknowledgement_below_the_expected_offset_stops_the_lane() -> None:
    run = following()
    push(run)
    run.take(NOW)
    run.answered(answer(39), "", NOW)
    assert run.failure is not None
    assert run.failure.finding == "below_expected"
    assert "expected at 40 at 39" in run.failure.message
    assert run.position() == 100
    assert run.counts.records == 0
    assert run.stopped.is_set()


def test_a_foreign_writer_makes_an_anchor_and_the_lane_goes_on() -> None:
    run = following()
    for base, now_ms in ((40, NOW), (57, NOW + SECOND_MS), (67, NOW + 5 * SECOND_MS)):
        push(run)
        acknowledged(run, base, now_ms)
    assert run.failure is None
    assert anchors(run) == ((100, 40), (110, 57))
    assert run.target_next == 77


def test_the_last_record_has_its_offsets_on_both_sides_whatever_is_passed_over_after_it() -> None:
    run = following()
    push(run, 10, source_last=107, source_next=120)
    send_all(run)
    run.answered(answer(45), "", NOW)
    known = run.entry(NOW)
    assert known is not None
    assert (known.last, known.source_next) == ((107, 54), 120)


def test_since_when_offsets_differ_is_noted_once() -> None:
    run = following(replace(entry(100, 100, 40), differs_at=-1))
    for base, changes in ((100, {}), (110, {"gap_at": 117}), (120, {}), (131, {})):
        push(run, 10, **changes)
        send_all(run)
        run.answered(answer(base), "", NOW)
        assert run.acked is not None
        assert run.acked.differs_at == (-1 if base == 100 else 117)


def anchors(run: LaneRun) -> tuple[tuple[int, int], ...]:
    assert run.acked is not None
    return run.acked.anchors


def test_a_gap_in_the_source_makes_an_anchor() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    run.fetch_offset = 115
    push(run)
    acknowledged(run, 50, NOW + SECOND_MS)
    assert anchors(run) == ((100, 40), (115, 50))


@pytest.mark.parametrize("pause_ms", [0, 1, SECOND_MS - 1])
def test_of_several_anchors_in_one_second_the_last_is_kept(pause_ms: int) -> None:
    assert changed_twice(pause_ms) == ((100, 40), (120, 70))


def test_anchors_a_second_apart_are_both_kept() -> None:
    assert changed_twice(SECOND_MS) == ((100, 40), (110, 55), (120, 70))


def changed_twice(pause_ms: int) -> tuple[tuple[int, int], ...]:
    """The anchors of a lane whose delta changed at 110 and, after the pause, at 120."""
    run = following()
    push(run)
    acknowledged(run, 40)
    push(run)
    acknowledged(run, 55, NOW + 5 * SECOND_MS)
    push(run)
    acknowledged(run, 70, NOW + 5 * SECOND_MS + pause_ms)
    return anchors(run)


def test_the_lanes_first_anchor_is_never_replaced() -> None:
    """Before it nothing could be translated."""
    run = following()
    push(run)
    acknowledged(run, 40)
    push(run)
    acknowledged(run, 55)
    assert anchors(run) == ((100, 40), (110, 55))


def test_a_change_every_tenth_of_a_second_is_anchored_once_a_second() -> None:
    run = following()
    base = 40
    for step in range(100):
        push(run)
        acknowledged(run, base, NOW + step * 100)
        base += 11
    steps = (0, *range(10, 100, 10), 99)
    assert anchors(run) == tuple((100 + 10 * step, 40 + 11 * step) for step in steps)


def test_the_same_delta_is_anchored_once_however_long_it_holds() -> None:
    run = following()
    for step in range(20):
        push(run)
        acknowledged(run, 40 + 10 * step, NOW + step * SECOND_MS)
    assert anchors(run) == ((100, 40),)


def test_a_batch_merged_over_a_gap_is_anchored_at_its_end_too() -> None:
    """What follows the gap has another delta than the batch's first record."""
    run = following()
    push(run)
    acknowledged(run, 40)
    push(run, 10, source_next=125)
    acknowledged(run, 50, NOW + SECOND_MS)
    assert anchors(run) == ((100, 40), (125, 60))
    push(run)
    acknowledged(run, 60, NOW + 9 * SECOND_MS)
    assert anchors(run) == ((100, 40), (125, 60)), "the delta after the gap is known already"


def test_a_first_batch_merged_over_a_gap_is_anchored_at_both_ends() -> None:
    run = following()
    push(run, 10, source_next=115)
    acknowledged(run, 40)
    assert anchors(run) == ((100, 40), (115, 50))


def test_an_anchor_of_the_attempt_before_is_never_replaced() -> None:
    run = following(replace(entry(), anchors=((60, 0),)))
    push(run)
    acknowledged(run, 55)
    assert anchors(run) == ((60, 0), (100, 55))
    run.fail(Failure(6, "moved"))
    run.begin(run_start(run), NOW)
    push(run)
    acknowledged(run, 70)
    assert anchors(run) == ((60, 0), (100, 55), (110, 70))


def test_anchors_are_thinned_out_and_the_first_and_the_newest_stay() -> None:
    run = following()
    base = 40
    for step in range(50):
        push(run)
        acknowledged(run, base, NOW + step * SECOND_MS)
        base += 11
    assert len(anchors(run)) == 32
    assert anchors(run)[0] == (100, 40)
    assert anchors(run)[-16:] == tuple((100 + 10 * step, 40 + 11 * step) for step in range(34, 50))


def test_sequences_wrap_in_the_queue_and_in_the_entry() -> None:
    known = entry(sequence_next=2**31 - 4)
    run = following(known)
    first, second = push(run), push(run)
    assert (first.sequence, second.sequence) == (2**31 - 4, 6)
    acknowledged(run, 40)
    assert run.acked is not None
    assert run.acked.sequence_next == 6


# -- errors -------------------------------------------------------------------------------------------------------------


def test_answers_after_the_first_error_are_not_judged() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    for _ in range(4):
        push(run)
    assert send_all(run) == 4
    run.answered(answer(50), "", NOW)
    run.answered(answer(-1, 6), "moved", NOW)
    run.answered(answer(0), "", NOW)
    run.answered(answer(-1, 45), "out of order", NOW)
    assert run.failure == Failure(6, "moved")
    assert run.position() == 120
    assert run.counts.records == 20
    assert run.counts.refused == 1
    assert run.target_next == 60


def test_after_an_error_nothing_is_sent_and_idle_comes_with_the_last_answer() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    for _ in range(7):
        push(run)
    assert send_all(run) == 5
    run.answered(answer(-1, 7), "timed out", NOW)
    assert not run.queue
    assert not run.can_send(NOW)
    assert not run.wants_data(1 << 30)
    assert run.stopped.is_set()
    for _ in range(4):
        assert not run.idle.is_set()
        run.answered(answer(-1, 45), "", NOW)
    assert run.idle.is_set()


def test_the_first_failure_is_the_one_that_counts() -> None:
    run = following()
    run.fail(Failure(2, "corrupt"))
    run.fail(Failure(None, "closed"))
    assert run.failure == Failure(2, "corrupt")


def test_a_lost_connection_ends_everything_on_its_way() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    for _ in range(6):
        push(run)
    send_all(run)
    run.connection_ended("broker 2: closed")
    assert run.failure == Failure(None, "broker 2: closed")
    assert not run.in_flight
    assert not run.queue
    assert run.idle.is_set()
    assert run.queued_bytes == 0
    assert run.position() == 110


def test_attach_clears_a_failure_and_counts() -> None:
    run = following()
    run.fail(Failure(6, "moved"))
    run.begin(run_start(run), NOW + 5)
    assert run.failure is None
    assert not run.stopped.is_set()
    assert run.counts.attaches == 2
    assert run.state is LaneState.FOLLOWING


def test_the_batch_that_was_refused_is_named_by_its_source_offset() -> None:
    """Not by the position: between the two there may be batches that were dropped."""
    run = following()
    push(run)
    acknowledged(run, 40)
    run.fetch_offset = 115
    push(run)
    push(run)
    send_all(run)
    run.answered(answer(-1, 87), "invalid record", NOW)
    run.answered(answer(-1, 45), "", NOW)
    assert run.refused.first == 115


def test_the_size_of_a_refused_batch_is_remembered_for_the_next_cut() -> None:
    run = following()
    assert run.refused.size == 0
    push(run, size=4321)
    push(run, size=77)
    run.take(NOW)
    run.answered(answer(-1, 10), "too large", NOW)
    assert run.refused.size == 4321


def test_a_lane_is_clean_when_every_batch_sent_was_answered() -> None:
    run = following()
    assert run.is_clean()
    push(run)
    run.take(NOW)
    assert not run.is_clean()
    run.answered(answer(-1, 6), "moved", NOW)
    assert run.is_clean()


def test_a_lane_whose_connection_ended_is_not_clean() -> None:
    run = following()
    push(run)
    run.take(NOW)
    run.connection_ended("closed")
    assert not run.is_clean()


def test_a_lost_source_leaves_the_target_clean() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    run.fail(Failure(None, "broker 1: closed", finding="source"))
    assert run.is_clean()


@pytest.mark.parametrize("finding", ["source", "source_range", "source_refused", "corrupt"])
def test_what_was_read_before_the_source_failed_is_sent_and_its_answers_count(finding: str) -> None:
    """M1: acknowledged records are not repeated, and records in memory are not lost with the source's."""
    run = following()
    push(run)
    acknowledged(run, 40)
    for _ in range(2):
        push(run)
    run.take(NOW)
    run.fail(Failure(None, "the source's leader moved", finding=finding))
    run.fail(Failure(None, "a second look at the same", finding="source"))
    assert not run.wants_data(1 << 20), "nothing more is read"
    run.answered(answer(50), "", NOW)
    assert send_all(run) == 1, "what is queued goes"
    assert not run.stopped.is_set()
    run.answered(answer(60), "", NOW)
    assert run.stopped.is_set() and run.is_clean() and run.position() == 130
    assert run.failure is not None and run.failure.finding == finding


@pytest.mark.parametrize("finding", ["source_cut", "source_replaced"])
def test_of_a_source_that_is_another_nothing_more_is_sent_but_answers_count(finding: str) -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    for _ in range(3):
        push(run)
    run.take(NOW)
    run.take(NOW)
    run.fail(Failure(0, "it was cut", finding=finding))
    assert run.stopped.is_set() and not run.can_send(NOW)
    run.answered(answer(50), "", NOW)
    run.answered(answer(-1, 6), "moved", NOW)
    assert run.position() == 120 and run.idle.is_set()
    assert run.failure is not None and run.failure.finding == finding


def test_answers_after_a_refused_batch_do_not_count_whatever_the_source_said_before() -> None:
    """P4: after the first error of a batch the target may have taken a later one alone."""
    run = following()
    push(run)
    acknowledged(run, 40)
    for _ in range(3):
        push(run)
    send_all(run)
    run.fail(Failure(0, "it was cut", finding="source_cut"))
    run.answered(answer(-1, 7), "not replicated", NOW)
    run.answered(answer(60), "", NOW)
    assert run.position() == 110


@pytest.mark.parametrize("finding", ["source", "source_range", "source_reset", "corrupt", "record", "below_expected"])
def test_a_finding_of_ours_is_clean_once_every_answer_has_come(finding: str) -> None:
    run = following()
    push(run)
    run.take(NOW)
    run.fail(Failure(None, "stopped", finding=finding))
    assert not run.is_clean()
    run.answered(answer(40), "", NOW)
    assert run.is_clean()


# -- reading and draining -----------------------------------------------------------------------------------------------


def test_a_lane_with_enough_on_its_way_wants_no_data() -> None:
    run = following()
    assert run.wants_data(250)
    push(run)
    push(run)
    assert run.wants_data(250)
    push(run)
    assert not run.wants_data(250)
    acknowledged(run, 40)
    assert run.queued_bytes == 200
    assert run.wants_data(250)


def test_queued_bytes_are_right_after_an_error_and_a_new_start() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    for _ in range(4):
        push(run)
    send_all(run)
    for code in (6, 45, 45, 45):
        run.answered(answer(-1, code), "", NOW)
    run.begin(run_start(run), NOW)
    assert run.queued_bytes == 0
    push(run)
    assert run.queued_bytes == 100
    acknowledged(run, 50)
    assert run.queued_bytes == 0


def test_a_draining_lane_reads_no_more_but_sends_what_it_has() -> None:
    run = following()
    push(run)
    push(run)
    run.drain()
    assert not run.wants_data(1 << 30)
    assert run.stopped.is_set()
    assert not run.idle.is_set()
    acknowledged(run, 40)
    acknowledged(run, 50)
    assert run.idle.is_set()
    assert run.position() == 120


def test_an_empty_lane_is_drained_at_once() -> None:
    run = following()
    run.drain()
    assert run.idle.is_set()

    async def waits() -> None:
        await asyncio.wait_for(run.idle.wait(), 1)

    asyncio.run(waits())


def test_a_lane_with_an_end_is_finished_when_all_below_it_is_acknowledged() -> None:
    run = following(until=115)
    push(run)
    assert run.wants_data(1 << 30)
    push(run)
    assert not run.wants_data(1 << 30)
    acknowledged(run, 40)
    assert not run.is_finished()
    acknowledged(run, 50)
    assert run.is_finished()


def test_a_lane_that_found_everything_on_the_target_is_finished_wherever_it_lies() -> None:
    run = following(target_next=None, until=130)
    assert not run.is_finished()
    push(run)
    run.fetch_offset = 130
    assert not run.is_finished()
    run = following(target_next=None, source_next=130, sequence=50, until=130)  # attached there
    assert run.position() < 130
    assert run.is_finished()
    run.fail(Failure(None, "gone"))
    assert not run.is_finished()


def test_a_lane_without_an_end_is_never_finished() -> None:
    run = following()
    push(run)
    acknowledged(run, 40)
    assert not run.is_finished()


def test_the_state_keeps_since_when_it_holds() -> None:
    run = following()
    run.become(LaneState.PARKED, "too large", NOW + 10)
    run.become(LaneState.PARKED, "too large", NOW + 20)
    assert run.since_ms == NOW + 10
    run.become(LaneState.PARKED, "not allowed", NOW + 30)
    assert run.since_ms == NOW + 30


def test_counts_tell_raw_rebuilt_dropped_and_latency() -> None:
    run = following()
    push(run, max_timestamp=NOW - 12)
    acknowledged(run, 40)
    push(run, raw=False, max_timestamp=-1)
    acknowledged(run, 50)
    for reason in ("control", "aborted", "control"):
        run.drop(reason)
    counts = run.counts
    assert (counts.records, counts.bytes, counts.raw_batches, counts.rebuilt_batches) == (20, 200, 1, 1)
    assert counts.dropped == {"control": 2, "aborted": 1}
    meter = run.meter.take()
    assert run.times.take_samples() == [12]
    assert (meter["records"], meter["batches"], sum(meter["latency"])) == (20, 2, 10)


# -- times --------------------------------------------------------------------------------------------------------------


def test_the_oldest_record_that_is_not_acknowledged_says_since_when_a_lane_waits() -> None:
    run = following()
    assert run.waiting_since() == 0
    push(run, since_ms=NOW - 70)
    push(run, since_ms=NOW - 50)
    assert run.waiting_since() == NOW - 70
    run.take(NOW)
    assert run.waiting_since() == NOW - 70
    run.answered(answer(40), "", NOW)
    assert run.waiting_since() == NOW - 50
    acknowledged(run, 50)
    assert run.waiting_since() == 0


def test_a_lane_that_has_read_nothing_of_its_backlog_waits_since_the_last_copied_record() -> None:
    run = following()
    push(run, max_timestamp=NOW - 33)
    acknowledged(run, 40)
    run.source_end = 500
    assert run.waiting_since() == NOW - 33


def test_a_lane_that_lost_its_connection_waits_since_what_was_on_its_way_and_sends_it_again() -> None:
    run = following()
    push(run, since_ms=NOW - 70)
    push(run, since_ms=NOW - 50)
    run.take(NOW)
    run.source_end = 120
    run.connection_ended("gone")
    assert run.meter.retried == 10
    assert run.waiting_since() == NOW - 70


def test_a_refused_batch_and_what_was_sent_after_it_are_tried_again() -> None:
    run = following()
    for since_ms in (NOW - 90, NOW - 80, NOW - 70):
        push(run, since_ms=since_ms)
    acknowledged(run, 40)
    assert send_all(run) == 2
    run.source_end = 130
    run.answered(answer(-1, 87), "refused", NOW)
    assert run.waiting_since() == NOW - 80
    run.answered(answer(-1, 45), "out of order", NOW)
    assert run.meter.retried == 20
    assert run.waiting_since() == NOW - 80


# -- buffers ------------------------------------------------------------------------------------------------------------


def loaded(batches: int) -> tuple[LaneRun, Pool]:
    """A lane whose batches all lie in one fetched buffer; the reader has let go of it."""
    run, pool = following(), Pool()
    chunk = pool.chunk()
    for _ in range(batches):
        push(run, chunk=chunk)
    chunk.release()
    assert pool.out == 1
    return run, pool


def test_a_buffer_without_a_batch_goes_back_at_once() -> None:
    pool = Pool()
    pool.chunk().release()
    assert pool.out == 0


def test_a_buffer_goes_back_with_its_last_acknowledgement() -> None:
    run, pool = loaded(3)
    acknowledged(run, 40)
    acknowledged(run, 50)
    assert pool.out == 1
    acknowledged(run, 60)
    assert pool.out == 0


def test_a_buffer_goes_back_when_the_lane_fails_after_the_answers_due() -> None:
    run, pool = loaded(8)
    acknowledged(run, 40)
    assert send_all(run) == 5
    run.answered(answer(-1, 6), "moved", NOW)
    assert pool.out == 1, "what is on its way may still be read by the socket"
    for _ in range(4):
        run.answered(answer(-1, 45), "", NOW)
    assert pool.out == 0


def test_a_buffer_goes_back_when_the_connection_ends() -> None:
    run, pool = loaded(8)
    acknowledged(run, 40)
    send_all(run)
    run.connection_ended("closed")
    assert pool.out == 0


def test_a_buffer_goes_back_when_the_connection_ends_after_an_error() -> None:
    run, pool = loaded(8)
    acknowledged(run, 40)
    send_all(run)
    run.answered(answer(-1, 6), "moved", NOW)
    run.connection_ended("closed")
    assert pool.out == 0
    assert run.failure == Failure(6, "moved")


def test_a_buffer_goes_back_when_an_acknowledgement_is_below_the_expected_offset() -> None:
    run, pool = loaded(3)
    run.take(NOW)
    run.answered(answer(0), "", NOW)
    assert pool.out == 0


def test_a_batch_knows_where_it_ends() -> None:
    item = batch(following(), 7)
    assert (item.source_first, item.source_next, item.sequence) == (100, 107, 40)
