"""Golden values come from the policy classes of Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heliograph.replication.filters import NameFilter
from heliograph.replication.topic_names import (
    Decision,
    DefaultPolicy,
    IdentityPolicy,
    Reason,
    ReplicationPolicy,
    policy_for,
    should_replicate,
)

DEFAULT = DefaultPolicy()
IDENTITY = IdentityPolicy("A")
ALL = NameFilter((".*",), (r"mm2.*\.internal", r".*\.replica", "__.*"))
EVERY = NameFilter((".*",))


@pytest.mark.parametrize(
    ("topic", "source", "upstream", "original"),
    [
        ("orders", None, None, "orders"),
        ("A.orders", "A", "orders", "orders"),
        ("A.B.orders", "A", "B.orders", "orders"),
        ("a.", None, None, "a."),
        ("A..", None, None, "A.."),
        ("..", None, None, ".."),
        (".a", "", "a", "a"),
        ("a..b", "a", ".b", "b"),
        ("heartbeats", None, None, "heartbeats"),
        ("B.A.heartbeats", "B", "A.heartbeats", "heartbeats"),
    ],
)
def test_default_policy_takes_names_apart_as_java_does(
    topic: str, source: str | None, upstream: str | None, original: str
) -> None:
    assert DEFAULT.topic_source(topic) == source
    assert DEFAULT.upstream_topic(topic) == upstream
    assert DEFAULT.original_topic(topic) == original


def test_default_policy_puts_the_alias_in_front() -> None:
    assert DEFAULT.format_remote_topic("A", "orders") == "A.orders"
    assert DefaultPolicy("__").format_remote_topic("A", "orders") == "A__orders"
    assert DefaultPolicy("__").upstream_topic("A__orders") == "orders"


@pytest.mark.parametrize("topic", ["orders", "A.orders", "a..b", "mm2-offsets.C.internal"])
def test_identity_policy_keeps_names(topic: str) -> None:
    assert IDENTITY.format_remote_topic("A", topic) == topic
    assert IDENTITY.topic_source(topic) == "A"
    assert IDENTITY.upstream_topic(topic) == topic
    assert IDENTITY.original_topic(topic) == topic


def test_identity_policy_renames_heartbeats() -> None:
    assert IDENTITY.format_remote_topic("A", "heartbeats") == "A.heartbeats"
    assert IDENTITY.format_remote_topic("A", "xheartbeats") == "A.xheartbeats"
    assert IDENTITY.topic_source("heartbeats") is None
    assert IDENTITY.topic_source("B.A.heartbeats") == "B"
    assert IDENTITY.upstream_topic("B.A.heartbeats") == "A.heartbeats"
    assert IDENTITY.is_heartbeats("B.A.heartbeats")
    assert not IDENTITY.is_heartbeats("B.xheartbeats")


@pytest.mark.parametrize(
    ("separator", "enabled", "topic", "checkpoints", "mm2", "internal"),
    [
        (".", True, "mm2-offsets.C.internal", False, True, True),
        (".", True, "A.checkpoints.internal", True, True, True),
        (".", True, "checkpoints.internal", False, False, False),
        (".", True, "x.internal", False, False, False),
        (".", True, "mm2x-internal", False, False, False),
        (".", True, "mm2-offsets-C-internal", False, False, False),
        (".", True, "mm2-offsets_C_internal", False, False, False),
        (".", True, "__c", False, False, True),
        (".", True, ".a", False, False, True),
        ("_", True, "mm2-offsets.C.internal", False, False, False),
        ("_", True, "mm2_x_internal", False, True, True),
        ("_", True, "A_checkpoints_internal", True, True, True),
        ("_", False, "mm2_x_internal", False, False, False),
        ("_", False, "A.checkpoints.internal", True, True, True),
    ],
)
def test_internal_topics_follow_the_rules_of_kafka_4(
    separator: str, enabled: bool, topic: str, checkpoints: bool, mm2: bool, internal: bool
) -> None:
    policy = DefaultPolicy(separator, enabled)
    assert policy.is_checkpoints(topic) == checkpoints
    assert policy.is_mm2_internal(topic) == mm2
    assert policy.is_internal(topic) == internal


def test_heliographs_own_topics_are_internal() -> None:
    assert DEFAULT.is_internal("__heliograph-ledger")
    assert IDENTITY.is_internal("__heliograph-events")


def test_a_policy_is_chosen_by_its_word() -> None:
    identity = policy_for("identity", "A", ".", True)
    default = policy_for("default", "A", "_", False)
    assert isinstance(identity, IdentityPolicy)
    assert identity.topic_source("orders") == "A"
    assert isinstance(default, DefaultPolicy)
    assert (default.separator, default.internal_separator) == ("_", ".")


def test_the_offset_syncs_topic_has_the_other_clusters_alias_and_the_internal_separator() -> None:
    assert DefaultPolicy().offset_syncs_topic("B") == "mm2-offset-syncs.B.internal"
    assert IdentityPolicy("A", "_").offset_syncs_topic("B") == "mm2-offset-syncs_B_internal"
    assert DefaultPolicy("_", False).offset_syncs_topic("B") == "mm2-offset-syncs.B.internal"


@pytest.mark.parametrize(
    "policy", [DefaultPolicy, lambda *rest: IdentityPolicy("A", *rest)], ids=["default", "identity"]
)
def test_the_checkpoints_topic_has_the_sources_alias_and_the_internal_separator_and_heartbeats_neither(
    policy: Callable[[str, bool], ReplicationPolicy],
) -> None:
    assert policy("__", True).checkpoints_topic("C") == "C__checkpoints__internal"
    assert policy("__", False).checkpoints_topic("C") == "C.checkpoints.internal"
    assert policy("__", True).offset_syncs_topic("C") == "mm2-offset-syncs__C__internal"
    for enabled in (True, False):
        assert policy("__", enabled).is_heartbeats("heartbeats")
        assert policy("__", enabled).format_remote_topic("A", "heartbeats") == "A__heartbeats"
        assert policy("__", enabled).is_heartbeats("A__heartbeats")


_CIRCLES = ["target.{}", "target.source.{}", "source.target.{}", "target.source.target.{}", "source.target.source.{}"]


@pytest.mark.parametrize("name", _CIRCLES)
def test_a_name_with_the_targets_alias_anywhere_in_it_came_from_there(name: str) -> None:
    """testNoCycles and testIdentityReplication: with the Identity policy heartbeats alone are told by their names."""
    topic, heartbeats = name.format("topic1"), name.format("heartbeats")
    identity, default = IdentityPolicy("source"), DefaultPolicy()
    assert not should_replicate(topic, EVERY, default, "target", True).replicate
    assert not should_replicate(heartbeats, EVERY, default, "target", True).replicate
    assert should_replicate(topic, EVERY, identity, "target", True).replicate
    assert not should_replicate(heartbeats, EVERY, identity, "target", True).replicate


@pytest.mark.parametrize(
    "name", ["topic1", "source.topic1", "othersource.topic1", "heartbeats", "othersource.heartbeats"]
)
def test_every_other_name_may_go_there(name: str) -> None:
    for policy in (DefaultPolicy(), IdentityPolicy("source")):
        assert should_replicate(name, EVERY, policy, "target", True).replicate


class Rootless(DefaultPolicy):
    """Knows where a topic came from, but not how it was called there."""

    def upstream_topic(self, topic: str) -> str | None:
        return None


def test_a_topic_without_a_name_upstream_is_no_circle() -> None:
    assert not Rootless().is_cycle("source.topic1", "target")
    assert Rootless().is_cycle("target.topic1", "target")
    assert Rootless().original_topic("source.topic1") == "source.topic1"


@pytest.mark.parametrize(
    ("topic", "policy", "heartbeats", "replicate", "reason"),
    [
        ("orders", DEFAULT, True, True, Reason.MATCHES),
        ("C.orders", DEFAULT, True, True, Reason.MATCHES),
        ("B.orders", DEFAULT, True, False, Reason.CYCLE),
        ("C.B.orders", DEFAULT, True, False, Reason.CYCLE),
        ("B.heartbeats", DEFAULT, True, False, Reason.CYCLE),
        ("x.replica", DEFAULT, True, False, Reason.EXCLUDED),
        ("__consumer_offsets", DEFAULT, True, False, Reason.INTERNAL),
        ("mm2-offset-syncs.B.internal", DEFAULT, True, False, Reason.INTERNAL),
        ("B.orders", IDENTITY, True, True, Reason.MATCHES),
        ("B.heartbeats", IDENTITY, True, False, Reason.CYCLE),
    ],
)
def test_topics_are_chosen_with_a_reason(
    topic: str, policy: ReplicationPolicy, heartbeats: bool, replicate: bool, reason: Reason
) -> None:
    assert should_replicate(topic, ALL, policy, "B", heartbeats) == Decision(replicate, reason)


def test_heartbeats_are_mirrored_despite_the_filter_unless_switched_off() -> None:
    names = NameFilter(("orders",))
    assert should_replicate("heartbeats", names, DEFAULT, "B", True) == Decision(True, Reason.HEARTBEATS)
    assert should_replicate("C.heartbeats", names, DEFAULT, "B", True) == Decision(True, Reason.HEARTBEATS)
    assert should_replicate("heartbeats", names, DEFAULT, "B", False) == Decision(False, Reason.NOT_INCLUDED)
    assert should_replicate("payments", names, DEFAULT, "B", True) == Decision(False, Reason.NOT_INCLUDED)


def test_heartbeats_are_known_by_the_separator() -> None:
    policy = DefaultPolicy("_")
    assert should_replicate("us-west_heartbeats", NameFilter(()), policy, "target", True).replicate
    assert not should_replicate("us-west.heartbeats", NameFilter(()), policy, "target", True).replicate


def test_heartbeats_switched_off_are_mirrored_if_the_filter_names_them() -> None:
    assert should_replicate("heartbeats", ALL, DEFAULT, "B", False) == Decision(True, Reason.MATCHES)
