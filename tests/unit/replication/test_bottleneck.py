"""What keeps a flow from copying faster."""

from __future__ import annotations

import pytest

from heliograph.replication.bottleneck import bottleneck, held_words

EVEN = {"source": 0.3, "target": 0.3, "throttled": 0.3, "busy": 0.1}


@pytest.mark.parametrize(
    ("most", "words"),
    [
        ("source", "waiting for source"),
        ("target", "waiting for target"),
        ("throttled", "throttled"),
        ("busy", "the mirror itself is busy"),
    ],
)
def test_a_flow_that_is_behind_is_held_up_by_what_takes_most_of_its_time(most: str, words: str) -> None:
    assert bottleneck(EVEN | {most: 0.9}, 1.5, 100.0) == words


def test_a_flow_that_keeps_up_waits_for_new_records() -> None:
    assert bottleneck({"busy": 0.9, "source": 0.1}, 0.9, 100.0) == "waiting for source"


def test_a_flow_at_rest_has_nothing_to_do() -> None:
    assert bottleneck({"source": 1.0}, 0.0, 0.0) == "nothing to do"


def test_without_any_measure_nothing_is_blamed() -> None:
    assert bottleneck({}, 500.0, 0.0) == "nothing to do"


def test_what_is_paused_keeps_records_back_unless_the_rest_is_behind_too() -> None:
    assert bottleneck({"source": 1.0}, 0.0, 100.0, is_paused=True) == "paused"
    assert bottleneck({"target": 1.0}, 9.0, 100.0, is_paused=True) == "waiting for target"


@pytest.mark.parametrize(
    ("lanes", "words"),
    [
        ([], ""),
        ([("a", "following"), ("b", "parked")], ""),
        ([("a", "paused"), ("b", "following")], "1 topic paused"),
        ([("a", "paused"), ("a", "paused"), ("b", "paused"), ("c", "done")], "2 topics paused"),
        ([("a", "paused"), ("a", "following")], "1 partition paused"),
        ([("a", "paused"), ("b", "paused"), ("b", "draining")], "1 topic and 1 partition paused"),
        ([("a", "paused"), ("b", "paused")], "paused"),
    ],
)
def test_what_of_a_flow_is_paused_is_said_in_words(lanes: list[tuple[str, str]], words: str) -> None:
    assert held_words(lanes) == words
