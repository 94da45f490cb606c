"""Offsets in Connect's form: the last copied record of each partition; what may be set, and every reason why not."""

from __future__ import annotations

from typing import Any

import pytest

from heliograph.model.lanes import Identity, LaneId, LedgerEntry, Rule
from heliograph.replication.connect_offsets import BadOffset, begins, shown
from heliograph.replication.starts import Span

T0, T1, U0 = LaneId("A->B", "t", 0), LaneId("A->B", "t", 1), LaneId("A->B", "u", 0)
SPANS = {T0: Span(10, 50), T1: Span(0, 50), U0: Span(0, 0)}


def entry(lane: LaneId, position: int) -> LedgerEntry:
    return LedgerEntry(lane, 0, Identity(1, 0), Rule(), "c", "s", "t", 0, 0, position, -1, position, position)


def row(offset: Any, **partition: Any) -> dict[str, Any]:
    return {"partition": {"cluster": "A", "topic": "t", "partition": 0, **partition}, "offset": offset}


def test_the_last_copied_record_of_each_partition_in_order() -> None:
    assert shown("A", [entry(U0, 0), entry(T1, 7), entry(T0, 50)]) == [
        {"partition": {"cluster": "A", "partition": 0, "topic": "t"}, "offset": {"offset": 49}},
        {"partition": {"cluster": "A", "partition": 1, "topic": "t"}, "offset": {"offset": 6}},
    ]


def test_a_lane_begins_behind_the_record_and_never_before_the_source_does() -> None:
    assert begins([row({"offset": 20}), row({"offset": 49}, partition=1)], "A", SPANS) == {T0.key: 21, T1.key: 50}
    assert begins([row({"offset": 3})], "A", SPANS) == {T0.key: 10}
    assert begins([row(None)], "A", SPANS) == {T0.key: None}
    assert begins([row({"offset": 20}), row({"offset": 21})], "A", SPANS) == {T0.key: 22}, "the last one counts"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (row({"offset": -1}), "invalid value -1 for the 'offset' key, which cannot be negative"),
        (row({"offset": "x"}), "invalid value x for the 'offset' key, which must be an integer"),
        (row({"offset": True}), "must be an integer"),
        (row({"offset": 1.5}), "invalid value 1.5 for the 'offset' key, which must be an integer"),
        (
            row({"position": 1}),
            "{position=1} for source partition {cluster=A, partition=0, topic=t} is missing the 'offset'",
        ),
        (row({"offset": 50}), "t-0 ends at 50, so that its last record is 49"),
        (row(None, partition=-1), "invalid value -1 for the 'partition' key, which cannot be negative"),
        (row(None, partition="x"), "invalid value x for the 'partition' key, which must be an integer"),
        (row(None, partition=False), "must be an integer"),
        (row(None, partition=2), "is none that this connector copies"),
        (row(None, topic="zz"), "is none that this connector copies"),
        (row(None, cluster="Z"), "invalid value Z for the 'cluster' key, which must be A, the connector's source"),
        (
            {"partition": {"cluster": "A", "topic": "t"}, "offset": None},
            "is missing the 'partition' key, which is required",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_connects_words(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(BadOffset) as refused:
        begins([row({"offset": 20}), wrong], "A", SPANS)
    assert words in str(refused.value)
