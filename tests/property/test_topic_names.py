"""Names survive the way to the target and back, whatever they hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heliograph.replication.filters import NameFilter
from heliograph.replication.topic_names import DefaultPolicy, IdentityPolicy, should_replicate

names = st.text("abAB019._-", min_size=1, max_size=249)
plain = st.text("abAB019-", min_size=1, max_size=20)
separators = st.sampled_from([".", "_", "__", ".-"])
ALL = NameFilter((".*",))


@given(plain, names, separators)
def test_a_remote_name_leads_back_to_its_source(alias: str, topic: str, separator: str) -> None:
    policy = DefaultPolicy(separator)
    remote = policy.format_remote_topic(alias, topic)
    # Java drops empty parts at the end of a name: one made of separators alone cannot be told from a local one.
    if any(topic.split(separator)) and not alias.endswith(separator[0]):
        assert policy.topic_source(remote) == alias
        assert policy.upstream_topic(remote) == topic


@given(plain, plain, names, separators)
def test_a_topic_never_returns_to_the_cluster_it_came_from(home: str, other: str, topic: str, separator: str) -> None:
    policy = DefaultPolicy(separator)
    if any(topic.split(separator)) and not {home[-1], other[-1]} & set(separator):
        remote = policy.format_remote_topic(home, topic)
        onwards = policy.format_remote_topic(other, remote)
        assert not should_replicate(remote, ALL, policy, home, True).replicate
        assert not should_replicate(onwards, ALL, policy, home, True).replicate


@given(names)
def test_identity_keeps_every_name_but_heartbeats(topic: str) -> None:
    policy = IdentityPolicy("A")
    kept = policy.format_remote_topic("A", topic) == topic
    assert kept != topic.endswith("heartbeats")


@given(names, separators)
def test_the_original_topic_is_local_and_ends_the_name(topic: str, separator: str) -> None:
    policy = DefaultPolicy(separator)
    original = policy.original_topic(topic)
    assert policy.topic_source(original) is None
    assert topic.endswith(original)


@given(names)
def test_internal_topics_are_never_mirrored(topic: str) -> None:
    policy = DefaultPolicy()
    if policy.is_internal(topic):
        assert not should_replicate(topic, ALL, policy, "B", True).replicate
