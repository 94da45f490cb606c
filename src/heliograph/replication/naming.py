"""The names of one flow: its replication policy, with the flow's own rules in front of it, and the way back over every hop.

With rules of their own names say nothing by themselves: whether a topic came from the target is found by taking back the
rules of all flows of the file, hop by hop. Knows names only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heliograph.model.clusters import Flow
from heliograph.replication.renames import NO_RENAMES, TOPIC, Renames
from heliograph.replication.topic_names import ReplicationPolicy

Route = tuple[Flow, Renames]


class RenamingPolicy(ReplicationPolicy):
    """`routes` are the flows of the file that have rules. Heartbeats keep the names that MirrorMaker 2's tools look for."""

    def __init__(self, base: ReplicationPolicy, flow: Flow, routes: Sequence[Route]) -> None:
        super().__init__(base.separator)
        self.internal_separator = base.internal_separator
        self._base = base
        self._source = flow.source
        self._routes = tuple(routes)
        mine = (renames for route, renames in routes if (route.source, route.target) == (flow.source, flow.target))
        self._renames = next(mine, NO_RENAMES)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        renamed = None if self.is_heartbeats(topic) else self._renames.forward(topic)
        return renamed or self._base.format_remote_topic(source_alias, topic)

    def format_remote_prefix(self, source_alias: str, prefix: str) -> str | None:
        if not self._renames:
            return self._base.format_remote_prefix(source_alias, prefix)
        before, _, _ = self._renames.form.partition(TOPIC)
        return before + prefix if self._renames == Renames(form=self._renames.form) else None

    def topic_source(self, topic: str) -> str | None:
        return self._base.topic_source(topic) if self._source_name(topic) is None else self._source

    def upstream_topic(self, topic: str) -> str | None:
        return self._source_name(topic) or self._base.upstream_topic(topic)

    def is_heartbeats(self, topic: str) -> bool:
        return self._base.is_heartbeats(topic)

    def is_cycle(self, topic: str, target_alias: str) -> bool:
        return self._came_from(target_alias, (self._source, topic), set())

    def refusal(self, source_alias: str, topic: str) -> str:
        remote = self.format_remote_topic(source_alias, topic)
        owner = self._source_name(remote)
        if owner not in (None, topic):
            return f"its remote name '{remote}' is that of '{owner}' (topic.rename.*)"
        if remote.startswith("__"):
            return f"its remote name '{remote}' begins with '__', as internal topics do (topic.rename.*)"
        return self._base.refusal(source_alias, topic)

    def _source_name(self, remote: str) -> str | None:
        return None if self.is_heartbeats(remote) else self._renames.back(remote)

    def _came_from(self, wanted: str, place: tuple[str, str], seen: set[tuple[str, str]]) -> bool:
        if place in seen:
            return False
        seen.add(place)
        return any(before[0] == wanted or self._came_from(wanted, before, seen) for before in self._before(*place))

    def _before(self, cluster: str, topic: str) -> Iterator[tuple[str, str]]:
        """Where a topic of a cluster may have been one hop before. A name that is kept says nothing."""
        for flow, renames in self._routes:
            if flow.target == cluster and not self.is_heartbeats(topic):
                upstream = renames.back(topic)
                if upstream not in (None, topic):
                    yield flow.source, str(upstream)
        source, upstream = self._base.topic_source(topic), self._base.upstream_topic(topic)
        if source is not None and upstream not in (None, topic):
            yield source, str(upstream)
