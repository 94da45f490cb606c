"""The last hour of every flow, a point every five seconds: what the page draws."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from heliograph.rest.summaries import flow_summary

if TYPE_CHECKING:
    from heliograph.rest.scene import Scene

STEP_SECONDS = 5
_POINTS = 3600 // STEP_SECONDS
FIELDS = ("records_per_s", "bytes_per_s", "lag_records", "lag_ms", "latency_p50_ms", "latency_p99_ms")


class History:
    """One ring for each flow."""

    def __init__(self) -> None:
        self._rings: dict[str, deque[tuple[Any, ...]]] = {}
        self._taken = float("-inf")

    def is_due(self, now: float) -> bool:
        return now - self._taken >= STEP_SECONDS

    def take(self, scene: Scene, now: float) -> None:
        self._taken = now
        for name in scene.flows:
            summary = flow_summary(scene, name)
            latency = summary["latency_ms"]
            values = {**summary, "latency_p50_ms": latency["p50"], "latency_p99_ms": latency["p99"]}
            ring = self._rings.setdefault(name, deque(maxlen=_POINTS))
            ring.append((scene.run.get("time_ms", 0), *(values[field] for field in FIELDS)))

    def of(self, flow: str, seconds: int) -> dict[str, Any]:
        """Columns, oldest first."""
        points = list(self._rings.get(flow, ()))[-max(1, seconds // STEP_SECONDS) :]
        columns = list(zip(*points, strict=True)) or [()] * (len(FIELDS) + 1)
        return {"step_s": STEP_SECONDS, "time_ms": list(columns[0])} | {
            field: list(column) for field, column in zip(FIELDS, columns[1:], strict=True)
        }
