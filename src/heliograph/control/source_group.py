"""The job that commits a flow's positions as a consumer group on its source. Which are due: replication/source_group.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from heliograph.config.flows import FlowSettings
from heliograph.control.clock import Clock
from heliograph.control.jobs import Found
from heliograph.kafka.client import ClusterClient, Partition
from heliograph.kafka.consumer_groups import Committed, ConsumerGroups
from heliograph.replication.permissions import missing_on_topic
from heliograph.replication.source_group import CommitPositions, Committing, source_group

_AT_ONCE = 2_000
"""Offsets in one request: they become one batch of the coordinator's, which must fit."""
_GONE = 3
"""The topic was deleted: the flow's next look finds out."""


class SourceGroupJob:
    """`positions` are those that the target has acknowledged, by source partition; looking at them costs no request."""

    def __init__(
        self,
        settings: FlowSettings,
        positions: Callable[[], Mapping[Partition, int]],
        source: ClusterClient,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._positions = positions
        self._groups = ConsumerGroups(source)
        self._clock = clock
        self._committing = Committing(source_group(settings.flow))

    @property
    def name(self) -> str:
        return "source group"

    @property
    def interval_s(self) -> float:
        return float(self._settings.jobs.watch.source_group_interval_s)

    async def look(self) -> Found[CommitPositions]:
        group = self._committing.group
        if self._settings.jobs.watch.source_readonly:
            return Found((), summary=f"positions are not committed as group {group}: source.readonly = true")
        actions = self._committing.due(self._positions(), self._clock.monotonic())
        known = len(self._committing.committed)
        return Found(actions, summary=f"group {group} has {known:,} of our positions")

    async def apply(self, actions: Sequence[CommitPositions]) -> Sequence[str]:
        troubles: set[str] = set()
        for action in actions:
            places = sorted(action.offsets)
            for begin in range(0, len(places), _AT_ONCE):
                some = {place: action.offsets[place] for place in places[begin : begin + _AT_ONCE]}
                refused = await self._groups.commit(action.group, {at: Committed(next_) for at, next_ in some.items()})
                self._committing.wrote({place: offset for place, offset in some.items() if place not in refused})
                troubles |= {self._refusal(place, code) for place, code in refused.items() if code != _GONE}
        return sorted(troubles)

    def _refusal(self, place: Partition, code: int) -> str:
        group = self._committing.group
        missing = missing_on_topic(code, "READ", place[0], self._settings.flow.source)
        needed = f" (this needs {missing})" if missing else ""
        return f"positions are not committed on the source: {self._groups.refusal(group, code, 'READ')}{needed}"
