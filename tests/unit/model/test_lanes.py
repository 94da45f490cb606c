"""Lanes are looked up by the thousand."""

from __future__ import annotations

from dataclasses import replace

from heliograph.model.lanes import Identity, Lane, LaneId


def test_a_lane_is_found_by_all_that_it_is_and_hashed_by_its_name() -> None:
    lane = Lane(LaneId("A->B", "orders", 0), "A", "B", "A.orders", "s", "t")
    grown = replace(lane, max_batch_bytes=5)
    assert hash(lane) == hash(grown)
    assert {lane: 1}.get(grown) is None
    assert {lane: 1}[replace(grown, max_batch_bytes=lane.max_batch_bytes)] == 1


def test_names_of_lanes_sort_by_flow_topic_and_number() -> None:
    names = [LaneId("A->B", "orders", 10), LaneId("A->B", "orders", 9), LaneId("A->B", "a", 11)]
    assert [name.key for name in sorted(names)] == ["A->B/a/11", "A->B/orders/9", "A->B/orders/10"]


def test_an_identity_shuts_out_earlier_epochs_of_the_same_producer_only() -> None:
    now = Identity(4711, 5)
    assert now.shuts_out(Identity(4711, 4))
    assert not now.shuts_out(now) and not now.shuts_out(Identity(4711, 6)) and not now.shuts_out(Identity(4712, 4))
