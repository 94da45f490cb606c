"""Positions of a flow's lanes, as the job that commits them looks at them."""

from __future__ import annotations

from heliograph.control.board import Board
from heliograph.control.positions import Positions
from tests.unit.control.fakes import report_row


def report(board: Board, lane: str, position: int) -> None:
    board.take("one", [report_row(lane, counts={}, position=position)], {})


def test_positions_are_those_that_were_last_reported_of_this_flow() -> None:
    board = Board()
    positions = Positions(board, "A->B")
    assert positions.now() == {}
    report(board, "A->B/orders/0", 5)
    report(board, "A->B/orders/1", -1)
    report(board, "A->B2/orders/2", 9)
    assert positions.now() == {("orders", 0): 5}
    report(board, "A->B/orders/1", 7)
    assert positions.now()[("orders", 1)] == 7
    board.forget_lane("A->B/orders/1")
    assert ("orders", 1) not in positions.now()


def test_of_lanes_at_rest_none_is_looked_at() -> None:
    board = Board()
    positions = Positions(board, "A->B")
    report(board, "A->B/orders/0", 5)
    positions.now()
    board.lanes.clear()  # a look at the board would find nothing
    assert positions.now() == {("orders", 0): 5}
