"""What must be done so that every selected source topic has its remote topic: a plan, each action with its reason.

Knows topics as values, the naming rule and the rules of creation. Must not know brokers: `kafka.admin` applies the
actions, the doors print them. Planning again after applying gives nothing left to apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from heliograph.model.topics import ConfigValue, Topic

LONGEST_TOPIC_NAME = 249
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True)
class TopicRules:
    """How remote topics are made. `use_defaults_from` is MirrorMaker 2's option: `source` or `target`."""

    replication_factor: int
    config_exclude: Callable[[str], bool]
    use_defaults_from: str = "target"
    refusal: Callable[[str], str] = lambda _: ""
    """Why a source topic cannot be copied under its remote name; empty if it can."""


@dataclass(frozen=True)
class CreateTopic:
    """Create a topic; `replication_factor` -1 leaves it to the broker."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]
    reason: str


@dataclass(frozen=True)
class AddPartitions:
    """Grow a topic from `have` to `want` partitions."""

    name: str
    have: int
    want: int
    reason: str


@dataclass(frozen=True)
class Unnameable:
    """This source topic cannot be copied: no topic of that name can exist on the target. Nothing to apply."""

    topic: str
    remote: str
    reason: str


TopicAction = CreateTopic | AddPartitions | Unnameable


def plan_topics(
    source: Mapping[str, Topic],
    target: Mapping[str, Topic],
    remote_name: Callable[[str], str],
    rules: TopicRules,
) -> list[TopicAction]:
    """The actions for the selected `source` topics, in the order of their names.

    `target` may hold any topics; the more it holds, the more collisions are told in advance.
    """
    actions: list[TopicAction] = []
    owners: dict[str, str] = {}
    blurred = {_blur(name): name for name in sorted(target)}
    for name in sorted(source):
        remote = remote_name(name)
        fault = rules.refusal(name) or _name_fault(remote, owners) or _collision(remote, target, blurred)
        if fault:
            actions.append(Unnameable(name, remote, fault))
            continue
        owners[remote] = name
        blurred[_blur(remote)] = remote
        action = _plan_one(source[name], target.get(remote), remote, rules)
        if action:
            actions.append(action)
    return actions


def remote_conflicts(flows: Sequence[tuple[str, str, Mapping[str, str]]]) -> list[str]:
    """Faults: remote topics with several writers on one cluster. A flow is (name, target alias, topic to remote)."""
    writers: dict[tuple[str, str], list[str]] = {}
    for flow, target, remotes in flows:
        for topic in sorted(remotes):
            writers.setdefault((target, remotes[topic]), []).append(f"topic '{topic}' of flow '{flow}'")
    return [
        f"{' and '.join(found)} would write the same remote topic '{remote}' on cluster '{target}': "
        "name them apart (replication.policy.class, replication.policy.separator) or exclude one (topics.exclude)"
        for (target, remote), found in sorted(writers.items())
        if len(found) > 1
    ]


def copyable_configs(topic: Topic, rules: TopicRules) -> dict[str, str]:
    """The configs that a new remote topic takes over from its source."""
    return {
        name: config.value
        for name, config in sorted(topic.configs.items())
        if config.value is not None and _is_copyable(config, rules) and not rules.config_exclude(name)
    }


def _plan_one(source: Topic, existing: Topic | None, remote: str, rules: TopicRules) -> TopicAction | None:
    if existing is None:
        return CreateTopic(
            name=remote,
            partitions=source.partitions,
            replication_factor=rules.replication_factor,
            configs=copyable_configs(source, rules),
            reason=f"source topic '{source.name}' has no remote topic",
        )
    if existing.partitions < source.partitions:
        have, want = existing.partitions, source.partitions
        reason = f"source topic '{source.name}' has {want} partitions, its remote topic {have}"
        return AddPartitions(remote, have, want, reason)
    return None


def _is_copyable(config: ConfigValue, rules: TopicRules) -> bool:
    if config.read_only or config.sensitive:
        return False
    if not config.is_default:
        return True
    # A default set for all topics of the source's brokers is no override of this topic. Only `use.defaults.from=source`
    # carries it over, and never what stands in a broker's own file, as in MirrorMaker 2.
    return rules.use_defaults_from == "source" and config.source != "STATIC_BROKER_CONFIG"


def _name_fault(remote: str, owners: Mapping[str, str]) -> str:
    """Why no source topic can have this remote name; empty if one can."""
    if len(remote) > LONGEST_TOPIC_NAME:
        return f"the remote name has {len(remote)} characters, Kafka allows {LONGEST_TOPIC_NAME}"
    if remote in {".", ".."} or not _LEGAL_NAME.fullmatch(remote):
        return f"'{remote}' is no topic name: Kafka allows letters, digits, '.', '_' and '-', but not '.' or '..' alone"
    if remote in owners:
        return f"'{remote}' is already the remote topic of '{owners[remote]}'"
    return ""


def _collision(remote: str, target: Mapping[str, Topic], blurred: Mapping[str, str]) -> str:
    """Why the target would refuse to create it; empty if it exists or can be created."""
    other = blurred.get(_blur(remote), remote)
    if remote in target or other == remote:
        return ""
    return f"the target has '{other}': Kafka refuses two topics that differ only in '.' and '_'"


def _blur(name: str) -> str:
    """Brokers refuse a name that equals another's after this change: their metrics could not tell them apart."""
    return name.replace(".", "_")
