"""The driver's slate: sums over attempts, the newest row, rates and quantiles."""

from __future__ import annotations

from heliograph.control.board import Board
from heliograph.model.events import Event, EventKind
from tests.unit.control.fakes import report_row

LANE = "A->B/orders/0"
OTHER = "A->B/orders/1"


def take(board: Board, attempt: str, records: int, lane: str = LANE, **changes: object) -> None:
    board.take(
        attempt, [report_row(lane, counts={"records": records, "bytes": records * 10}, **changes)], {"process": 1}
    )


def test_reports_of_one_attempt_are_running_totals() -> None:
    board = Board()
    for records in (10, 10, 25):
        take(board, "one", records)
    assert board.lanes[LANE].totals.records == 25
    assert board.lanes[LANE].totals.bytes == 250
    assert board.lanes[LANE].totals.attaches == 1


def test_attempts_add_up() -> None:
    board = Board()
    take(board, "one", 10)
    take(board, "two", 3)
    take(board, "one", 12)
    take(board, "two", 8)
    assert board.lanes[LANE].totals.records == 20
    assert board.lanes[LANE].totals.attaches == 2


def test_reasons_add_up_by_name() -> None:
    board = Board()
    for attempt, dropped in (("one", {"control": 2}), ("one", {"control": 3, "aborted": 1}), ("two", {"control": 1})):
        board.take(attempt, [report_row(LANE, counts={"dropped": dropped, "rebuilt": {"gap": 1}})], {})
    assert board.lanes[LANE].totals.dropped == {"control": 4, "aborted": 1}
    assert board.lanes[LANE].totals.rebuilt == {"gap": 2}


def test_sums_stay_when_attempts_are_forgotten() -> None:
    board = Board()
    take(board, "one", 10)
    take(board, "two", 5)
    board.forget_attempts({"two"})
    assert board.slots.keys() == {"two"}
    take(board, "two", 6)
    take(board, "three", 1)
    assert board.lanes[LANE].totals.records == 17


def test_the_newest_report_is_shown() -> None:
    board = Board()
    take(board, "one", 10, position=10)
    take(board, "one", 20, position=20)
    assert board.lanes[LANE].row["position"] == 20


def test_a_task_that_waits_does_not_hide_the_one_that_carries() -> None:
    board = Board()
    take(board, "one", 10, position=10)
    take(board, "two", 0, position=-1, state="waiting")
    assert board.lanes[LANE].row["state"] == "following"


def test_a_task_that_handed_over_does_not_hide_its_successor() -> None:
    board = Board()
    take(board, "new", 5, position=20)
    take(board, "old", 20, position=20, state="done", finished=False)
    assert board.lanes[LANE].row["state"] == "following"


def test_how_far_a_task_got_before_it_handed_over_counts_at_once() -> None:
    """Its records are in the sums: positions that come a second later would not fit them."""
    board = Board()
    take(board, "one", 10, state="following", position=10, target_next=12, waiting_since_ms=5)
    take(board, "one", 30, state="done", position=30, target_next=32, waiting_since_ms=0)
    row = board.lanes[LANE].row
    assert (row["state"], row["position"], row["target_next"], row["waiting_since_ms"]) == ("following", 30, 32, 0)
    take(board, "two", 5, state="following", position=35, target_next=37)
    take(board, "one", 30, state="done", position=30, target_next=32)
    assert board.lanes[LANE].row["position"] == 35


def test_a_lane_that_is_finished_is_shown_as_done() -> None:
    board = Board()
    take(board, "one", 5, position=20)
    take(board, "one", 5, position=20, state="done", finished=True)
    assert board.lanes[LANE].row["state"] == "done"


def test_a_parked_lane_is_shown() -> None:
    board = Board()
    take(board, "one", 5, position=20)
    take(board, "one", 5, position=20, state="parked", reason="too large")
    assert board.lanes[LANE].row["reason"] == "too large"


def test_rates_are_over_the_last_seconds() -> None:
    board = Board()
    assert board.rates(0) == (0, 0)
    for second in range(1, 11):
        take(board, "one", 100 * second)
        board.rates(float(second))
    assert board.rates(10.0) == (100.0, 1000.0)
    for second in range(11, 20):
        board.rates(float(second))
    assert board.rates(20.0) == (0.0, 0.0)


def test_latencies_have_quantiles() -> None:
    board = Board()
    assert board.latency(0.5) is None
    board.take("one", [report_row(LANE, latency_ms=[float(number) for number in range(100)])], {})
    assert board.latency(0.5) == 50
    assert board.latency(0.99) == 99
    assert board.latency(1.0) == 99


def test_events_are_told_once_and_what_is_none_is_passed_over() -> None:
    board = Board()
    event = Event(1, "A->B", "orders-0", EventKind.DATA_LOSS, "lost 3")
    rows = [report_row(LANE, events=[event.as_fields(), {"version": 99}]), report_row(OTHER, events=[])]
    board.take("one", rows, {})
    assert board.take_events() == [event]
    assert board.take_events() == []


