"""The counterparts of MirrorClientTest."""

from __future__ import annotations

import pytest

from heliograph.replication.topic_names import DefaultPolicy, IdentityPolicy
from heliograph.replication.upstream import (
    checkpoint_topics,
    heartbeat_topics,
    path_of,
    remote_topics,
    replication_hops,
    upstream_clusters,
)

POLICY = DefaultPolicy()
HEARTBEATS = ["heartbeats", "source1.heartbeats", "source1.source2.heartbeats", "source3.source4.source5.heartbeats"]
TOPICS = ["topic1", "topic2", *HEARTBEATS]


def test_heartbeat_topics_are_those_that_began_as_one() -> None:
    assert heartbeat_topics([*TOPICS, "heartbeats1", "source1.heartbeats1", "heartbeats.x"], POLICY) == set(HEARTBEATS)


def test_checkpoint_topics_are_told_by_their_end() -> None:
    names = ["source1.checkpoints.internal", "source2.source1.checkpoints.internal"]
    assert checkpoint_topics([*TOPICS, *names, "checkpoints-internal", "source1.checkpoints"], POLICY) == set(names)


@pytest.mark.parametrize(
    ("source", "hops"),
    [("source1", 1), ("source2", 2), ("source3", 1), ("source4", 2), ("source5", 3), ("source6", -1), ("topic1", -1)],
)
def test_hops_are_counted_on_the_shortest_way(source: str, hops: int) -> None:
    assert replication_hops(TOPICS, POLICY, source) == hops


def test_the_shorter_of_two_ways_counts() -> None:
    assert replication_hops(["b.a.heartbeats", "a.heartbeats"], POLICY, "a") == 1


def test_upstream_clusters_are_all_on_the_way() -> None:
    assert upstream_clusters(TOPICS, POLICY) == {f"source{number}" for number in range(1, 6)}
    assert upstream_clusters(["topic1", "source9.topic", "heartbeats"], POLICY) == set()


def test_upstream_clusters_with_names_that_stay() -> None:
    assert upstream_clusters(TOPICS, IdentityPolicy("source1")) == {f"source{number}" for number in range(1, 6)}


def test_remote_topics_are_copies_and_not_internal() -> None:
    copies = {"source1.topic4", "source1.source2.topic5", "source3.source4.source5.topic6"}
    internal = ["source1.checkpoints.internal", "__heliograph-ledger", "mm2-offsets.source1.internal"]
    topics = ["topic1", "topic2", "topic3", *copies, *internal]
    assert remote_topics(topics, POLICY) == copies
    assert remote_topics(topics, POLICY, "source3") == {"source3.source4.source5.topic6"}
    assert remote_topics(topics, POLICY, "source2") == set()


def test_remote_topics_with_another_separator() -> None:
    assert remote_topics(["topic1", "source1__topic4", "source1.topic"], DefaultPolicy("__")) == {"source1__topic4"}


def test_with_names_that_stay_all_but_the_own_heartbeats_are_remote() -> None:
    topics = ["topic1", "topic2", "heartbeats", "backup.heartbeats"]
    assert remote_topics(topics, IdentityPolicy("primary")) == {"topic1", "topic2", "backup.heartbeats"}


def test_a_name_that_leads_in_a_circle_ends() -> None:
    assert path_of("topic1", IdentityPolicy("primary")) == ["primary"]
    assert path_of("a.b.a.topic", POLICY) == ["a", "b"]
