"""Where the sources of those lanes end that nobody reads now: paused, parked, waiting. Else their lag would stand still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from heliograph.control.board import Board
from heliograph.control.clock import Clock
from heliograph.control.flow_watch import FlowWatch
from heliograph.errors import HeliographError
from heliograph.kafka.client import LATEST
from heliograph.kafka.log_ends import offsets_of
from heliograph.kafka.slot import Warm
from heliograph.model.lanes import Lane

_LOOK_SECONDS = 1.0
_AGAIN_SECONDS = 5.0


class SourceEnds:
    """Looks at intervals, at once where a lane has just been stopped; where all lanes follow it asks nobody.

    `carries`: whether a task has a lane.
    """

    def __init__(self, board: Board, warm: Warm, clock: Clock, carries: Callable[[str], bool]) -> None:
        self._board = board
        self._warm = warm
        self._clock = clock
        self._carries = carries
        self._asked: dict[str, float] = {}
        """When, by lane, as long as it is idle."""

    async def keep(self, watches: Callable[[], Sequence[FlowWatch]]) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            await asyncio.gather(*(self._look(watch) for watch in watches()))

    async def _look(self, watch: FlowWatch) -> None:
        lanes = {(lane.id.topic, lane.id.partition): lane.id.key for lane in _lanes(watch)}
        idle = {place: key for place, key in lanes.items() if self._is_due(key)}
        if not idle:
            return
        committed = watch.settings.isolation == "read_committed"
        try:
            ends = await offsets_of(self._warm.client(watch.settings.source), set(idle), LATEST, committed)
        except (HeliographError, TimeoutError):
            return  # the flow says so itself
        self._asked |= dict.fromkeys(idle.values(), self._clock.monotonic())
        for place, end in ends.items():
            if self._is_idle(idle[place]):
                self._board.see_end(idle[place], end, self._clock.now_ms())

    def _is_due(self, key: str) -> bool:
        if not self._is_idle(key):
            self._asked.pop(key, None)
            return False
        return self._clock.monotonic() - self._asked.get(key, -_AGAIN_SECONDS) >= _AGAIN_SECONDS

    def _is_idle(self, key: str) -> bool:
        # What a task said last of a lane that was taken from it stays on the board. One that was stopped before this run began
        # is never reported.
        return key in self._board.unread or not self._carries(key)


def _lanes(watch: FlowWatch) -> Sequence[Lane]:
    return watch.opened.plan.lanes if watch.opened is not None else ()
