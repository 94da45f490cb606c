"""Share groups of one cluster: where each begins to read, asked and set. Brokers have the messages from Kafka 4.1 on.

The same questions as of consumer groups (`kafka.consumer_groups`), for groups that have a start offset instead of commits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from heliograph.errors import BrokerRefused
from heliograph.kafka.client import ClusterClient, Partition
from heliograph.kafka.connections import CLIENT_ID, Connection
from heliograph.kafka.consumer_groups import Commits, Committed, group_refusal
from heliograph.wire.share_offsets import (
    ALTER_API,
    DESCRIBE_API,
    Altered,
    ShareGroupStarts,
    decode_alter,
    decode_describe,
    encode_alter,
    encode_describe,
)

_BUSY = {14, 15, 16}
_NO_SUCH_GROUP = 69
_LOOKS = 20
_LOOK_SECONDS = 0.25


class ShareGroups:
    """Start offsets of one cluster's share groups."""

    def __init__(self, client: ClusterClient) -> None:
        self.client = client

    async def committed(self, groups: Iterable[str]) -> Commits:
        """Where each group begins to read; a group that does not exist begins nowhere."""
        found = Commits()
        for name in groups:
            try:
                answer = await self._described(name)
            except BrokerRefused as error:
                found.refused[name] = self.refusal(name, error.code, "DESCRIBE")
                continue
            if answer is None:
                found.unread[name] = self._too_old("DescribeShareGroupOffsets")
            elif answer.error_code in (0, _NO_SUCH_GROUP):
                found.offsets[name] = {place: Committed(start) for place, start in answer.starts.items()}
            else:
                found.refused[name] = self.refusal(name, answer.error_code, "DESCRIBE")
        return found

    async def _described(self, group: str) -> ShareGroupStarts | None:
        """None: the broker does not know the message."""
        answer = ShareGroupStarts(group)
        for look in range(_LOOKS):
            connection = await self._coordinator(group, look)
            if DESCRIBE_API not in connection.versions:
                return None
            raw = await connection.exchange(lambda number: [encode_describe(number, CLIENT_ID, [group])])
            (answer,) = decode_describe(raw)
            if answer.error_code not in _BUSY:
                break
        return answer

    async def commit(self, group: str, offsets: Mapping[Partition, Committed]) -> dict[Partition, int]:
        """Set where a group without members begins; error codes of the partitions where it was refused."""
        starts = {place: at.offset for place, at in offsets.items()}
        answer = Altered(0)
        for look in range(_LOOKS):
            connection = await self._coordinator(group, look)
            raw = await connection.exchange(lambda number: [encode_alter(number, CLIENT_ID, group, starts)])
            answer = decode_alter(raw)
            if answer.error_code not in _BUSY:
                break
        if answer.error_code:
            return dict.fromkeys(offsets, answer.error_code)
        return {place: code for place, code in answer.partitions.items() if code}

    async def can_set(self) -> str:
        """Empty, or why start offsets cannot be set on this cluster."""
        (node, *_) = await self.client.nodes()
        connection = await self.client.connection(node)
        return "" if ALTER_API in connection.versions else self._too_old("AlterShareGroupOffsets")

    async def _coordinator(self, group: str, look: int) -> Connection:
        if look:
            await asyncio.sleep(_LOOK_SECONDS)
        return await self.client.connection(await self.client.group_coordinator(group))

    def _too_old(self, message: str) -> str:
        return f"brokers of cluster {self.client.cluster.alias} do not know {message}, which came with Kafka 4.1"

    def refusal(self, group: str, code: int, operation: str) -> str:
        return group_refusal(self.client.cluster.alias, group, code, operation)
