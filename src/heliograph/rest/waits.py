"""How long the oldest record of every lane waits, written into its row with every view: a lane that reports nothing waits on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Waits:
    """Knows the lanes in which a record waits, and looks at no others."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}

    def take(self, lane: str, since_ms: int) -> None:
        """0: none waits."""
        if since_ms > 0:
            self._since[lane] = since_ms
        else:
            self._since.pop(lane, None)

    def forget(self, lane: str) -> None:
        self._since.pop(lane, None)

    def write(self, rows: Mapping[str, dict[str, Any]], now_ms: int) -> None:
        for lane, since_ms in self._since.items():
            if lane in rows:
                rows[lane]["lag_ms"] = max(0, now_ms - since_ms)
