"""The plan of remote topics, with plain dicts."""

from __future__ import annotations

import pytest

from heliograph.model.topics import ConfigValue, Topic
from heliograph.replication.topic_plan import (
    AddPartitions,
    CreateTopic,
    TopicRules,
    Unnameable,
    copyable_configs,
    plan_topics,
    remote_conflicts,
)

RULES = TopicRules(replication_factor=2, config_exclude=lambda name: name == "min.insync.replicas")


def topic(name: str, partitions: int = 1, **configs: ConfigValue) -> Topic:
    return Topic(name, f"id-of-{name}", partitions, {key.replace("_", "."): value for key, value in configs.items()})


def by_name(*topics: Topic) -> dict[str, Topic]:
    return {each.name: each for each in topics}


def prefixed(name: str) -> str:
    return f"A.{name}"


def same(name: str) -> str:
    return name


def test_a_missing_remote_topic_is_created_with_the_sources_partitions_and_the_rules_replication_factor() -> None:
    actions = plan_topics(by_name(topic("orders", 8)), {}, prefixed, RULES)
    assert actions == [CreateTopic("A.orders", 8, 2, {}, "source topic 'orders' has no remote topic")]


def test_a_remote_topic_with_fewer_partitions_grows() -> None:
    actions = plan_topics(by_name(topic("orders", 8)), by_name(topic("A.orders", 3)), prefixed, RULES)
    reason = "source topic 'orders' has 8 partitions, its remote topic 3"
    assert actions == [AddPartitions("A.orders", have=3, want=8, reason=reason)]


@pytest.mark.parametrize("partitions", [8, 9])
def test_a_remote_topic_with_as_many_partitions_or_more_is_left_alone(partitions: int) -> None:
    assert plan_topics(by_name(topic("orders", 8)), by_name(topic("A.orders", partitions)), prefixed, RULES) == []


def test_a_topic_that_is_only_on_the_target_is_left_alone() -> None:
    assert plan_topics({}, by_name(topic("A.gone")), prefixed, RULES) == []


def test_actions_come_in_the_order_of_the_source_names() -> None:
    actions = plan_topics(by_name(topic("c"), topic("a"), topic("b")), {}, prefixed, RULES)
    assert [action.name for action in actions if isinstance(action, CreateTopic)] == ["A.a", "A.b", "A.c"]


def test_only_overrides_of_the_topic_itself_are_copied() -> None:
    source = topic(
        "orders",
        cleanup_policy=ConfigValue("compact"),
        retention_ms=ConfigValue("1", source="DYNAMIC_DEFAULT_BROKER_CONFIG"),
        segment_ms=ConfigValue("2", source="DYNAMIC_BROKER_CONFIG"),
        segment_bytes=ConfigValue("3", source="STATIC_BROKER_CONFIG"),
        flush_ms=ConfigValue("4", source="DEFAULT_CONFIG"),
        index_bytes=ConfigValue("5", read_only=True),
        secret_key=ConfigValue("6", sensitive=True),
        empty_key=ConfigValue(None),
        min_insync_replicas=ConfigValue("2"),
    )
    assert copyable_configs(source, RULES) == {"cleanup.policy": "compact"}
    assert plan_topics(by_name(source), {}, prefixed, RULES) == [
        CreateTopic("A.orders", 1, 2, {"cleanup.policy": "compact"}, "source topic 'orders' has no remote topic")
    ]


def test_defaults_are_copied_too_when_they_are_taken_from_the_source_but_not_a_brokers_own_file() -> None:
    rules = TopicRules(2, config_exclude=lambda name: name == "excluded", use_defaults_from="source")
    source = topic(
        "orders",
        cleanup_policy=ConfigValue("compact"),
        retention_ms=ConfigValue("1", source="DYNAMIC_DEFAULT_BROKER_CONFIG"),
        segment_bytes=ConfigValue("3", source="STATIC_BROKER_CONFIG"),
        flush_ms=ConfigValue("4", source="DEFAULT_CONFIG"),
        excluded=ConfigValue("5", source="DEFAULT_CONFIG"),
    )
    assert copyable_configs(source, rules) == {"cleanup.policy": "compact", "flush.ms": "4", "retention.ms": "1"}


def test_a_remote_name_of_249_characters_is_created_and_one_of_250_is_told_as_unnameable() -> None:
    longest, too_long = "t" * 247, "t" * 248
    first, second = plan_topics(by_name(topic(longest), topic(too_long)), {}, prefixed, RULES)
    assert isinstance(first, CreateTopic) and first.name == f"A.{longest}"
    assert second == Unnameable(too_long, f"A.{too_long}", "the remote name has 250 characters, Kafka allows 249")


@pytest.mark.parametrize("remote", ["", ".", "..", "ü", "a b", "a/b", "a\n"])
def test_a_remote_name_that_kafka_does_not_allow_is_unnameable(remote: str) -> None:
    (action,) = plan_topics(by_name(topic("orders")), {}, lambda _: remote, RULES)
    assert isinstance(action, Unnameable) and "letters, digits" in action.reason


def test_two_source_topics_never_share_a_remote_topic() -> None:
    first, second = plan_topics(by_name(topic("a"), topic("b")), {}, lambda _: "one", RULES)
    assert isinstance(first, CreateTopic)
    assert second == Unnameable("b", "one", "'one' is already the remote topic of 'a'")


def test_a_name_that_collides_with_one_on_the_target_is_unnameable_because_kafka_refuses_it() -> None:
    (action,) = plan_topics(by_name(topic("orders")), by_name(topic("A_orders")), prefixed, RULES)
    assert isinstance(action, Unnameable) and "'A_orders'" in action.reason


def test_a_name_that_collides_with_one_planned_before_it_is_unnameable() -> None:
    first, second = plan_topics(by_name(topic("a.b"), topic("a_b")), {}, same, RULES)
    assert isinstance(first, CreateTopic) and isinstance(second, Unnameable)


def test_a_remote_topic_that_exists_beside_a_colliding_one_is_used() -> None:
    target = by_name(topic("A.orders", 1), topic("A_orders", 1))
    (action,) = plan_topics(by_name(topic("orders", 2)), target, prefixed, RULES)
    assert isinstance(action, AddPartitions)


def test_flows_that_write_different_remote_topics_or_clusters_do_not_conflict() -> None:
    assert remote_conflicts([]) == []
    assert remote_conflicts([("A->B", "B", {"t": "t"}), ("A->C", "C", {"t": "t"})]) == []
    assert remote_conflicts([("A->C", "C", {"t": "A.t"}), ("B->C", "C", {"t": "B.t"})]) == []


def test_two_flows_into_one_remote_topic_are_one_fault_that_names_both() -> None:
    (fault,) = remote_conflicts([("A->C", "C", {"t": "t", "u": "u"}), ("B->C", "C", {"t": "t", "v": "v"})])
    assert "topic 't' of flow 'A->C' and topic 't' of flow 'B->C'" in fault
    assert "remote topic 't' on cluster 'C'" in fault


def test_two_topics_of_one_flow_into_one_remote_topic_are_a_fault() -> None:
    (fault,) = remote_conflicts([("A->B", "B", {"t": "one", "u": "one"})])
    assert "topic 't' of flow 'A->B' and topic 'u' of flow 'A->B'" in fault


def test_three_writers_of_one_remote_topic_are_one_fault_and_two_remote_topics_are_two() -> None:
    flows = [(f"{alias}->X", "X", {"t": "t", "u": "u"}) for alias in "ABC"]
    faults = remote_conflicts(flows)
    assert len(faults) == 2 and all(fault.count("of flow") == 3 for fault in faults)