def test_records_of_others_and_skipped_ones_add_up() -> None:
    board = Board()
    board.take("one", [report_row(LANE, counts={"foreign": 3, "skipped": {"skip": 1}})], {})
    board.take("two", [report_row(LANE, counts={"foreign": 2, "skipped": {"skip": 1, "dead-letter": 4}})], {})
    totals = board.lanes[LANE].totals
    assert (totals.foreign, totals.skipped) == (5, {"skip": 2, "dead-letter": 4})


def test_what_a_forgotten_lane_carried_stays_in_the_sums() -> None:
    board = Board()
    take(board, "one", 10)
    take(board, "one", 5, lane=OTHER)
    board.forget_lane(LANE)
    assert list(board.lanes) == [OTHER]
    assert board.carried() == (15, 150)


def test_only_lanes_that_were_reported_since_are_heard_of() -> None:
    board = Board()
    take(board, "one", 10)
    take(board, "one", 5, lane=OTHER)
    assert board.take_heard() == {LANE, OTHER}
    assert board.take_heard() == set()
    take(board, "two", 1)
    assert board.take_heard() == {LANE}


def test_parked_lanes_are_known_until_they_go_on_or_are_gone() -> None:
    board = Board()
    take(board, "one", 1, state="parked")
    take(board, "one", 1, lane=OTHER, state="parked")
    assert board.parked == {LANE, OTHER}
    take(board, "one", 2)
    board.forget_lane(OTHER)
    assert board.parked == set()


def test_what_a_new_task_does_not_know_yet_is_what_was_known_before() -> None:
    """Else the lag would fall to nothing and rise again at every hand-over."""
    board = Board()
    take(board, "one", 10, position=10, source_end=50, target_next=9, waiting_since_ms=700)
    take(board, "two", 0, position=-1, source_end=-1, target_next=-1, waiting_since_ms=0, state="attaching")
    row = board.lanes[LANE].row
    assert (row["state"], row["position"], row["source_end"], row["target_next"]) == ("attaching", 10, 50, 9)
    assert row["waiting_since_ms"] == 700
    take(board, "two", 0, position=10, source_end=60, target_next=9, waiting_since_ms=800)
    assert (board.lanes[LANE].row["source_end"], board.lanes[LANE].row["waiting_since_ms"]) == (60, 700), (
        "nothing moved"
    )
    take(board, "two", 1, position=11, source_end=60, target_next=10, waiting_since_ms=800)
    assert (board.lanes[LANE].row["source_end"], board.lanes[LANE].row["waiting_since_ms"]) == (60, 800)


def test_the_end_of_a_source_that_nobody_reads_makes_its_lane_wait() -> None:
    board = Board()
    take(board, "one", 10, position=10, source_end=10, state="done", finished=True)
    board.changed = set()
    board.see_end(LANE, 10, 5000)
    assert board.changed == set()
    for end, now_ms in ((15, 6000), (20, 7000)):
        board.see_end(LANE, end, now_ms)
        assert board.changed == {LANE}
        row = board.lanes[LANE].row
        assert (row["source_end"], row["waiting_since_ms"]) == (end, 6000)
    board.see_end(LANE, 9, 8000)
    assert board.lanes[LANE].row["waiting_since_ms"] == 0


def test_the_end_of_a_lane_that_no_task_has_had_is_kept_until_one_reports_it() -> None:
    board = Board()
    board.see_end(LANE, 10, 5000)
    board.see_end(LANE, 12, 6000)
    assert (board.ends, board.changed) == ({LANE: (12, 5000)}, {LANE})
    take(board, "one", 0, position=-1, source_end=-1, state="attaching")
    assert board.ends, "it does not know yet"
    take(board, "one", 0, position=3, source_end=12)
    assert board.ends == {}


def test_what_lanes_carried_that_are_gone_is_kept_by_flow() -> None:
    board = Board()
    take(board, "one", 10)
    board.take("one", [report_row(OTHER, counts={"records": 5, "dropped": {"control": 2}})], {})
    board.forget_lane(LANE)
    board.forget_lane(OTHER)
    gone = board.gone["A->B"]
    assert (gone.records, gone.bytes, gone.dropped) == (15, 100, {"control": 2})


def test_whoever_asks_is_told_of_the_lanes_that_were_reported_since() -> None:
    board = Board()
    take(board, "one", 1)
    take(board, "one", 1, OTHER)
    mark = board.mark
    assert list(board.changed_since(0)) == [OTHER, LANE]
    assert list(board.changed_since(mark)) == []
    take(board, "one", 2)
    take(board, "one", 3)
    assert list(board.changed_since(mark)) == [LANE]
    board.see_end(OTHER, 1_000_000, 5)
    assert list(board.changed_since(mark)) == [OTHER, LANE]
    mark = board.mark
    board.forget_lane(LANE)
    assert list(board.changed_since(mark)) == [LANE]


def test_lanes_that_no_task_reads_are_known() -> None:
    board = Board()
    take(board, "one", 1, state="parked")
    take(board, "one", 1, OTHER, state="following")
    assert board.unread == {LANE}
    take(board, "one", 2, state="draining")
    take(board, "one", 2, OTHER, state="waiting")
    assert board.unread == {OTHER}
    board.forget_lane(OTHER)
    assert board.unread == set()
