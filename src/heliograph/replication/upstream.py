"""Which clusters a cluster is fed from, told from the names of its topics alone, as MirrorMaker 2's MirrorClient does."""

from __future__ import annotations

from collections.abc import Iterable

from heliograph.replication.topic_names import ReplicationPolicy

UNREACHABLE = -1


def heartbeat_topics(topics: Iterable[str], policy: ReplicationPolicy) -> set[str]:
    return {topic for topic in topics if policy.is_heartbeats(topic)}


def checkpoint_topics(topics: Iterable[str], policy: ReplicationPolicy) -> set[str]:
    return {topic for topic in topics if policy.is_checkpoints(topic)}


def remote_topics(topics: Iterable[str], policy: ReplicationPolicy, source: str | None = None) -> set[str]:
    """Topics that are copies; of one source only, if it is given."""
    return {topic for topic in topics if not policy.is_internal(topic) and _is_from(policy.topic_source(topic), source)}


def _is_from(found: str | None, source: str | None) -> bool:
    return found is not None and source in (None, found)


def upstream_clusters(topics: Iterable[str], policy: ReplicationPolicy) -> set[str]:
    """Every cluster whose heartbeats arrive, over however many hops."""
    return {source for topic in heartbeat_topics(topics, policy) for source in path_of(topic, policy)}


def replication_hops(topics: Iterable[str], policy: ReplicationPolicy, source: str) -> int:
    """The fewest hops that heartbeats of a cluster take; -1 if none arrive."""
    paths = [path_of(topic, policy) for topic in heartbeat_topics(topics, policy)]
    return min((path.index(source) + 1 for path in paths if source in path), default=UNREACHABLE)


def path_of(topic: str, policy: ReplicationPolicy) -> list[str]:
    """The clusters that a topic came through, nearest first; a name that leads in a circle ends where it closes."""
    path: list[str] = []
    name: str | None = topic
    while name is not None and (source := policy.topic_source(name)) is not None and source not in path:
        path.append(source)
        name = policy.upstream_topic(name)
    return path
