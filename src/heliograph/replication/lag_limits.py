"""When a flow is too far behind, and when it no longer is: lag.limit.seconds.

A lane's lag in time is how long the oldest record that is not copied has waited. Knows no clock and tells nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_CALM_MS = 10_000
"""A lag around the limit is one lateness, not many."""


@dataclass(frozen=True)
class Verdict:
    """`is_late` has just begun or, if False, just ended; the sentence says how."""

    is_late: bool
    sentence: str


class LagLimit:
    """Of one flow, from look to look."""

    def __init__(self) -> None:
        self._late_since_ms: int | None = None
        self._calm_since_ms: int | None = None

    def look(self, lags_ms: Mapping[str, int], limit_s: int, now_ms: int) -> Verdict | None:
        """`lags_ms` are the lags of all lanes that are behind; a verdict when it changes."""
        late = {lane: lag for lane, lag in lags_ms.items() if limit_s and lag > limit_s * 1000}
        if late:
            self._calm_since_ms = None
            if self._late_since_ms is not None:
                return None
            self._late_since_ms = now_ms
            return Verdict(True, _late(late, limit_s))
        if self._late_since_ms is None:
            return None
        self._calm_since_ms = now_ms if self._calm_since_ms is None else self._calm_since_ms
        if now_ms - self._calm_since_ms < _CALM_MS:
            return None
        took = self._calm_since_ms - self._late_since_ms
        self._late_since_ms = self._calm_since_ms = None
        return Verdict(
            False, f"no record waits longer than lag.limit.seconds = {limit_s}; it was so for {took / 1000:,.0f} s"
        )


def _late(late: Mapping[str, int], limit_s: int) -> str:
    worst = max(late, key=lambda lane: late[lane])
    others = f", and {len(late) - 1:,} more lanes are late" if len(late) > 1 else ""
    return f"{worst}: a record waits for {late[worst] / 1000:,.0f} s; lag.limit.seconds is {limit_s:,}{others}"
