"""One number of one metric, with its labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import NamedTuple


@dataclass(frozen=True)
class Buckets:
    """A histogram: counts by bucket, one more than there are bounds, and the sum of the values."""

    bounds: Sequence[float]
    counts: Sequence[int]
    total: float

    def cumulated(self) -> Iterator[tuple[float, int]]:
        """By bound, the last one infinite: how many values are not above it."""
        return zip((*self.bounds, inf), accumulate(self.counts), strict=True)


class Sample(NamedTuple):
    """`labels` are values, in the order of the metric's own labels."""

    metric: str
    labels: tuple[str, ...]
    value: float | Buckets
