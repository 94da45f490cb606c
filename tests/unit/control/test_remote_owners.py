from __future__ import annotations

from dataclasses import replace

from heliograph.config.load import load
from heliograph.control.planner import FlowPlan
from heliograph.control.remote_owners import RemoteOwners
from heliograph.model.lanes import Lane, LaneId
from heliograph.model.topics import Topic
from heliograph.replication.topic_plan import CreateTopic, Unnameable

FILE = """clusters = A, B, C
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
C.bootstrap.servers = c:1
A->C.enabled = true
B->C.enabled = true
topic.rename.format = ${topic}.copy
"""
TO_C = {settings.flow.source: settings for settings in load(FILE, "mm2.properties").flows}


def plan(source: str, *topics: str) -> FlowPlan:
    remote = {topic: f"{topic}.copy" for topic in topics}
    return FlowPlan(
        settings=TO_C[source],
        source_cluster_id=source,
        target_cluster_id="id-of-C",
        topics={topic: Topic(topic, f"id-{topic}", 1, {}) for topic in topics},
        remote=remote,
        actions=tuple(CreateTopic(name, 1, 1, {}, "") for name in remote.values()),
        expiration_ms=1,
        lanes=tuple(
            Lane(LaneId(f"{source}->C", topic, 0), source, "C", remote[topic], f"id-{topic}", "") for topic in topics
        ),
        starts={(topic, 0): 0 for topic in topics},
        ends={(topic, 0): 9 for topic in topics},
    )


def test_the_first_flow_has_a_remote_topic_and_the_other_copies_the_rest() -> None:
    owners = RemoteOwners()
    first = plan("A", "orders")
    assert owners.settle(first) is first
    left = owners.settle(plan("B", "orders", "clicks"))
    assert (set(left.topics), dict(left.remote)) == ({"clicks"}, {"clicks": "clicks.copy"})
    assert [lane.id.topic for lane in left.lanes] == ["clicks"]
    assert (set(left.starts), set(left.ends)) == ({("clicks", 0)}, {("clicks", 0)})
    assert left.actions == (
        CreateTopic("clicks.copy", 1, 1, {}, ""),
        Unnameable("orders", "orders.copy", "'orders.copy' is already the remote topic of 'orders' of flow A->C"),
    )


def test_a_remote_topic_is_free_again_when_its_flow_gives_it_up() -> None:
    owners = RemoteOwners()
    owners.settle(plan("A", "orders"))
    owners.settle(plan("A", "clicks"))
    wanted = plan("B", "orders")
    assert owners.settle(wanted) is wanted
    owners.release("B->C")
    back = plan("A", "orders")
    assert owners.settle(back) is back


def test_another_cluster_may_have_a_topic_of_the_same_name() -> None:
    owners = RemoteOwners()
    owners.settle(plan("A", "orders"))
    elsewhere = replace(plan("B", "orders"), target_cluster_id="another")
    assert owners.settle(elsewhere) is elsewhere


def test_a_look_at_some_topics_leaves_the_others_with_their_owner() -> None:
    owners = RemoteOwners()
    owners.settle(plan("A", "orders", "clicks"))
    owners.settle(replace(plan("A"), only=frozenset({"clicks"})))  # deleted
    left = owners.settle(plan("B", "orders", "clicks"))
    assert set(left.topics) == {"clicks"}
