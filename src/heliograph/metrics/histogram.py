"""Numbers counted in buckets: what it costs to know a distribution is one search in a short list.

A histogram is a list of counts, one for each bound and one for what lies above the last: it travels as such, sums by adding, and
the difference of two of them is the histogram of what came between.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

LATENCY_BOUNDS_MS = (
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    30_000,
    60_000,
    300_000,
    1_800_000,
    10_800_000,
)
"""From what a local cluster does to three hours of catching up."""


class Histogram:
    """Counts of values that are not above each bound and above the one before; `total` is their sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = LATENCY_BOUNDS_MS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float, weight: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += weight
        self.total += value * weight


def quantile(bounds: Sequence[float], counts: Sequence[int], share: float) -> float | None:
    """The value below which this share lies, as if values lay evenly within each bucket; None without values.

    What lies above the last bound is told as that bound: nothing more is known of it.
    """
    wanted = share * sum(counts)
    if not wanted:
        return None
    before, lower = 0, 0.0
    for bound, count in zip(bounds, counts, strict=False):
        if count and before + count >= wanted:
            return lower + (bound - lower) * (wanted - before) / count
        before, lower = before + count, bound
    return lower
