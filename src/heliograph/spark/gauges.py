"""What a task's process tells of itself: how long its event loop slept, worked, and was in system calls.

Costs two looks at a clock for every sleep of the loop, and a few sums once a second.
"""

from __future__ import annotations

import resource
import selectors
import time
from collections.abc import Callable
from typing import Any

from heliograph.kafka.slot import Slot
from heliograph.metrics.meters import TimeSplit


class PatientSelector(selectors.DefaultSelector):
    """Knows how long it waited: whoever made the loop asks `slept`."""

    def __init__(self) -> None:
        super().__init__()
        self.slept = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(timeout)  # a look, no sleep
        began = time.monotonic()
        try:
            return super().select(timeout)
        finally:
            self.slept += time.monotonic() - began


class SlotGauges:
    """The part of a report that is about the slot and its flows, not about lanes. `slept`: the loop's."""

    def __init__(self, slept: Callable[[], float]) -> None:
        self._slept = slept
        self._began = time.monotonic()
        self._system = _system_seconds()
        self._split = TimeSplit(self._began, slept())

    def read(self, slot: Slot) -> dict[str, Any]:
        now, slept = time.monotonic(), self._slept()
        self._split.add(now, slept, slot.waits())
        flows = {flow: meter.take() for flow, meter in slot.meters.items()}
        for flow, seconds in self._split.flows.items():
            flows[flow]["time"] = dict(seconds)
        return {
            "seconds": now - self._began,
            "io_seconds": _system_seconds() - self._system,
            "time": dict(self._split.slot),
            "flows": flows,
            "targets": {target: meter.take() for target, meter in slot.writer_meters.items()},
        }


def _system_seconds() -> float:
    """CPU time of this process in the system: sockets above all, and whatever else it asks the system for."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_stime
