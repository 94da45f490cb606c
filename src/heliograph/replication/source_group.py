"""A flow's positions as offsets of a consumer group on its source, so that any tool that knows Kafka's groups shows the lag.

The group has no members and nobody reads with it. Groups of this kind, of whatever run, are nobody's to look after: their
offsets on another cluster would mean nothing. Knows no brokers: `control.source_group` commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heliograph.model.clusters import Flow
from heliograph.replication.topic_names import Names

_PREFIX = "heliograph-"
_AGAIN_SECONDS = 21_600.0
"""Brokers forget what was committed long ago (offsets.retention.minutes, 7 days by default): a lane at rest is told again."""

Partition = tuple[str, int]


def source_group(flow: Flow) -> str:
    return f"{_PREFIX}{flow.source}-{flow.target}"


def is_source_group(group: str) -> bool:
    return group.startswith(_PREFIX)


@dataclass(frozen=True)
class OwnGroupsAside:
    """A choice of groups, without those of this kind."""

    names: Names

    def accepts(self, name: str) -> bool:
        return not is_source_group(name) and self.names.accepts(name)

    def excludes(self, name: str) -> bool:
        return is_source_group(name) or self.names.excludes(name)


@dataclass(frozen=True)
class CommitPositions:
    """Offsets to commit, by source partition."""

    group: str
    offsets: Mapping[Partition, int]
    routine: bool = True

    @property
    def subject(self) -> str:
        return f"group {self.group}"

    @property
    def what(self) -> str:
        return f"commit {len(self.offsets)} positions of"

    @property
    def why(self) -> str:
        return "commit.source.group"


class Committing:
    """What the group has, from look to look: only what moved is committed."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.committed: dict[Partition, int] = {}
        self._all_at: float | None = None

    def due(self, positions: Mapping[Partition, int], now_s: float) -> list[CommitPositions]:
        """Nothing at rest. What a run before this one committed is not known, so its first look commits all."""
        if self._all_at is None or now_s - self._all_at >= _AGAIN_SECONDS:
            self.committed.clear()
            self._all_at = now_s
        if not self.committed.keys() <= positions.keys():
            self.committed = {place: offset for place, offset in self.committed.items() if place in positions}
        moved = {place: offset for place, offset in positions.items() if self.committed.get(place) != offset}
        return [CommitPositions(self.group, moved)] if moved else []

    def wrote(self, offsets: Mapping[Partition, int]) -> None:
        self.committed.update(offsets)
