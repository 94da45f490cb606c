"""Consumer groups of one cluster: which there are, what they committed, and commits in their name, many groups in a request.

Coordinators are remembered, and looked up again when one says that it is none. What a group's offsets mean, and whether one may
be changed, is decided in replication/.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.admin import ListGroupsRequest, ListGroupsResponse
from kafka.protocol.consumer import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from heliograph.errors import BrokerRefused
from heliograph.kafka.client import ClusterClient, Partition
from heliograph.wire.error_codes import describe

_OFFSET_COMMIT, _OFFSET_FETCH, _LIST_GROUPS = 8, 9, 16
_NAMES_VERSION = 9
"""Of OffsetFetch and OffsetCommit: the last one that knows topics by name."""
_GROUP_KEY = 0
_BUSY = {14, 15, 16}
_GROUP_REFUSED = 30
_NO_SUCH_GROUP = 69
_LOOKS = 40
_LOOK_SECONDS = 0.25
_GROUPS_PER_REQUEST = 200
_NOBODY, _NO_GENERATION = "", -1


@dataclass(frozen=True)
class ListedGroup:
    """`protocol` is `consumer`, `connect`, or empty for offsets without members; `kind` (Kafka 3.8) `classic`, `consumer`, `share`."""

    name: str
    protocol: str
    state: str
    kind: str = ""


@dataclass(frozen=True)
class Committed:
    offset: int
    metadata: str = ""


@dataclass
class Commits:
    """By group, what it committed; of groups that may not be read, why; and of those that cannot be read here, why."""

    offsets: dict[str, dict[Partition, Committed]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)


async def list_groups(client: ClusterClient) -> list[ListedGroup]:
    """Every group of the cluster that may be seen, by name."""
    answers = await asyncio.gather(*(_listed(client, node) for node in await client.nodes()))
    found = {group.name: group for groups in answers for group in groups}
    return [found[name] for name in sorted(found)]


async def _listed(client: ClusterClient, node: int) -> list[ListedGroup]:
    """The groups that a broker looks after; one that has just begun to is waited for."""
    code = 0
    for _ in range(_LOOKS):
        connection = await client.connection(node)
        request = ListGroupsRequest(states_filter=[], types_filter=[])
        answer = await connection.ask(request, ListGroupsResponse, connection.version(_LIST_GROUPS, 5))
        code = answer.error_code
        if not code:
            return [
                ListedGroup(
                    group.group_id,
                    group.protocol_type,
                    group.group_state,
                    (getattr(group, "group_type", "") or "").lower(),
                )
                for group in answer.groups
            ]
        if code not in _BUSY:
            break
        await asyncio.sleep(_LOOK_SECONDS)
    raise BrokerRefused(code, f"cluster {client.cluster.alias}: list groups: {describe(code)}")


class ConsumerGroups:
    """Offsets of one cluster's groups."""

    def __init__(self, client: ClusterClient) -> None:
        self.client = client
        self._coordinators: dict[str, int] = {}

    async def committed(self, groups: Iterable[str]) -> Commits:
        """Where each group would read next, in all topics; a group that does not exist has committed nothing.

        Offsets of a transaction that is still open are not among them: the group would go on where it last committed.
        """
        found = Commits()
        busy = dict.fromkeys(groups, 0)
        for look in range(_LOOKS):
            if look:
                await asyncio.sleep(_LOOK_SECONDS)
            busy = await self._committed_once(busy, found)
            if not busy:
                return found
        for name, code in busy.items():
            found.refused[name] = self.refusal(name, code, "DESCRIBE")
        return found

    async def _committed_once(self, groups: Iterable[str], into: Commits) -> dict[str, int]:
        """Those whose coordinator was not found or not ready, with its code."""
        codes = await self._find_coordinators(groups)
        by_node: dict[int, list[str]] = {}
        for name in groups:
            if name in self._coordinators:
                by_node.setdefault(self._coordinators[name], []).append(name)
        for node, names in by_node.items():
            for part in _parts(names):
                codes |= await self._fetch(node, part, into)
        for name, code in codes.items():
            if code in _BUSY:
                self._coordinators.pop(name, None)
            elif code not in (0, _NO_SUCH_GROUP):
                into.refused[name] = self.refusal(name, code, "DESCRIBE")
        return {name: code for name, code in codes.items() if code in _BUSY}

    async def _fetch(self, node: int, groups: Sequence[str], into: Commits) -> dict[str, int]:
        kind = OffsetFetchRequest.OffsetFetchRequestGroup
        wanted = [kind(group_id=name, member_id=None, member_epoch=-1, topics=None) for name in groups]
        connection = await self.client.connection(node)
        request = OffsetFetchRequest(groups=wanted, require_stable=False)
        answer = await connection.ask(request, OffsetFetchResponse, connection.version(_OFFSET_FETCH, _NAMES_VERSION))
        for group in answer.groups:
            if not group.error_code:
                into.offsets[group.group_id] = dict(_offsets(group))
        return {group.group_id: group.error_code for group in answer.groups}

    async def commit(self, group: str, offsets: Mapping[Partition, Committed]) -> dict[Partition, int]:
        """In the name of a group without members; error codes of the partitions where it was refused.

        A broker refuses a group that has members: nobody is moved while it reads.
        """
        codes: dict[Partition, int] = {}
        for look in range(_LOOKS):
            if look:
                await asyncio.sleep(_LOOK_SECONDS)
            codes = await self._commit_once(group, offsets)
            if not _BUSY & set(codes.values()):
                break
            self._coordinators.pop(group, None)
        return {place: code for place, code in codes.items() if code}

    async def _commit_once(self, group: str, offsets: Mapping[Partition, Committed]) -> dict[Partition, int]:
        code = (await self._find_coordinators([group])).get(group, 0)
        if code:
            return dict.fromkeys(offsets, code)
        topic_type = OffsetCommitRequest.OffsetCommitRequestTopic
        part_type = topic_type.OffsetCommitRequestPartition
        topics: dict[str, list[Any]] = {}
        for (topic, partition), at in sorted(offsets.items()):
            part = part_type(
                partition_index=partition,
                committed_offset=at.offset,
                committed_leader_epoch=-1,
                committed_metadata=at.metadata,
            )
            topics.setdefault(topic, []).append(part)
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=_NO_GENERATION,
            member_id=_NOBODY,
            topics=[topic_type(name=name, partitions=parts) for name, parts in topics.items()],
        )
        connection = await self.client.connection(self._coordinators[group])
        version = connection.version(_OFFSET_COMMIT, _NAMES_VERSION)
        answer = await connection.ask(request, OffsetCommitResponse, version)
        return {
            (topic.name, part.partition_index): part.error_code for topic in answer.topics for part in topic.partitions
        }

    async def _find_coordinators(self, groups: Iterable[str]) -> dict[str, int]:
        """Look up those that are not known; error codes of the ones that were not found."""
        codes: dict[str, int] = {}
        for part in _parts([name for name in groups if name not in self._coordinators]):
            request = FindCoordinatorRequest(key_type=_GROUP_KEY, coordinator_keys=part)
            answer = await self.client.ask_any(request, FindCoordinatorResponse, 4)
            for found in answer.coordinators:
                if found.error_code:
                    codes[found.key] = found.error_code
                else:
                    self._coordinators[found.key] = found.node_id
        return codes

    def refusal(self, group: str, code: int, operation: str) -> str:
        return group_refusal(self.client.cluster.alias, group, code, operation)


def group_refusal(alias: str, group: str, code: int, operation: str) -> str:
    """A sentence, with the permission that is missing if it is one."""
    needed = f" (this needs {operation} on the group {group} of cluster {alias})" if code == _GROUP_REFUSED else ""
    return f"cluster {alias}: group '{group}': {describe(code)}{needed}"


def _offsets(group: Any) -> Iterator[tuple[Partition, Committed]]:
    for topic in group.topics:
        for part in topic.partitions:
            if part.error_code == 0 and part.committed_offset >= 0:
                yield (topic.name, part.partition_index), Committed(part.committed_offset, part.metadata or "")


def _parts(names: Sequence[str]) -> Iterator[list[str]]:
    for at in range(0, len(names), _GROUPS_PER_REQUEST):
        yield list(names[at : at + _GROUPS_PER_REQUEST])
