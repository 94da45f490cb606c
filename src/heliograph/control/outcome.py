"""What a run comes to: which of its planned lanes got to their end, and which did not, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heliograph.control.board import Board
from heliograph.control.flow_watch import FlowWatch

_FINAL_SECONDS = 10.0
"""What keeps a lane for so long will not go away by itself."""


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    seconds: float
    records: int
    bytes: int
    lanes: int
    topics: int
    unfinished: tuple[tuple[str, str], ...]
    """Lanes that did not get to their end, with the reason."""


class Outcome:
    """`done` are the lanes that were carried to where `--until-caught-up` ends."""

    def __init__(self, watches: Sequence[FlowWatch], board: Board) -> None:
        self._watches = watches
        self._board = board
        self.done: set[str] = set()
        self._refused_since: dict[str, int] = {}

    def planned(self) -> list[str]:
        """All lanes of the first plan, and those for which no remote partition could be made."""
        return [key for watch in self._watches for key in _planned(watch)]

    def is_reached(self, now_ms: int) -> bool:
        """Every planned lane is done, or refused or parked for so long that it will not go on by itself."""
        if any(watch.opened is None and not watch.standing_by for watch in self._watches):
            return False
        self._refused_since = {key: self._refused_since.get(key, now_ms) for key in self._refused()}
        return all(key in self.done or self._is_final(key, now_ms) for key in self.planned())

    def _is_final(self, key: str, now_ms: int) -> bool:
        since = self._refused_since.get(key)
        row = self._board.lanes[key].row if key in self._board.lanes else {}
        if since is None and row.get("state") == "parked":
            since = row["since_ms"]
        return since is not None and now_ms - since > _FINAL_SECONDS * 1000

    def _refused(self) -> dict[str, str]:
        return {
            key: reason
            for watch in self._watches
            if watch.opened is not None
            for key, reason in watch.opened.refused.items()
        }

    def summary(self, seconds: float, until_caught_up: bool) -> Summary:
        unfinished: list[tuple[str, str]] = []
        refused = self._refused()
        for key in self.planned():
            if key in self.done or not until_caught_up:
                continue
            row = self._board.lanes[key].row if key in self._board.lanes else {}
            unfinished.append((key, refused.get(key) or row.get("reason") or "stopped before its end"))
        records, size = self._board.carried()
        return Summary(
            seconds=seconds,
            records=records,
            bytes=size,
            lanes=len(self.planned()),
            topics=len({key.rsplit("/", 1)[0] for key in self.planned()}),
            unfinished=tuple(unfinished),
        )


def _planned(watch: FlowWatch) -> list[str]:
    if watch.first is not None:
        return list(dict.fromkeys([*(lane.id.key for lane in watch.first.plan.lanes), *watch.first.refused]))
    waits_for = watch.waits_for
    return [f"{watch.name}/{topic}/{number}" for topic, number in waits_for.ends] if waits_for is not None else []
