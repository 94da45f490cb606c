"""What each lane carries, smoothed over some seconds: the next epoch's slots are balanced by it. Lanes at rest cost nothing."""

from __future__ import annotations

from heliograph.control.board import Board
from heliograph.model.lanes import LaneId

_KEPT = 0.8


class Loads:
    """`by_lane` in bytes per second."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self.by_lane: dict[LaneId, float] = {}
        self._carried: dict[str, int] = {}
        self._busy: set[str] = set()
        self._names: dict[str, LaneId] = {}

    def weigh(self, heard: set[str]) -> None:
        """Once a second, with the lanes that were reported since."""
        for key in heard | self._busy:
            view = self._board.lanes.get(key)
            size = view.totals.bytes if view is not None else self._carried.get(key, 0)
            carried = size - self._carried.get(key, 0)
            if not carried and key not in self._busy:
                continue
            self._carried[key] = size
            lane = self._names.get(key) or self._name(key)
            load = _KEPT * self.by_lane.get(lane, float(carried)) + (1 - _KEPT) * carried
            self.by_lane[lane] = load
            (self._busy.add if load >= 1 else self._busy.discard)(key)

    def _name(self, key: str) -> LaneId:
        flow, topic, partition = key.rsplit("/", 2)
        return self._names.setdefault(key, LaneId(flow, topic, int(partition)))
