"""Groups on a cluster: Connect's workers with what they run, who reads what in a consumer group, and the offsets it committed.

Every function is a few questions to one cluster; what the answers mean is decided in replication/.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse
from kafka.protocol.consumer import OffsetFetchRequest, OffsetFetchResponse

from heliograph.errors import BrokerRefused
from heliograph.kafka.client import ClusterClient, Partition
from heliograph.kafka.consumer_groups import list_groups
from heliograph.replication.mm2_live import HIDDEN, ConnectGroup, Member
from heliograph.wire.connect_group import decode_tasks
from heliograph.wire.consumer_group import decode_assignment
from heliograph.wire.error_codes import describe

_CONNECT = "connect"
_OFFSET_FETCH, _DESCRIBE_GROUPS = 9, 15
_NOT_ALLOWED = 30
_DESERTED = ("Empty", "Dead")


async def connect_groups(client: ClusterClient) -> list[ConnectGroup]:
    """Connect's groups that have members, and those whose members may not be seen."""
    listed = [group for group in await list_groups(client) if group.protocol == _CONNECT]
    found = [await _described(client, group.name) for group in listed if group.state not in _DESERTED]
    return [group for group in found if group.members or group.state == HIDDEN]


async def _described(client: ClusterClient, name: str) -> ConnectGroup:
    try:
        coordinator = await client.group_coordinator(name)
    except BrokerRefused as error:
        if error.code == _NOT_ALLOWED:
            return ConnectGroup(name, HIDDEN, [])
        raise
    connection = await client.connection(coordinator)
    request = DescribeGroupsRequest(groups=[name], include_authorized_operations=False)
    answer = await connection.ask(request, DescribeGroupsResponse, connection.version(_DESCRIBE_GROUPS, 5))
    (group,) = answer.groups
    if group.error_code:
        if group.error_code == _NOT_ALLOWED:
            return ConnectGroup(name, HIDDEN, [])
        raise BrokerRefused(group.error_code, f"cluster {client.cluster.alias}: group '{name}'")
    members = [
        Member(
            member.client_host.removeprefix("/"),
            decode_tasks(bytes(member.member_metadata or b""), bytes(member.member_assignment or b"")),
        )
        for member in group.members
    ]
    return ConnectGroup(name, group.group_state, members)


@dataclass(frozen=True)
class Owner:
    """The member that reads a partition."""

    host: str
    client_id: str


async def owners(client: ClusterClient, group: str) -> dict[Partition, Owner]:
    """Who reads which partition, as far as the group's coordinator tells: of a group of the classic protocol, with members."""
    node = await client.group_coordinator(group)
    connection = await client.connection(node)
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=False)
    answer = await connection.ask(request, DescribeGroupsResponse, connection.version(_DESCRIBE_GROUPS, 5))
    return {
        place: Owner(member.client_host.removeprefix("/"), member.client_id)
        for found in answer.groups
        for member in found.members
        for place in decode_assignment(bytes(member.member_assignment or b""))
    }


async def committed_offsets(client: ClusterClient, group: str, partitions: Sequence[Partition]) -> dict[Partition, int]:
    """Where a consumer group would read next; partitions without a committed offset are left out."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    topic_type = OffsetFetchRequest.OffsetFetchRequestTopic
    request = OffsetFetchRequest(
        group_id=group,
        topics=[topic_type(name=name, partition_indexes=numbers) for name, numbers in sorted(topics.items())],
        require_stable=True,
    )
    try:
        coordinator = await client.group_coordinator(group)
    except BrokerRefused as error:
        raise BrokerRefused(error.code, f"{error.what}{_needed(group, error.code)}") from error
    connection = await client.connection(coordinator)
    answer = await connection.ask(request, OffsetFetchResponse, connection.version(_OFFSET_FETCH, 7))
    if answer.error_code:
        what = f"cluster {client.cluster.alias}: group '{group}': {describe(answer.error_code)}"
        raise BrokerRefused(answer.error_code, f"{what}{_needed(group, answer.error_code)}")
    return {
        (topic.name, part.partition_index): part.committed_offset
        for topic in answer.topics
        for part in topic.partitions
        if part.error_code == 0 and part.committed_offset >= 0
    }


def _needed(group: str, code: int) -> str:
    return f" (this needs DESCRIBE on group {group})" if code == _NOT_ALLOWED else ""
