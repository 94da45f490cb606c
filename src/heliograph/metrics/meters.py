"""What a task notes while it copies: a few additions for each request and each batch, none for a record.

Everything counts up from 0 while a task lives, so that a report that got lost loses nothing; only `peaks` begin anew with every
report. The driver sums what its tasks tell (control/meters.py). The clock is an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from heliograph.metrics.histogram import Histogram
from heliograph.metrics.lane_times import Ack, LaneTimes

SOURCE, TARGET, THROTTLED, BUSY = "source", "target", "throttled", "busy"
KINDS = (SOURCE, TARGET, THROTTLED, BUSY)
"""What a slot's time goes to: waiting for the source, for the target, for a limit's next bytes; or work."""
_OFF = "off"
_ACKS_KEPT = 4096


class Stopwatch:
    """What one reader does, and for how long it did each thing. It is off until the first `enter`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seconds = dict.fromkeys((*KINDS, _OFF), 0.0)
        self._kind = _OFF
        self._since = clock()
        self._last = (_OFF, 0.0)

    def enter(self, kind: str) -> None:
        now = self._clock()
        seconds = now - self._since
        self._seconds[self._kind] += seconds
        self._last = (self._kind, seconds)
        self._kind, self._since = kind, now

    def blame(self, kind: str) -> None:
        """What was done before the last `enter` turned out to have been something else."""
        before, seconds = self._last
        self._seconds[before] -= seconds
        self._seconds[kind] += seconds
        self._last = (kind, seconds)

    def stop(self) -> None:
        self.enter(_OFF)

    def waits(self) -> dict[str, float]:
        """Seconds of each kind of waiting until now."""
        now = self._clock()
        return {
            kind: self._seconds[kind] + (now - self._since if kind == self._kind else 0.0)
            for kind in (SOURCE, TARGET, THROTTLED)
        }


class FlowMeter:
    """One flow in one slot: what was read, what was acknowledged, how old it was then."""

    def __init__(self) -> None:
        self.fetches = self.fetched_bytes = self.wan_bytes = self.fetch_throttle_ms = 0
        self.records = self.batches = self.batch_bytes = self.retried = 0
        self.latency = Histogram()
        self._peaks = {"fetch_bytes": 0, "fetch_throttle_ms": 0, "batch_bytes": 0}
        self._fresh: list[LaneTimes] = []
        """Lanes that noted something since it was last summed up."""

    def fetched(self, size: int, on_the_line: int, throttle_ms: int) -> None:
        """One answer: bytes of records, bytes of the whole of it, and how long the broker held it back."""
        self.fetches += 1
        self.fetched_bytes += size
        self.wan_bytes += on_the_line
        self.fetch_throttle_ms += throttle_ms
        peaks = self._peaks
        peaks["fetch_bytes"] = max(peaks["fetch_bytes"], size)
        peaks["fetch_throttle_ms"] = max(peaks["fetch_throttle_ms"], throttle_ms)

    def note(self, lane: LaneTimes, ack: Ack) -> None:
        """One batch was acknowledged: kept as it is, because this happens thousands of times a second."""
        if not lane.acks:
            self._fresh.append(lane)
        lane.acks.append(ack)
        if len(lane.acks) >= _ACKS_KEPT:
            self.sum_up()

    def sum_up(self) -> None:
        """What was noted counts from now on, for the flow and for each lane."""
        fresh, self._fresh = self._fresh, []
        for lane in fresh:
            acks = lane.take_acks()
            _, _, counts, sizes = zip(*acks, strict=True)
            self.records += sum(counts)
            self.batches += len(acks)
            self.batch_bytes += sum(sizes)
            self._peaks["batch_bytes"] = max(self._peaks["batch_bytes"], max(sizes))
            for timestamp, now_ms, count, _ in acks:
                if timestamp > 0:  # without one nobody knows how old it was
                    self.latency.add(max(0, now_ms - timestamp), count)

    def take(self) -> dict[str, Any]:
        """For a report; peaks are told once."""
        self.sum_up()
        peaks, self._peaks = self._peaks, dict.fromkeys(self._peaks, 0)
        return {
            "fetches": self.fetches,
            "fetched_bytes": self.fetched_bytes,
            "wan_bytes": self.wan_bytes,
            "fetch_throttle_ms": self.fetch_throttle_ms,
            "records": self.records,
            "batches": self.batches,
            "batch_bytes": self.batch_bytes,
            "retried": self.retried,
            "latency": list(self.latency.counts),
            "latency_ms": self.latency.total,
            "peaks": peaks,
        }


class WriterMeter:
    """What one slot sends to one target, whichever flow it is of."""

    def __init__(self) -> None:
        self.requests = self.throttle_ms = 0
        self.seconds = 0.0
        self._slowest = 0.0

    def answered(self, seconds: float, throttle_ms: int) -> None:
        self.requests += 1
        self.seconds += seconds
        self.throttle_ms += throttle_ms
        self._slowest = max(self._slowest, seconds)

    def take(self) -> dict[str, Any]:
        slowest, self._slowest = self._slowest, 0.0
        return {
            "requests": self.requests,
            "request_seconds": self.seconds,
            "throttle_ms": self.throttle_ms,
            "peaks": {"request_seconds": slowest},
        }


class TimeSplit:
    """A slot's time since it began, for all of it and for each flow, from how long its loop slept and what readers waited for."""

    def __init__(self, now: float, slept: float) -> None:
        self._now = now
        self._slept = slept
        self._waits: dict[str, dict[str, float]] = {}
        self.slot = dict.fromkeys(KINDS, 0.0)
        self.flows: dict[str, dict[str, float]] = {}

    def add(self, now: float, slept: float, waits: Mapping[str, Mapping[str, float]]) -> None:
        """`waits` are the seconds that the readers of each flow waited since they began, by kind."""
        asleep = slept - self._slept
        busy = max(0.0, now - self._now - asleep)
        news = {flow: _less(found, self._waits.get(flow, {})) for flow, found in waits.items()}
        self._now, self._slept, self._waits = now, slept, {flow: dict(found) for flow, found in waits.items()}
        for flow, found in news.items():
            _add(self.flows.setdefault(flow, dict.fromkeys(KINDS, 0.0)), shared(asleep, busy, [found]))
        _add(self.slot, shared(asleep, busy, news.values()))


def shared(asleep: float, busy: float, waits: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The time that a loop slept, shared out as its readers waited meanwhile; who has no reader waits for the source."""
    sums = {kind: sum(found.get(kind, 0.0) for found in waits) for kind in (SOURCE, TARGET, THROTTLED)}
    whole = sum(sums.values())
    parts = {kind: asleep * seconds / whole for kind, seconds in sums.items()} if whole > 0 else {SOURCE: asleep}
    return {BUSY: busy, **parts}


def _less(now: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    return {kind: max(0.0, seconds - before.get(kind, 0.0)) for kind, seconds in now.items()}


def _add(sums: dict[str, float], more: Mapping[str, float]) -> None:
    for kind, seconds in more.items():
        sums[kind] += seconds
