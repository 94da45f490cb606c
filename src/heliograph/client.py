"""A client of a cluster that is fed by mirrors, Heliograph's or MirrorMaker 2's: where its topics come from, where groups go on.

What Java's MirrorClient and RemoteClusterUtils answer, and exact translation. Public: names here stay.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import TypeVar, overload

from heliograph.config.flows import FlowSettings
from heliograph.config.load import load_file
from heliograph.control.checkpoints import checkpoints_topic
from heliograph.errors import ConfigError, HeliographError
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.own_topics import read_topic
from heliograph.operations.translate import FlowTranslator, Translated
from heliograph.replication import upstream
from heliograph.replication.topic_names import ReplicationPolicy
from heliograph.wire.mm2 import decode_checkpoint

__all__ = ["MirrorClient", "RemoteOffset", "Translated"]

Partition = tuple[str, int]
T = TypeVar("T")


@dataclass(frozen=True)
class RemoteOffset:
    """Where a group goes on, by the newest checkpoint, with the metadata that it committed."""

    offset: int
    metadata: str


class MirrorClient:
    """Asks one cluster, by the file that its mirrors are run with. Each call opens its connections and closes them."""

    def __init__(self, file: str | PathLike[str], cluster: str) -> None:
        """`cluster` is an alias of the file, with an enabled flow into it."""
        settings = load_file(str(file))
        self._flows = {flow.flow.source: flow for flow in settings.flows if flow.flow.target == cluster}
        self._name = cluster
        if not self._flows:
            raise ConfigError([f"{settings.path}: no enabled flow leads into a cluster '{cluster}'"])

    # -- where topics come from ---------------------------------------------------------------------------------------

    def upstream_clusters(self) -> set[str]:
        """Every cluster whose heartbeats arrive here, over however many hops."""
        return self._of_topics(upstream.upstream_clusters)

    def replication_hops(self, alias: str) -> int:
        """The fewest hops from that cluster to this one; -1 if its heartbeats do not arrive."""
        topics = self._topics()
        found = [upstream.replication_hops(topics, policy, alias) for policy in self._policies()]
        return min((hops for hops in found if hops != upstream.UNREACHABLE), default=upstream.UNREACHABLE)

    def heartbeat_topics(self) -> set[str]:
        return self._of_topics(upstream.heartbeat_topics)

    def checkpoint_topics(self) -> set[str]:
        return self._of_topics(upstream.checkpoint_topics)

    def remote_topics(self, alias: str | None = None) -> set[str]:
        """Topics that are copies; of one cluster only, if an alias is given."""
        return self._of_topics(lambda topics, policy: upstream.remote_topics(topics, policy, alias))

    # -- where groups go on -------------------------------------------------------------------------------------------

    @overload
    def remote_consumer_offsets(self, group: str, alias: str) -> dict[Partition, RemoteOffset]: ...

    @overload
    def remote_consumer_offsets(
        self, group: re.Pattern[str], alias: str
    ) -> dict[str, dict[Partition, RemoteOffset]]: ...

    def remote_consumer_offsets(
        self, group: str | re.Pattern[str], alias: str
    ) -> dict[Partition, RemoteOffset] | dict[str, dict[Partition, RemoteOffset]]:
        """By remote topic and partition, what the newest checkpoints of cluster `alias` say; empty without a checkpoint.

        A compiled expression stands for all groups whose whole name matches; the answer is then by group.
        """
        flow = self._flow(alias)
        found = asyncio.run(_checkpoints(flow, checkpoints_topic(flow)))
        if isinstance(group, str):
            return found.get(group, {})
        return {name: offsets for name, offsets in found.items() if group.fullmatch(name)}

    def translate(self, alias: str, topic: str, partition: int, offset: int, *, reverse: bool = False) -> Translated:
        """An offset of cluster `alias` to the offset of its copy here, exactly; `reverse`: from here to there."""

        async def ask() -> Translated:
            async with FlowTranslator(self._flow(alias)) as translator:
                return await translator.offset(topic, partition, offset, reverse)

        return asyncio.run(ask())

    def translate_group(self, alias: str, group: str, *, reverse: bool = False) -> list[Translated]:
        """Everything that a group committed on cluster `alias` for copied topics; `reverse`: here, for there."""

        async def ask() -> list[Translated]:
            async with FlowTranslator(self._flow(alias)) as translator:
                return await translator.group(group, reverse=reverse)

        return asyncio.run(ask())

    # -- parts --------------------------------------------------------------------------------------------------------

    def _flow(self, alias: str) -> FlowSettings:
        if alias not in self._flows:
            raise ConfigError([f"no flow {alias}->{self._name}; flows come from {', '.join(sorted(self._flows))}"])
        return self._flows[alias]

    def _policies(self) -> list[ReplicationPolicy]:
        return [flow.naming for flow in self._flows.values()]

    def _topics(self) -> list[str]:
        with ClusterAdmin(next(iter(self._flows.values())).target_admin) as admin:
            return list(admin.topics())

    def _of_topics(self, choose: Callable[[list[str], ReplicationPolicy], set[str]]) -> set[str]:
        """Of all flows into the cluster: each may have names of its own."""
        topics = self._topics()
        return set().union(*(choose(topics, policy) for policy in self._policies()))


async def _checkpoints(flow: FlowSettings, topic: str) -> dict[str, dict[Partition, RemoteOffset]]:
    """By group; of one partition the newest record counts."""
    client = ClusterClient(flow.target)
    try:
        records = (await read_topic(client, topic) or {}).get(0, [])
    finally:
        client.close()
    found: dict[str, dict[Partition, RemoteOffset]] = {}
    for record in records:
        try:
            checkpoint = decode_checkpoint(record.key, record.value)
        except HeliographError:
            continue  # MirrorMaker 2 passes over what it cannot read, too
        offsets = found.setdefault(checkpoint.group, {})
        offsets[checkpoint.topic, checkpoint.partition] = RemoteOffset(checkpoint.downstream, checkpoint.metadata)
    return found
