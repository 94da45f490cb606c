"""Whose offsets count: those that groups committed for partitions that are copied."""

from __future__ import annotations

from heliograph.control.group_positions import _spots
from heliograph.kafka.consumer_groups import Commits, Committed
from heliograph.model.lanes import Lane, LaneId

LANE = Lane(LaneId("A->B", "orders", 0), "A", "B", "A.orders", "s", "t")
LANES = {("orders", 0): LANE}


def test_only_what_groups_committed_for_copied_partitions_counts() -> None:
    """testFindConsumerGroupsInCommonScenarios: by their names groups are chosen before."""
    commits = Commits(
        {
            "nothing": {},
            "of other topics": {("payments", 0): Committed(5)},
            "of another partition": {("orders", 1): Committed(5)},
            "of both": {("payments", 0): Committed(5), ("orders", 0): Committed(7, "noted")},
            "of this one": {("orders", 0): Committed(0)},
        }
    )
    assert list(_spots(LANES, commits, False)) == [
        ("of both", LANE, Committed(7, "noted"), False),
        ("of this one", LANE, Committed(0), False),
    ]


def test_without_groups_there_is_nothing() -> None:
    assert list(_spots(LANES, Commits(), False)) == []
