"""Times of one lane: record age, replication latency, and since when a record waits, which makes the lag in seconds.

A batch counts as its newest record does; only the first and the last batch of a read are looked at for the age. The clock is an
argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

_SAMPLES_KEPT = 4096
_SAMPLES_TOLD = 256


Ack = tuple[int, int, int, int]
"""An acknowledged batch: its newest timestamp, when it was acknowledged, how many records and bytes it has."""


class Spread:
    """How many values there were, their sum, the least, the most and the last; none is negative."""

    __slots__ = ("count", "last", "least", "most", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = self.most = self.last = 0.0
        self.least = inf

    def add(self, values: Sequence[float]) -> None:
        """Some more, at least one."""
        self.count += len(values)
        self.total += sum(values)
        self.last = values[-1]
        self.most = max(self.most, max(values))
        self.least = min(self.least, min(values))

    def figures(self) -> list[float] | None:
        """Last, least, most and mean; None before the first value."""
        return [self.last, self.least, self.most, round(self.total / self.count, 1)] if self.count else None


class LaneTimes:
    """Since a task began to carry the lane; timestamps are the source's, in ms; 0 stands for none."""

    __slots__ = ("_samples", "acks", "age", "at_end_ms", "began_ms", "copied_ms", "latency", "stuck_ms")

    def __init__(self) -> None:
        self.latency = Spread()
        self.age = Spread()
        self.at_end_ms = 0
        """When the source last had nothing that was not read."""
        self.copied_ms = 0
        """The timestamp of the newest record of the last copied batch."""
        self.stuck_ms = 0
        """Since when a record waits that could not be sent when the lane stopped."""
        self.began_ms = 0
        self.acks: list[Ack] = []
        """What was acknowledged and not summed up yet (meters.py)."""
        self._samples: list[float] = []

    def began(self, now_ms: int) -> None:
        """The lane attached."""
        self.began_ms = self.began_ms or now_ms

    def read(self, timestamp: int, now_ms: int) -> None:
        if timestamp > 0:
            self.age.add((max(0, now_ms - timestamp),))

    def take_acks(self) -> list[Ack]:
        """What was acknowledged since the last call; its latencies count from now on."""
        acks, self.acks = self.acks, []
        self.copied_ms = acks[-1][0]
        latencies = latencies_of(acks)
        if latencies:
            self.latency.add(latencies)
            self._samples = (self._samples + latencies)[-_SAMPLES_KEPT:]
        return acks

    def take_samples(self) -> list[float]:
        """Latencies since the last call, not all of them if they were many."""
        samples, self._samples = self._samples, []
        return samples[:: max(1, len(samples) // _SAMPLES_TOLD)]

    def stuck_at(self, head_ms: int | None) -> None:
        """The lane stopped: what waits first now waits until something is copied again."""
        self.stuck_ms = self.stuck_ms or max(0, head_ms or 0)

    def waiting_since(self, head_ms: int | None, is_behind: bool) -> int:
        """Since when the oldest record waits that is not copied yet; 0: none does.

        `head_ms` is said of the oldest one that was read. One that is still to be read is as old as the last copied one, as far
        as is known, but not older than the moment when the source last had nothing new: a timestamp may be years old.
        Where no record has a timestamp, the lane waits since it began.
        """
        if head_ms is None and not is_behind:
            return 0
        copied_ms = self.acks[-1][0] if self.acks else self.copied_ms
        since = self.stuck_ms or (max(copied_ms, self.at_end_ms) if head_ms is None else head_ms)
        return since if since > 0 else self.began_ms


def latencies_of(acks: Sequence[Ack]) -> list[int]:
    """Of those that have a timestamp."""
    return [max(0, now_ms - timestamp) for timestamp, now_ms, _, _ in acks if timestamp > 0]
