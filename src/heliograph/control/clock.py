"""The clocks: the wall for what people and Kafka read, two others for durations. Tests hand in their own.

The monotonic one stands still while a machine is suspended: silence of others is measured with it, because whoever slept heard
nothing. What *we* may still count on is measured with the one that runs on: others did not sleep.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

_RUNS_ON: int | None = getattr(time, "CLOCK_BOOTTIME", None)


@dataclass(frozen=True)
class Clock:
    """The real clocks of this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def awake_or_not(self) -> float:
        """Seconds that pass also while the machine is suspended, where the system has such a clock."""
        return time.clock_gettime(_RUNS_ON) if _RUNS_ON is not None else time.monotonic()
