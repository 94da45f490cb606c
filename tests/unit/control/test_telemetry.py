"""Telemetry: rows of few lanes every second, of many in parts and less often, put together again by who reads."""

from __future__ import annotations

from itertools import chain
from typing import Any

from heliograph.control.board import Board
from heliograph.control.telemetry import LANES_IN_A_RECORD, newest, rows_are_due, rows_of, snapshot
from tests.unit.control.fakes import report_row

MANY = LANES_IN_A_RECORD * 2 + 1


def about(time_ms: int) -> dict[str, Any]:
    return {"time_ms": time_ms, "run": "r"}


def rows(count: int, state: str = "following") -> list[dict[str, Any]]:
    return [{"lane": f"A->B/t/{number}", "state": state} for number in range(count)]


def test_few_lanes_are_in_the_one_record_of_a_second() -> None:
    (record,) = snapshot("A->B", about(5), rows(3))
    assert newest([record]) == {"version": 1, "flow": "A->B", "time_ms": 5, "run": "r", "lanes": rows(3)}


def test_many_lanes_come_in_parts_that_fit_a_message_and_stay_until_the_next_ones_are_whole() -> None:
    first = list(snapshot("A->B", about(1), rows(MANY)))
    assert [len(record.get("lanes", ())) for record in first] == [0, LANES_IN_A_RECORD, LANES_IN_A_RECORD, 1]
    between = list(snapshot("A->B", about(2), None))
    assert [record.get("lanes") for record in between] == [None]
    then = list(snapshot("A->B", about(3), rows(MANY, "parked")))
    told = newest(chain(first, between, then[:-1]))
    assert (told["time_ms"], told["lanes"]) == (3, rows(MANY))
    assert newest(chain(first, between, then))["lanes"] == rows(MANY, "parked")


def test_parts_alone_say_nothing() -> None:
    assert newest([]) == {}
    assert newest(list(snapshot("A->B", about(1), rows(MANY)))[1:]) == {}


def test_rows_are_due_a_second_for_every_so_many_lanes() -> None:
    assert rows_are_due(LANES_IN_A_RECORD, 0.0)
    assert not rows_are_due(LANES_IN_A_RECORD * 10, 9.9)
    assert rows_are_due(LANES_IN_A_RECORD * 10, 10.0)


def test_lanes_that_no_task_has_are_told_with_the_reason() -> None:
    board = Board()
    board.take("one", [report_row("A->B/t/0"), report_row("A->C/t/0")], {})
    waiting = {"A->B/t/0": "known", "A->B/u/0": "refused", "A->C/u/0": "of another flow"}
    held = {"A->B/t/0": {"state": "paused", "reason": "paused: why"}}
    told = rows_of("A->B", board, waiting, lambda key: held.get(key, {}))
    assert [row["lane"] for row in told] == ["A->B/t/0", "A->B/u/0"]
    assert (told[0]["state"], told[0]["reason"]) == ("paused", "paused: why")
    assert told[1] == {"lane": "A->B/u/0", "state": "parked", "reason": "refused"}
