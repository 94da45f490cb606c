"""Both clusters of a flow read and held against each other. Reads only; what differs is decided in replication/side_by_side.

What cannot be read is told, and the rest is compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from heliograph.config.flows import EngineSettings, FlowSettings
from heliograph.control.acl_sync import acl_rules
from heliograph.control.clock import Clock
from heliograph.control.group_positions import GroupPositions
from heliograph.control.planner import FlowPlanner
from heliograph.errors import HeliographError
from heliograph.kafka.acls import list_acls
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.client import Partition
from heliograph.kafka.consumer_groups import Committed, ConsumerGroups
from heliograph.kafka.quotas import list_quotas
from heliograph.kafka.share_groups import ShareGroups
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.model.topics import Topic
from heliograph.replication.acl_sync import Sides
from heliograph.replication.group_positions import NoPair, Pair, Placed
from heliograph.replication.side_by_side import (
    About,
    Difference,
    GroupPlace,
    TopicPair,
    compare_acls,
    compare_configs,
    compare_groups,
    compare_quotas,
    compare_topics,
)


@dataclass
class FlowCompared:
    """`compared` says how many of what were held against each other; `troubles` are sentences about what could not be."""

    flow: str
    source: str
    target: str
    differences: list[Difference] = field(default_factory=list)
    compared: dict[str, int] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        return not self.differences and not self.troubles

    @property
    def was_compared(self) -> bool:
        """Whether anything was held against anything."""
        return bool(self.compared or self.differences) or not self.troubles


async def compare_flows(flows: Iterable[FlowSettings], engine: EngineSettings) -> list[FlowCompared]:
    warm = Warm()
    try:
        return [await _Comparison(flow, engine, warm).run() for flow in flows]
    finally:
        warm.close()


class _Comparison:
    """Of one flow; each part stands for itself."""

    def __init__(self, flow: FlowSettings, engine: EngineSettings, warm: Warm) -> None:
        self._flow = flow
        self._names = FlowPlanner(flow, engine)
        self._warm = warm
        self._source = warm.client(flow.source_admin)
        self._target = warm.client(flow.target_admin)
        self._found = FlowCompared(flow.flow.name, flow.flow.source, flow.flow.target)
        self._pairs: list[TopicPair] = []

    async def run(self) -> FlowCompared:
        parts: dict[About, Callable[[], Awaitable[None]]] = {
            About.TOPICS: self._topics,
            About.ACLS: self._acls,
            About.QUOTAS: self._quotas,
            About.GROUPS: self._groups,
        }
        try:
            if not await self._reached():
                return self._found
            for about, part in parts.items():
                try:
                    await part()
                except (HeliographError, TimeoutError) as error:
                    self._found.troubles.append(f"{about}: {str(error) or 'a cluster did not answer in time'}")
        finally:
            self._names.close()
        return self._found

    async def _reached(self) -> bool:
        """Both clusters answer: without one of them nothing can be compared, and each part would say so again."""
        for client in (self._source, self._target):
            try:
                await client.metadata([])
            except (HeliographError, TimeoutError) as error:
                alias = client.cluster.alias
                self._found.troubles.append(str(error) or f"cluster {alias} did not answer in time")
        return not self._found.troubles

    async def _topics(self) -> None:
        here = await asyncio.to_thread(_topics, self._flow.source_admin)
        there = await asyncio.to_thread(_topics, self._flow.target_admin)
        remote = {name: self._names.remote_name(name) for name in here if self._names.is_chosen(name)}
        gone = {
            upstream: name for name in there if (upstream := self._names.source_name(name)) and upstream not in here
        }
        refused: dict[str, str] = {}
        both = {name: copy for name, copy in remote.items() if copy in there}
        here |= await asyncio.to_thread(_configs, self._flow.source_admin, {name: here[name] for name in both}, refused)
        copies = {copy: there[copy] for copy in both.values()}
        there |= await asyncio.to_thread(_configs, self._flow.target_admin, copies, refused)
        pairs = {**remote, **gone}
        self._pairs = [TopicPair(name, pairs[name], here.get(name), there.get(pairs[name])) for name in sorted(pairs)]
        self._found.compared[About.TOPICS] = len(self._pairs)
        self._found.differences += compare_topics(self._pairs)
        self._found.troubles += sorted(refused.values())
        whole = [pair for pair in self._pairs if pair.name not in refused and pair.remote not in refused]
        self._found.differences += compare_configs(whole, self._flow.leaves_out_config)

    async def _acls(self) -> None:
        rules = acl_rules(self._flow, self._names)
        here, there = await list_acls(self._source, rules.kinds), await list_acls(self._target, rules.kinds)
        if here is None or there is None:
            if here is not there:
                sides = ("none" if acls is None else "on" for acls in (here, there))
                self._found.differences.append(Difference(About.ACLS, "authorizer", *sides))
            return
        topics = [pair.name for pair in self._pairs if pair.here is not None]
        self._found.compared[About.ACLS] = len(here)
        self._found.differences += compare_acls(Sides(here, there, topics), rules)

    async def _quotas(self) -> None:
        here, there = await list_quotas(self._source), await list_quotas(self._target)
        self._found.compared[About.QUOTAS] = len(here.keys() | there.keys())
        self._found.differences += compare_quotas(here, there)

    async def _groups(self) -> None:
        plan = await asyncio.to_thread(self._names.discover)
        look = await GroupPositions(self._flow, lambda: plan, self._warm, Clock()).look()
        commits = await ConsumerGroups(self._target).committed(_names(look.placed, is_share=False))
        starts = await ShareGroups(self._target).committed(_names(look.placed, is_share=True))
        there = commits.offsets | starts.offsets
        unknown = dict(look.unread) | commits.refused | starts.refused | starts.unread
        places = [_place(placed, there.get(placed.group, {})) for placed in look.placed if placed.group not in unknown]
        self._found.compared[About.GROUPS] = len({place.group for place in places})
        self._found.differences += compare_groups(places)
        self._found.troubles += [*look.troubles, *(f"group {name}: {why}" for name, why in sorted(unknown.items()))]


def _names(placed: Iterable[Placed], is_share: bool) -> set[str]:
    return {place.group for place in placed if place.is_share is is_share}


def _place(placed: Placed, there: Mapping[Partition, Committed]) -> GroupPlace:
    at = there.get((placed.remote, placed.partition))
    pair = placed.pair
    return GroupPlace(
        placed.group,
        f"{placed.remote}-{placed.partition}",
        placed.committed,
        pair.downstream if isinstance(pair, Pair) else None,
        pair.reason if isinstance(pair, NoPair) else "",
        None if at is None else at.offset,
        pair.behind if isinstance(pair, Pair) else 0,
    )


def _topics(cluster: Cluster) -> dict[str, Topic]:
    with ClusterAdmin(cluster) as admin:
        return admin.topics()


def _configs(cluster: Cluster, topics: dict[str, Topic], refused: dict[str, str]) -> dict[str, Topic]:
    with ClusterAdmin(cluster) as admin:
        found = admin.topic_configs(topics, refused)
    return {name: Topic(name, topic.topic_id, topic.partitions, found.get(name, {})) for name, topic in topics.items()}
