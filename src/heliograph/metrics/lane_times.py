"""Times of one lane: record age, replication latency, and since when a record waits, which makes the lag in seconds.

A batch counts as its newest record does; only the first and the last batch of a read are looked at for the age. The clock is an
argument.
"""

from __future__ import annotations

_SAMPLES_KEPT = 4096
_SAMPLES_TOLD = 256


class Spread:
    """How many values there were, their sum, the least, the most and the last."""

    __slots__ = ("count", "last", "least", "most", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = self.least = self.most = self.last = 0.0

    def add(self, value: float) -> None:
        if not self.count or value < self.least:
            self.least = value
        if not self.count or value > self.most:
            self.most = value
        self.count += 1
        self.total += value
        self.last = value

    def figures(self) -> list[float] | None:
        """Last, least, most and mean; None before the first value."""
        return [self.last, self.least, self.most, round(self.total / self.count, 1)] if self.count else None


class LaneTimes:
    """Since a task began to carry the lane; timestamps are the source's, in ms; 0 stands for none."""

    __slots__ = ("_samples", "age", "at_end_ms", "began_ms", "copied_ms", "latency", "stuck_ms")

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
        self._samples: list[float] = []

    def began(self, now_ms: int) -> None:
        """The lane attached."""
        self.began_ms = self.began_ms or now_ms

    def read(self, timestamp: int, now_ms: int) -> None:
        if timestamp > 0:
            self.age.add(max(0, now_ms - timestamp))

    def copied(self, timestamp: int, now_ms: int) -> float | None:
        """A batch was acknowledged: its latency, if it has a timestamp."""
        self.stuck_ms = 0
        if timestamp <= 0:
            return None
        self.copied_ms = timestamp
        latency = float(max(0, now_ms - timestamp))
        self.latency.add(latency)
        if len(self._samples) < _SAMPLES_KEPT:
            self._samples.append(latency)
        return latency

    def take_samples(self) -> list[float]:
        """Latencies since the last call, not all of them if they were many."""
        samples, self._samples = self._samples, []
        return samples[:: max(1, len(samples) // _SAMPLES_TOLD)]

    def stuck_at(self, head_ms: int | None) -> None:
        """The lane stopped: what waits first now waits until something is copied again."""
        self.stuck_ms = self.stuck_ms or head_ms or 0

    def since(self, timestamp: int) -> int:
        """Since when a record waits that is read now: not for longer than since the source last had nothing new, whatever its
        producer says. A timestamp may be years old."""
        return max(timestamp, self.at_end_ms) if timestamp > 0 or self.at_end_ms else self.began_ms

    def waiting_since(self, head_ms: int | None, is_behind: bool) -> int:
        """Since when the oldest record waits that is not copied yet; 0: none does.

        `head_ms` is said of the oldest one that was read. One that is still to be read is as old as the last copied one, as far
        as is known.
        """
        if head_ms is None and not is_behind:
            return 0
        return self.stuck_ms or head_ms or self.since(self.copied_ms)
