"""Who leads what, as far as any broker has told: the highest leader epoch counts, whoever named it.

A broker that has lost its controller goes on naming the leaders of before, so what one broker says is compared with what others
said, and with the leader that a refusal names (KIP-951). Does no I/O; the clock is an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

_BELIEVED_SECONDS = 30.0
"""A leader that no broker confirms for so long is forgotten: epochs begin again where a cluster was restored."""
_NO_ID = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class Leader:
    node: int
    epoch: int


@dataclass(frozen=True)
class TopicView:
    """A topic in the cluster's metadata; `error` is a broker's code, 0 when the topic is there."""

    topic_id: str
    leaders: Mapping[int, Leader]
    error: int = 0


Views = dict[str, TopicView]


class Leaders:
    """Of one cluster, by topic id and partition."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: dict[tuple[str, int], tuple[Leader, float]] = {}

    def note(self, topic_id: str, partition: int, leader: Leader) -> None:
        """Somebody has named this leader."""
        known = self._known.get((topic_id, partition))
        if topic_id != _NO_ID and (known is None or leader.epoch >= known[0].epoch):
            self._known[(topic_id, partition)] = (leader, self._clock())

    def is_behind(self, views: Views) -> bool:
        """Whether somebody has named a newer leader of one of these partitions."""
        return any(
            self._newer(view.topic_id, partition, leader) is not None
            for view in views.values()
            for partition, leader in view.leaders.items()
        )

    def merged(self, views: Views) -> Views:
        """The same with the newest leaders; what they say is remembered."""
        found: Views = {}
        for name, view in views.items():
            newer = {
                partition: known
                for partition, leader in view.leaders.items()
                if (known := self._newer(view.topic_id, partition, leader)) is not None
            }
            for partition, leader in view.leaders.items():
                if partition not in newer:
                    self._known.pop((view.topic_id, partition), None)
                    self.note(view.topic_id, partition, leader)
            found[name] = replace(view, leaders={**view.leaders, **newer}) if newer else view
        return found

    def _newer(self, topic_id: str, partition: int, leader: Leader) -> Leader | None:
        known = self._known.get((topic_id, partition))
        if known is None or known[0].epoch <= leader.epoch or self._clock() - known[1] > _BELIEVED_SECONDS:
            return None
        return known[0]


def newest(one: Views, other: Views) -> Views:
    """Of two brokers' answers, for each partition of the same topic the higher leader epoch."""
    found = dict(one)
    for name, view in other.items():
        mine = found.get(name)
        if mine is None or mine.error and not view.error:
            found[name] = view
        elif mine.topic_id == view.topic_id and not view.error:
            leaders = dict(mine.leaders)
            for partition, leader in view.leaders.items():
                if partition not in leaders or leader.epoch > leaders[partition].epoch:
                    leaders[partition] = leader
            found[name] = replace(mine, leaders=leaders)
    return found


def nodes_of(views: Mapping[str, TopicView], places: Iterable[tuple[str, int]]) -> set[int]:
    """The brokers that lead these partitions, as far as they have a leader."""
    known = (views[topic].leaders.get(partition) for topic, partition in places if topic in views)
    return {leader.node for leader in known if leader is not None and leader.node >= 0}
