"""What the target has acknowledged of a flow, by source partition. Of thousands of lanes those are looked at that were reported."""

from __future__ import annotations

from collections.abc import Mapping

from heliograph.control.board import Board
from heliograph.kafka.client import Partition


class Positions:
    """Of one flow, from look to look."""

    def __init__(self, board: Board, flow: str) -> None:
        self._board = board
        self._prefix = f"{flow}/"
        self._mark = 0
        self._known: dict[Partition, int] = {}

    def now(self) -> Mapping[Partition, int]:
        """Changes with the next look."""
        for key in self._board.changed_since(self._mark):
            if key.startswith(self._prefix):
                self._see(key)
        self._mark = self._board.mark
        return self._known

    def _see(self, key: str) -> None:
        _, topic, number = key.rsplit("/", 2)
        view = self._board.lanes.get(key)
        position = view.row.get("position", -1) if view is not None else -1
        if position >= 0:
            self._known[topic, int(number)] = position
        else:
            self._known.pop((topic, int(number)), None)
