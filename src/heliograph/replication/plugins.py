"""Classes that a user writes in Python: the small contracts they keep, and how they are used in place of the built-in ones.

A class is named `module:Class` in the file and made with one mapping, the flow's options by name (config/plugins.py), in the
driver only: tasks get lanes whose names are settled. What it answers is believed; what it raises is an error that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from heliograph.errors import SetupError
from heliograph.replication.topic_names import ReplicationPolicy

T = TypeVar("T")


class TopicFilter(Protocol):
    """topic.filter.class"""

    def should_replicate_topic(self, topic: str) -> bool:
        """Whether a source topic is mirrored. Internal topics, and those that came from the target, never are."""


class GroupFilter(Protocol):
    """group.filter.class"""

    def should_replicate_group(self, group: str) -> bool:
        """Whether a consumer group's offsets are translated."""


class ConfigPropertyFilter(Protocol):
    """config.property.filter.class"""

    def should_replicate_config_property(self, name: str) -> bool:
        """Whether a remote topic takes this config from its source."""


class NamingPolicy(Protocol):
    """replication.policy.class"""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The topic's name on the target."""

    def topic_source(self, topic: str) -> str | None:
        """The alias a remote topic came from; None for a local topic."""

    def upstream_topic(self, topic: str) -> str | None:
        """A remote topic's name on the cluster it came from; None for a local topic."""


METHODS: Mapping[str, tuple[str, ...]] = {
    "topic.filter.class": ("should_replicate_topic",),
    "group.filter.class": ("should_replicate_group",),
    "config.property.filter.class": ("should_replicate_config_property",),
    "replication.policy.class": ("format_remote_topic", "topic_source", "upstream_topic"),
}
"""What a class must have, by the option that names it."""


def _ask(what: str, question: Callable[[], T]) -> T:
    try:
        return question()
    except Exception as error:  # a user's class may raise anything: whoever asked must know which option it is
        raise SetupError(f"{what}: {type(error).__name__}: {error}") from error


class PluginNames:
    """A user's filter as a filter of names; `what` is the option with its value."""

    def __init__(self, what: str, asked: Callable[[str], object]) -> None:
        self._what = what
        self._asked = asked

    def accepts(self, name: str) -> bool:
        return bool(_ask(f"{self._what} failed for {name}", lambda: self._asked(name)))

    def excludes(self, name: str) -> bool:
        """A user's class gives no other reason."""
        return not self.accepts(name)


class PluginPolicy(ReplicationPolicy):
    """A user's names; what else a policy knows is as in MirrorMaker 2's own."""

    def __init__(self, what: str, policy: NamingPolicy, separator: str, internal_separator_enabled: bool) -> None:
        super().__init__(separator, internal_separator_enabled)
        self._what = what
        self._policy = policy

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        what = f"{self._what} failed for {topic}"
        return str(_ask(what, lambda: self._policy.format_remote_topic(source_alias, topic)))

    def topic_source(self, topic: str) -> str | None:
        return _ask(f"{self._what} failed for {topic}", lambda: self._policy.topic_source(topic))

    def upstream_topic(self, topic: str) -> str | None:
        return _ask(f"{self._what} failed for {topic}", lambda: self._policy.upstream_topic(topic))

    def refusal(self, source_alias: str, topic: str) -> str:
        remote = self.format_remote_topic(source_alias, topic)
        back = self.upstream_topic(remote)
        return "" if back == topic else f"its remote name '{remote}' leads back to '{back}' ({self._what})"
