"""Buckets: where a value falls, and what can be said of a distribution from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.metrics.histogram import LATENCY_BOUNDS_MS, Histogram, quantile


@pytest.mark.parametrize(("value", "place"), [(0, 0), (1, 0), (1.5, 1), (2, 1), (5, 2), (5.1, 3), (99, 3)])
def test_a_value_counts_in_the_first_bucket_whose_bound_it_does_not_exceed(value: float, place: int) -> None:
    histogram = Histogram((1, 2, 5))
    histogram.add(value)
    assert histogram.counts == [1 if at == place else 0 for at in range(4)]


def test_a_batch_counts_with_all_its_records() -> None:
    histogram = Histogram((10, 100))
    histogram.add(7, 500)
    histogram.add(40, 2)
    assert histogram.counts == [500, 2, 0]
    assert histogram.total == 7 * 500 + 40 * 2


def test_without_values_there_is_no_quantile() -> None:
    assert quantile((1, 2), [0, 0, 0], 0.5) is None


def test_values_lie_evenly_within_their_bucket() -> None:
    assert quantile((10, 20), [0, 100, 0], 0.5) == pytest.approx(15)
    assert quantile((10, 20), [0, 100, 0], 1.0) == pytest.approx(20)
    assert quantile((10, 20), [50, 50, 0], 0.25) == pytest.approx(5)


def test_what_lies_above_the_last_bound_is_told_as_that_bound() -> None:
    assert quantile((10, 20), [1, 0, 99], 0.99) == 20


@given(st.lists(st.integers(0, 20_000_000), min_size=1), st.floats(0.01, 1.0))
def test_a_quantile_lies_in_the_bucket_of_the_exact_one(values: list[int], share: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    found = quantile(LATENCY_BOUNDS_MS, histogram.counts, share)
    assert found is not None
    place = min(len(values) - 1, max(0, -int(-(share * len(values) - 1e-6) // 1) - 1))
    exact = sorted(values)[place]
    bounds = [0, *LATENCY_BOUNDS_MS]
    bucket = next((at for at in range(1, len(bounds)) if exact <= bounds[at]), None)
    if bucket is None:
        assert found == bounds[-1]
    else:
        assert bounds[bucket - 1] - 1e-6 <= found <= bounds[bucket] + 1e-6
