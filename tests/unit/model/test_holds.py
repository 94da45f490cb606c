"""Holds: what they cover, which one counts, how they are kept."""

from __future__ import annotations

import pytest

from heliograph.model.holds import Hold, HoldKind, hold_of, hold_on
from heliograph.model.lanes import LaneId

LANE = LaneId("A->B", "orders", 1)


def hold(topic: str = "", partition: int = -1, kind: HoldKind = HoldKind.PAUSE, flow: str = "A->B") -> Hold:
    return Hold(flow, topic, partition, kind, "why", "ann", 5)


@pytest.mark.parametrize(
    ("held", "subject", "covers"),
    [
        (hold(), "A->B", True),
        (hold("orders"), "A->B/orders", True),
        (hold("orders", 1), "A->B/orders/1", True),
        (hold("orders", 0), "A->B/orders/0", False),
        (hold("payments"), "A->B/payments", False),
        (hold(flow="A->C"), "A->C", False),
    ],
)
def test_a_hold_covers_a_flow_a_topic_or_a_partition(held: Hold, subject: str, covers: bool) -> None:
    assert held.subject == subject
    assert held.covers(LANE) is covers
    assert (hold_on(LANE, [held]) is held) is covers


def test_the_narrower_is_within_the_wider() -> None:
    assert hold("orders", 1).is_within(hold("orders"))
    assert hold("orders").is_within(hold())
    assert not hold().is_within(hold("orders"))
    assert not hold("orders", 0).is_within(hold("orders", 1))
    assert not hold(flow="A->C").is_within(hold())


def test_a_pause_counts_before_a_drain_and_the_wider_before_the_narrower() -> None:
    drain, wide, narrow = hold(kind=HoldKind.DRAIN), hold("orders"), hold("orders", 1)
    assert hold_on(LANE, [drain, narrow, wide]) is wide
    assert hold_on(LANE, [drain]) is drain
    assert hold_on(LANE, []) is None


def test_a_drain_knows_where_each_lane_ends() -> None:
    drain = Hold("A->B", "", -1, HoldKind.DRAIN, "", "", 5, ((LANE.key, 40),))
    assert drain.end_of(LANE) == 40
    assert drain.end_of(LaneId("A->B", "orders", 2)) == 0, "one that was not there is carried no further"


def test_it_is_told_as_a_sentence() -> None:
    assert hold().sentence == "paused by ann: why"
    assert Hold("A->B", "", -1, HoldKind.DRAIN, "", "", 5).sentence == "drained: no reason given"


def test_beside_a_state_that_says_it_is_stopped_only_the_reason_is_told() -> None:
    assert hold().why == "why (by ann)"
    assert Hold("A->B", "", -1, HoldKind.PAUSE, "", "", 5).why == "no reason given"


def test_it_is_read_as_it_was_written() -> None:
    drain = Hold("A->B", "orders", 1, HoldKind.DRAIN, "why", "ann", 5, ((LANE.key, 40),))
    assert hold_of(drain.as_fields()) == drain
    with pytest.raises(ValueError, match="stop"):
        hold_of({**drain.as_fields(), "kind": "stop"})
