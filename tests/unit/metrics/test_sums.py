"""Sums over tasks that each count from 0, and peaks of the last while."""

from __future__ import annotations

from heliograph.metrics.sums import Peaks, add_news, copy_of, difference


def test_a_sum_grows_by_what_is_new_in_a_report() -> None:
    sums: dict[str, object] = {}
    first = {"n": 3, "list": [1, 0], "deep": {"s": 0.5}, "peaks": {"n": 9}}
    then = {"n": 5, "list": [1, 4], "deep": {"s": 0.5, "t": 2.0}, "peaks": {"n": 1}}
    add_news(sums, first, {})
    add_news(sums, then, first)
    add_news(sums, first, {})
    assert sums == {"n": 8, "list": [2, 4], "deep": {"s": 1.0, "t": 2.0}}


def test_a_copy_does_not_change_with_its_original() -> None:
    sums = {"n": 1, "deep": {"list": [1]}}
    copy = copy_of(sums)
    add_news(sums, {"n": 2, "deep": {"list": [5]}}, {})
    assert copy == {"n": 1, "deep": {"list": [1]}}
    assert difference(sums, copy) == {"n": 2, "deep": {"list": [5]}}


def test_a_peak_is_told_for_one_to_two_spans() -> None:
    peaks = Peaks(30)
    peaks.take({"size": 5}, 100)
    peaks.take({"size": 3}, 110)
    assert peaks.most(115) == {"size": 5}
    peaks.take({"size": 2}, 135)
    assert peaks.most(136) == {"size": 5}
    assert peaks.most(166) == {"size": 2}
    assert peaks.most(300) == {}
