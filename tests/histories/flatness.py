"""Whether a measured quantity stays flat or grows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

SETTLING = 0.25
"""The first part of every run does not count: caches fill, heaps take their size."""
_PAIRS = 200


class Sample(NamedTuple):
    at: float
    """Seconds since the run began."""
    value: float


@dataclass(frozen=True)
class Tolerance:
    """What may be gained over the whole measurement without being growth: so much, or this share of it."""

    amount: float
    share: float = 0.0


TOLERANCES = {"memory": Tolerance(16.0, 0.08), "files": Tolerance(4.0), "sockets": Tolerance(4.0)}
"""By measure: megabytes, file descriptors, sockets."""


@dataclass(frozen=True)
class Trend:
    first: float
    """The median of the first third that counts."""
    last: float
    """The median of the last third."""
    per_hour: float
    """The median of the slopes between samples: a peak now and then does not move it."""
    is_growing: bool


def trend(samples: Sequence[Sample], tolerance: Tolerance) -> Trend:
    """Growing: the slope leads beyond the tolerance, and even the lows of the last third lie above the first third's middle."""
    kept = [sample for sample in samples if sample.at >= samples[-1].at * SETTLING] if samples else []
    if len(kept) < 6:
        raise ValueError(f"{len(kept)} samples are too few to judge")
    third = len(kept) // 3
    early, late = [s.value for s in kept[:third]], [s.value for s in kept[-third:]]
    first, last = median(early), median(late)
    slope = _slope(kept)
    allowed = max(tolerance.amount, tolerance.share * first)
    gained = slope * (kept[-1].at - kept[0].at)
    return Trend(first, last, slope * 3_600, gained > allowed and min(late) > first + allowed / 2)


def _slope(samples: Sequence[Sample]) -> float:
    """Theil and Sen's: the median over pairs that lie half the measurement apart."""
    half = len(samples) // 2
    step = max(1, half // _PAIRS)
    pairs = [(samples[place], samples[place + half]) for place in range(0, len(samples) - half, step)]
    return median((after.value - before.value) / (after.at - before.at) for before, after in pairs)
