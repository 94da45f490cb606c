"""Remote topic names and back: MirrorMaker 2's replication policies, and which topics a flow takes.

The rules are those of Kafka 4.x. Knows names only: no broker, no topic's settings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

HEARTBEATS = "heartbeats"


class Names(Protocol):
    """Which names are taken: by lists, or by a user's class."""

    def accepts(self, name: str) -> bool:
        """Whether the name is taken."""

    def excludes(self, name: str) -> bool:
        """Whether it is not, though it might be."""


class ReplicationPolicy(ABC):
    """How a topic is called on the target. `separator` stands in remote names, the other one in internal names."""

    def __init__(self, separator: str = ".", internal_separator_enabled: bool = True) -> None:
        self.separator = separator
        self.internal_separator = separator if internal_separator_enabled else "."

    @abstractmethod
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The topic's name on the target."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """The alias a remote topic came from; None for a local topic."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """A remote topic's name on the cluster it came from; None for a local topic."""

    def format_remote_prefix(self, source_alias: str, prefix: str) -> str | None:
        """What remote names of all topics with this prefix begin with; None if they have no beginning in common."""
        del source_alias, prefix
        return None

    def original_topic(self, topic: str) -> str:
        """The name on the cluster where the topic began, however many hops away."""
        seen = {topic}
        while (upstream := self.upstream_topic(topic)) is not None and upstream not in seen:
            seen.add(upstream)
            topic = upstream
        return topic

    def refusal(self, source_alias: str, topic: str) -> str:
        """Why the topic cannot be copied under its remote name; empty if it can."""
        del source_alias, topic
        return ""

    def is_heartbeats(self, topic: str) -> bool:
        return self.original_topic(topic) == HEARTBEATS

    def checkpoints_topic(self, source_alias: str) -> str:
        """Where the checkpoints of groups of that cluster lie."""
        return f"{source_alias}{self.internal_separator}checkpoints{self.internal_separator}internal"

    def is_checkpoints(self, topic: str) -> bool:
        return topic.endswith(f"{self.internal_separator}checkpoints{self.internal_separator}internal")

    def offset_syncs_topic(self, other: str) -> str:
        """On the source `other` is the target's alias, on the target the source's."""
        return f"mm2-offset-syncs{self.internal_separator}{other}{self.internal_separator}internal"

    def is_mm2_internal(self, topic: str) -> bool:
        ours = topic.startswith("mm2") and topic.endswith(f"{self.internal_separator}internal")
        return ours or self.is_checkpoints(topic)

    def is_internal(self, topic: str) -> bool:
        """Never mirrored. Heliograph's own topics begin with `__` and so belong here."""
        return topic.startswith(("__", ".")) or self.is_mm2_internal(topic)

    def is_cycle(self, topic: str, target_alias: str) -> bool:
        """Whether the topic came, by any number of hops, from the target."""
        source = self.topic_source(topic)
        if source is None:
            return False
        if source == target_alias:
            return True
        upstream = self.upstream_topic(topic)
        return upstream is not None and upstream != topic and self.is_cycle(upstream, target_alias)


class DefaultPolicy(ReplicationPolicy):
    """`orders` of A is `A.orders` on the target. A local topic with a dot therefore looks remote."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}{self.separator}{topic}"

    def format_remote_prefix(self, source_alias: str, prefix: str) -> str | None:
        return self.format_remote_topic(source_alias, prefix)

    def topic_source(self, topic: str) -> str | None:
        source, _, rest = topic.partition(self.separator)
        # Java's split drops trailing empty parts: `a.` and `a..` have one part and are local.
        return source if any(rest.split(self.separator)) else None

    def upstream_topic(self, topic: str) -> str | None:
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]


class IdentityPolicy(ReplicationPolicy):
    """Names stay. Only topics that end with `heartbeats` are renamed, as the Default policy would."""

    def __init__(self, source_alias: str, separator: str = ".", internal_separator_enabled: bool = True) -> None:
        super().__init__(separator, internal_separator_enabled)
        self._source_alias = source_alias
        self._default = DefaultPolicy(separator, internal_separator_enabled)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return self._default.format_remote_topic(source_alias, topic) if topic.endswith(HEARTBEATS) else topic

    def format_remote_prefix(self, source_alias: str, prefix: str) -> str | None:
        return prefix

    def topic_source(self, topic: str) -> str | None:
        return self._default.topic_source(topic) if topic.endswith(HEARTBEATS) else self._source_alias

    def upstream_topic(self, topic: str) -> str | None:
        return self._default.upstream_topic(topic) if topic.endswith(HEARTBEATS) else topic


def policy_for(kind: str, source_alias: str, separator: str, internal_separator_enabled: bool) -> ReplicationPolicy:
    """The policy of a flow by the word in its settings: `default` or `identity`."""
    if kind == "identity":
        return IdentityPolicy(source_alias, separator, internal_separator_enabled)
    return DefaultPolicy(separator, internal_separator_enabled)


class Reason(StrEnum):
    """Why a topic is mirrored, or not."""

    MATCHES = "matches topics"
    HEARTBEATS = "is a heartbeats topic (heartbeats.replication.enabled)"
    NOT_INCLUDED = "does not match topics"
    EXCLUDED = "matches topics.exclude"
    INTERNAL = "is an internal topic"
    CYCLE = "came from the target"


@dataclass(frozen=True)
class Decision:
    replicate: bool
    reason: Reason


def should_replicate(
    topic: str, names: Names, policy: ReplicationPolicy, target_alias: str, heartbeats: bool
) -> Decision:
    """Whether a source topic is mirrored; `heartbeats` is the flow's heartbeats.replication.enabled."""
    if policy.is_internal(topic):
        return Decision(False, Reason.INTERNAL)
    wanted = _chosen(topic, names, policy, heartbeats)
    if wanted.replicate and policy.is_cycle(topic, target_alias):
        return Decision(False, Reason.CYCLE)
    return wanted


def _chosen(topic: str, names: Names, policy: ReplicationPolicy, heartbeats: bool) -> Decision:
    if names.accepts(topic):
        return Decision(True, Reason.MATCHES)
    if heartbeats and policy.is_heartbeats(topic):
        return Decision(True, Reason.HEARTBEATS)
    return Decision(False, Reason.EXCLUDED if names.excludes(topic) else Reason.NOT_INCLUDED)
