"""MirrorMaker 2's stored progress of a flow: where it is kept, whose it is, and what is written to hand a flow back.

In dedicated mode connector and topic have fixed names; on a Connect cluster, and with Strimzi, people choose them. Knows
values only: `wire.mm2` has their bytes, `kafka.mm2_store` reads and writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from heliograph.replication.topic_plan import CreateTopic

SOURCE_CONNECTOR = "MirrorSourceConnector"
_CLASSES = (SOURCE_CONNECTOR, "MirrorSource")
"""What `connector.class` may say, after the package: Connect takes a class without its last word too."""
_DEFAULT_ALIAS = "source"

Partition = tuple[str, int]


@dataclass(frozen=True)
class Stored:
    """One entry as it lies in an offsets topic; `offset` is that of the last copied record, None: it was removed."""

    connector: str
    partition: Partition
    offset: int | None
    time_ms: int
    kept_in: str


@dataclass(frozen=True)
class Progress:
    """What MirrorMaker 2 has stored of one flow, of several connectors the one that stored last."""

    stored: Mapping[Partition, Stored] = field(default_factory=dict)
    connectors: frozenset[str] = frozenset()
    """All source connectors that stored something for this source."""
    hidden_in: str = ""
    """The topic that may hold progress and may not be seen; empty if nothing is hidden."""

    def offset(self, partition: Partition) -> int | None:
        found = self.stored.get(partition)
        return None if found is None else found.offset


@dataclass(frozen=True)
class HandBack:
    """One entry to write: MirrorMaker 2 goes on with the record after `offset`."""

    connector: str
    partition: Partition
    offset: int
    topic: str


def default_topic(source: str) -> str:
    return f"mm2-offsets.{source}.internal"


def offsets_topic(name: str, partitions: int, replicas: int) -> CreateTopic:
    """The topic as a hand-back makes it where it is missing."""
    configs = {"cleanup.policy": "compact"}
    return CreateTopic(name, partitions, replicas, configs, "MirrorMaker 2 keeps its progress in it")


def default_configs_topic(source: str) -> str:
    return f"mm2-configs.{source}.internal"


def default_group(source: str) -> str:
    return f"{source}-mm2"


def connector_names(source: str, target: str, chosen: str, seen: Iterable[str]) -> frozenset[str]:
    """What the flow's source connector may be called: as chosen, as seen, in dedicated mode, by Strimzi."""
    names = {SOURCE_CONNECTOR, f"{source}->{target}.{SOURCE_CONNECTOR}", *seen}
    return frozenset({chosen} if chosen else names)


def topics_to_read(names: Iterable[str], source: str, chosen: str) -> list[str]:
    """Which of the target's topics may hold the progress; those that are not compacted are left out by the caller."""
    existing = set(names)
    fixed = chosen or default_topic(source)
    if chosen or fixed in existing:
        return [fixed] if fixed in existing else []
    return sorted(name for name in existing if name.endswith("-offsets") and not name.startswith("__"))


def configs_to_read(partitions: Mapping[str, int], source: str) -> list[str]:
    """Which of the target's topics, given with their partitions, may hold the configurations of its connectors.

    Connect insists on one partition, and names that end with -configs are its own habit and Strimzi's.
    """
    fixed = default_configs_topic(source)
    return sorted(
        name
        for name, count in partitions.items()
        if name == fixed or (name.endswith("-configs") and not name.startswith("__") and count == 1)
    )


def mirrors_of(configs: Mapping[str, Sequence[Mapping[str, str]]], source: str) -> frozenset[str]:
    """The names under which a Connect cluster has a source connector of MirrorMaker 2 for this source."""
    return frozenset(name for name, seen in configs.items() if any(is_mirror_of(config, source) for config in seen))


def is_mirror_of(config: Mapping[str, str], source: str) -> bool:
    """A connector's configuration is that of a source connector of MirrorMaker 2 for this source."""
    return (
        config.get("connector.class", "").rpartition(".")[2] in _CLASSES
        and config.get("source.cluster.alias", _DEFAULT_ALIAS) == source
    )


def is_switched_off(configs: Sequence[Mapping[str, str]]) -> bool:
    """MirrorMaker 2's own `enabled = false`: the connector is there and makes no tasks."""
    return any(config.get("enabled", "true").lower() == "false" for config in configs)


def latest_progress(entries: Iterable[Stored], connector: str = "") -> Progress:
    """Fold entries, each topic's in the order of its log; an entry that was removed counts no more."""
    by_key: dict[tuple[str, str, Partition], Stored] = {}
    for entry in entries:
        if connector in ("", entry.connector):
            by_key[entry.kept_in, entry.connector, entry.partition] = entry
    kept = [entry for entry in by_key.values() if entry.offset is not None]
    stored: dict[Partition, Stored] = {}
    for entry in sorted(kept, key=lambda entry: entry.time_ms):
        stored[entry.partition] = entry
    return Progress(stored, frozenset(entry.connector for entry in kept))


def hand_back(
    positions: Mapping[Partition, int], progress: Progress, source: str, connector: str = "", topic: str = ""
) -> list[HandBack]:
    """The entries that make MirrorMaker 2 go on at these positions; a lane at offset 0 has nothing to tell."""
    newest = max(progress.stored.values(), key=lambda entry: entry.time_ms, default=None)
    entries = []
    for partition, position in sorted(positions.items()):
        known = progress.stored.get(partition) or newest
        owner = connector or (known.connector if known else SOURCE_CONNECTOR)
        place = topic or (known.kept_in if known else default_topic(source))
        if position > 0:
            entries.append(HandBack(owner, partition, position - 1, place))
    return entries
