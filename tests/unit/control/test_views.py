"""What the REST server is shown of a lane before any task has attached it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from heliograph.control.board import Board
from heliograph.control.views import Views
from tests.unit.control.fakes import report_row
from tests.unit.control.test_flow_watch import ENTRY

KEY = ENTRY.lane.key
PAUSED = {"state": "paused", "reason": "why", "since_ms": 3}


def row_of(board: Board, held: dict[str, Any], end: int) -> dict[str, Any]:
    views = Views(board, lambda _: held)
    plan = SimpleNamespace(ends={(ENTRY.lane.topic, ENTRY.lane.partition): end})
    views._opened = {ENTRY.lane.flow: SimpleNamespace(plan=plan, entries={KEY: ENTRY}, refused={})}  # type: ignore[dict-item]  # what a row needs
    views._remote = {KEY: "A.orders"}
    return views._row(KEY)


def test_a_lane_that_was_paused_before_the_run_began_says_what_waits() -> None:
    board, place = Board(), ENTRY.source_next
    row = row_of(board, PAUSED, place + 7)
    assert (row["state"], row["position"], row["source_end"]) == ("paused", place, place + 7)
    assert (row["target_next"], row["waiting_since_ms"]) == (ENTRY.target_next, 0)
    board.see_end(KEY, place + 20, 5_000)
    row = row_of(board, PAUSED, place + 7)
    assert (row["source_end"], row["waiting_since_ms"]) == (place + 20, 5_000)


def test_what_a_task_reported_counts_more_and_one_that_attaches_knows_nothing_yet() -> None:
    board, place = Board(), ENTRY.source_next
    board.take("one", [report_row(KEY, state="attaching", position=-1, source_end=-1)], {})
    row = row_of(board, {}, place)
    assert (row["state"], row["position"], row["source_end"], row["waiting_since_ms"]) == ("attaching", place, place, 0)
    board.take("one", [report_row(KEY, position=place + 5, source_end=place + 9)], {})
    row = row_of(board, {}, place)
    assert (row["state"], row["position"], row["source_end"]) == ("following", place + 5, place + 9)
