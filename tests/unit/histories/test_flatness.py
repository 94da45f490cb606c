"""Flat or growing: the judgement of `make soak`, on made-up series."""

from __future__ import annotations

import math
import random

import pytest

from tests.histories.flatness import TOLERANCES, Sample, Tolerance, trend
from tests.histories.soak import told

TEN = Tolerance(10.0)


def series(value: object, count: int = 120) -> list[Sample]:
    assert callable(value)
    return [Sample(5.0 * place, float(value(5.0 * place))) for place in range(count)]


def test_what_stays_the_same_is_flat() -> None:
    found = trend(series(lambda _: 100.0), TEN)
    assert not found.is_growing
    assert (found.first, found.last, found.per_hour) == (100.0, 100.0, 0.0)


def test_a_steady_leak_grows_and_its_slope_is_told() -> None:
    found = trend(series(lambda at: 100.0 + at / 10), TEN)
    assert found.is_growing
    assert found.per_hour == pytest.approx(360.0)


def test_a_leak_shows_through_noise() -> None:
    chance = random.Random(1)
    assert trend(series(lambda at: 100.0 + at / 10 + chance.uniform(-5, 5)), TEN).is_growing


def test_noise_alone_is_flat() -> None:
    chance = random.Random(2)
    assert not trend(series(lambda _: 100.0 + chance.uniform(-30, 30)), TEN).is_growing


def test_what_rises_and_falls_with_every_epoch_is_flat() -> None:
    assert not trend(series(lambda at: 100.0 + 40.0 * math.sin(at / 8)), TEN).is_growing


def test_the_first_quarter_may_grow() -> None:
    assert not trend(series(lambda at: min(100.0, 20.0 + at)), TEN).is_growing


def test_a_few_peaks_do_not_make_it_grow() -> None:
    assert not trend(series(lambda at: 500.0 if at % 100 == 0 else 100.0), TEN).is_growing


def test_less_than_the_tolerance_is_flat_by_amount_and_by_share() -> None:
    rising = series(lambda at: 1_000.0 + at / 20)
    assert trend(rising, TEN).is_growing
    assert not trend(rising, Tolerance(10.0, 0.1)).is_growing
    assert not trend(rising, Tolerance(50.0)).is_growing


def test_what_falls_is_flat() -> None:
    assert not trend(series(lambda at: 1_000.0 - at), TEN).is_growing


@pytest.mark.parametrize("count", [0, 3, 7])
def test_too_few_samples_are_not_judged(count: int) -> None:
    with pytest.raises(ValueError, match="too few"):
        trend(series(lambda _: 1.0, count), TEN)


def test_each_part_is_judged_by_itself() -> None:
    flat, leak = series(lambda _: 100.0), series(lambda at: 100.0 + at)
    lines, growing = told({("driver", "memory"): flat, ("workers", "sockets"): leak})
    assert growing == ["sockets of the workers"]
    assert [line.split()[-1] for line in lines[1:]] == ["flat", "GROWS"]
    assert set(TOLERANCES) == {"memory", "files", "sockets"}
