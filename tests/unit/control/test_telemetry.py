"""Telemetry: rows of few lanes every second, of many in parts and less often, put together again by who reads."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

from heliograph.control import telemetry
from heliograph.control.board import Board
from heliograph.control.telemetry import LANES_IN_A_RECORD, newest, rows_are_due, rows_of
from tests.unit.control.fakes import report_row

MANY = LANES_IN_A_RECORD * 2 + 1


def nobody(_: str) -> dict[str, Any]:
    """Nobody stopped a lane."""
    return {}


def about(time_ms: int) -> dict[str, Any]:
    return {"time_ms": time_ms, "run": "r"}


def rows(count: int, state: str = "following") -> list[dict[str, Any]]:
    return [{"lane": f"A->B/t/{number}", "state": state} for number in range(count)]


def snapshot(flow: str, about: dict[str, Any], lanes: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """As who reads the topic sees it."""
    texts = None if lanes is None else [json.dumps(lane) for lane in lanes]
    return [json.loads(record) for record in telemetry.snapshot(flow, about, texts)]


def test_few_lanes_are_in_the_one_record_of_a_second() -> None:
    (record,) = snapshot("A->B", about(5), rows(3))
    assert newest([record]) == {"version": 1, "flow": "A->B", "time_ms": 5, "run": "r", "lanes": rows(3)}


def test_many_lanes_come_in_parts_that_fit_a_message_and_stay_until_the_next_ones_are_whole() -> None:
    first = snapshot("A->B", about(1), rows(MANY))
    assert [len(record.get("lanes", ())) for record in first] == [0, LANES_IN_A_RECORD, LANES_IN_A_RECORD, 1]
    between = snapshot("A->B", about(2), None)
    assert [record.get("lanes") for record in between] == [None]
    then = snapshot("A->B", about(3), rows(MANY, "parked"))
    told = newest(chain(first, between, then[:-1]))
    assert (told["time_ms"], told["lanes"]) == (3, rows(MANY))
    assert newest(chain(first, between, then))["lanes"] == rows(MANY, "parked")


def test_parts_alone_say_nothing() -> None:
    assert newest([]) == {}
    assert newest(snapshot("A->B", about(1), rows(MANY))[1:]) == {}


def test_rows_are_due_a_second_for_every_so_many_lanes() -> None:
    assert rows_are_due(LANES_IN_A_RECORD, 0.0)
    assert not rows_are_due(LANES_IN_A_RECORD * 10, 9.9)
    assert rows_are_due(LANES_IN_A_RECORD * 10, 10.0)


def test_lanes_that_no_task_has_are_told_with_the_reason() -> None:
    board = Board()
    board.take("one", [report_row("A->B/t/0"), report_row("A->C/t/0")], {})
    waiting = {"A->B/t/0": "known", "A->B/u/0": "refused", "A->C/u/0": "of another flow"}
    first, second = map(json.loads, rows_of("A->B", board, waiting, nobody))
    assert first["lane"] == "A->B/t/0"
    assert "counts" not in first
    assert second == {"lane": "A->B/u/0", "state": "parked", "reason": "refused"}


def test_what_somebody_stopped_is_told_with_their_reason() -> None:
    board = Board()
    board.take("one", [report_row("A->B/t/0")], {})
    told = [
        json.loads(rows_of("A->B", board, {}, held)[0])
        for held in (nobody, lambda _: {"state": "paused", "reason": "paused: why"}, nobody)
    ]
    assert [row["state"] for row in told] == ["following", "paused", "following"]


def test_what_was_stopped_before_any_task_had_it_is_told_too() -> None:
    """As after a restart: nobody will report of it, and it is not merely waiting."""
    waiting = {"A->B/t/0": "", "A->B/t/1": ""}
    paused = {"state": "paused", "reason": "why", "since_ms": 3}
    told = rows_of("A->B", Board(), waiting, lambda key: paused if key == "A->B/t/1" else {})
    assert [json.loads(row) for row in told] == [{"lane": "A->B/t/1", **paused}]


def test_what_a_report_changed_is_told_next_time() -> None:
    board = Board()
    told = []
    for position in (3, 3, 4):
        board.take("one", [report_row("A->B/t/0", position=position, counts={"records": position})], {})
        told += [json.loads(row) for row in rows_of("A->B", board, {}, nobody)]
    assert [(row["position"], row["totals"]["records"]) for row in told] == [(3, 3), (3, 3), (4, 4)]
