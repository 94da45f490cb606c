"""The job that looks whether records of a flow wait too long. When they do: replication/lag_limits.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Never

from heliograph.config.flows import FlowSettings
from heliograph.control.clock import Clock
from heliograph.control.jobs import Found
from heliograph.model.events import Event, EventKind
from heliograph.replication.lag_limits import LagLimit

_SUBJECT = "lag"
_LOOK_SECONDS = 1.0


class LagWatch:
    """`rows` are the flow's lanes as their tasks last told of them."""

    def __init__(
        self,
        settings: FlowSettings,
        rows: Callable[[], Iterable[Mapping[str, Any]]],
        clock: Clock,
        tell: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._rows = rows
        self._clock = clock
        self._tell = tell
        self._limit = LagLimit()

    @property
    def name(self) -> str:
        return "lag limit"

    @property
    def interval_s(self) -> float:
        return _LOOK_SECONDS

    async def look(self) -> Found[Never]:
        now_ms = self._clock.now_ms()
        lags = {_place(row["lane"]): _lag_ms(row, now_ms) for row in self._rows()}
        verdict = self._limit.look(lags, self._settings.jobs.watch.lag_limit_s, now_ms)
        if verdict is not None:
            kind = EventKind.LAG if verdict.is_late else EventKind.RECOVERED
            self._tell(Event(now_ms, self._settings.flow.name, _SUBJECT, kind, verdict.sentence))
        worst = max(lags.values(), default=0)
        return Found((), summary=f"a record waits for {worst / 1000:,.0f} s at the most", detail={"lag_ms": worst})

    async def apply(self, actions: Sequence[Never]) -> Sequence[str]:
        del actions
        return ()


def _lag_ms(row: Mapping[str, Any], now_ms: int) -> int:
    since: int = row["waiting_since_ms"]
    return max(0, now_ms - since) if since else 0


def _place(lane: str) -> str:
    _, topic, partition = lane.rsplit("/", 2)
    return f"{topic}-{partition}"
