"""Numbers, sizes and times as people read them."""

from __future__ import annotations

import pytest

from heliograph.cli.words import ago, count, moment, size


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "lane", "0 lanes"),
        (1, "lane", "1 lane"),
        (2, "lane", "2 lanes"),
        (1234567, "record", "1,234,567 records"),
        (1234.6, "", "1,235"),
    ],
)
def test_a_count_is_grouped_and_has_its_plural(number: float, noun: str, text: str) -> None:
    assert count(number, noun) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1_234_567, "1.2 MB"),
        (5e9, "5.0 GB"),
        (7.25e12, "7.2 TB"),
        (5e15, "5000.0 TB"),
    ],
)
def test_a_size_is_in_units_of_a_thousand(number: float, text: str) -> None:
    assert size(number) == text


def test_a_moment_is_in_utc_to_the_second() -> None:
    assert moment(1_700_000_000_999) == "2023-11-14 22:13:20 UTC"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (86399, "23 h"),
        (200_000, "2 d"),
        (-5, "0 s"),
    ],
)
def test_ago_is_in_the_largest_whole_unit(seconds: int, text: str) -> None:
    assert ago(1_000_000_000, 1_000_000_000 - seconds * 1000) == text
