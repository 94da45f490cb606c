"""Loads of lanes: smoothed, falling to nothing when a lane stands still."""

from __future__ import annotations

import pytest

from heliograph.control.board import Board
from heliograph.control.loads import Loads
from heliograph.model.lanes import LaneId
from tests.unit.control.fakes import report_row

LANE = LaneId("A->B", "t", 0)


def test_a_load_follows_what_a_lane_carries_and_falls_when_it_stands_still() -> None:
    board = Board()
    loads = Loads(board)
    for total in (1000, 2000, 3000):
        board.take("one", [report_row(LANE.key, counts={"bytes": total})], {})
        loads.weigh(board.take_heard())
    assert loads.by_lane[LANE] == pytest.approx(1000)
    loads.weigh(set())
    assert loads.by_lane[LANE] == pytest.approx(800)
    for _ in range(60):
        loads.weigh(set())
    assert loads.by_lane[LANE] < 1


def test_a_lane_that_is_reported_and_carries_nothing_has_no_load() -> None:
    board = Board()
    loads = Loads(board)
    board.take("one", [report_row(LANE.key, counts={"bytes": 0})], {})
    loads.weigh(board.take_heard())
    assert loads.by_lane == {}
