"""The values everything else is made of."""

from __future__ import annotations

import pytest

from heliograph.model.clusters import Flow
from heliograph.model.lanes import LaneCounts, LaneId, next_sequence
from heliograph.model.topics import ConfigValue, Topic


def test_a_lanes_key_is_its_name_in_the_ledger() -> None:
    assert LaneId("A->B", "orders", 3).key == "A->B/orders/3"


def test_lanes_are_ordered_by_flow_topic_and_number() -> None:
    lanes = [LaneId("A->B", "b", 0), LaneId("A->B", "a", 10), LaneId("A->B", "a", 9)]
    assert [lane.partition for lane in sorted(lanes)] == [9, 10, 0]


def test_a_flow_is_named_by_its_direction() -> None:
    assert Flow("A", "B").name == "A->B"


@pytest.mark.parametrize(
    ("first", "count", "expected"),
    [(0, 0, 0), (0, 10, 10), (2**31 - 1, 1, 0), (2**31 - 2, 5, 3), (5, 2**31, 5)],
)
def test_sequences_wrap_at_two_to_the_thirty_first(first: int, count: int, expected: int) -> None:
    assert next_sequence(first, count) == expected


def test_counts_of_two_lanes_are_not_shared() -> None:
    one, two = LaneCounts(), LaneCounts()
    one.dropped["control"] = 1
    assert two.dropped == {}


@pytest.mark.parametrize(
    ("source", "is_default"),
    [
        ("DYNAMIC_TOPIC_CONFIG", False),
        ("TOPIC_CONFIG", False),
        ("DEFAULT_CONFIG", True),
        ("STATIC_BROKER_CONFIG", True),
    ],
)
def test_only_what_was_set_on_the_topic_is_no_default(source: str, is_default: bool) -> None:
    assert ConfigValue("x", source).is_default is is_default


def test_a_topics_config_has_a_fallback() -> None:
    topic = Topic("orders", "id", 1, {"a": ConfigValue("1"), "b": ConfigValue(None)})
    assert [topic.config(name, "none") for name in "abc"] == ["1", "none", "none"]
    assert topic.config("c") == ""
