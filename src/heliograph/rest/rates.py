"""Records and bytes per second of every lane over the last seconds, written into its row. A lane that reports nothing stands still."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

WINDOW_SECONDS = 5.0
_Sample = tuple[float, int, int]


class Rates:
    """Keeps samples of lanes that move, and of no others: 5,000 lanes at rest cost nothing."""

    def __init__(self) -> None:
        self._samples: dict[str, deque[_Sample]] = {}
        self._rest: dict[str, tuple[int, int]] = {}
        """What lanes that stand still had carried."""

    def take(self, lane: str, totals: Mapping[str, int], now: float) -> None:
        records, size = totals["records"], totals["bytes"]
        samples = self._samples.get(lane)
        if samples is None:
            before = self._rest.get(lane)
            self._rest[lane] = (records, size)
            if before is None or before == (records, size) or records < before[0]:
                return
            samples = self._samples[lane] = deque([(now - 1.0, *before)])
        elif records < samples[-1][1]:
            samples.clear()  # another run counts from the beginning
        samples.append((now, records, size))

    def write(self, rows: Mapping[str, dict[str, Any]], now: float) -> None:
        """The rates of all lanes that move, or have just stopped, into their rows."""
        for lane in list(self._samples):
            samples = self._samples[lane]
            while len(samples) > 1 and now - samples[0][0] > WINDOW_SECONDS:
                samples.popleft()
            then, last = samples[0], samples[-1]
            rates = (0.0, 0.0)
            if now - last[0] >= WINDOW_SECONDS:
                del self._samples[lane]
                self._rest[lane] = last[1:]
            elif last is not then:
                passed = max(now - then[0], 1.0)
                rates = (last[1] - then[1]) / passed, (last[2] - then[2]) / passed
            if lane in rows:
                rows[lane]["records_per_s"], rows[lane]["bytes_per_s"] = rates

    def forget(self, lane: str) -> None:
        self._samples.pop(lane, None)
        self._rest.pop(lane, None)
