"""Reading a range of a log once: for the ledger, for walking a source from a known position, for the proof of position.

The lanes' own endless reading is in fetch.py. Here every call is one Fetch on a connection kept for the purpose.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from heliograph.errors import BrokerRefused, ConnectionLost, HeliographError
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.connections import CLIENT_ID
from heliograph.kafka.refusals import topic_refused
from heliograph.wire.aborted import CAME_HOME, CommittedView
from heliograph.wire.fetch_codec import (
    FetchedPartition,
    FetchPartition,
    FetchSettings,
    FetchTopic,
    decode_fetch,
    encode_fetch,
)
from heliograph.wire.record_batch import BatchHeader, walk

_CHUNK_BYTES = 4 << 20
FETCH_API = 1


@dataclass(frozen=True)
class Log:
    """One partition and its leader."""

    topic: str
    topic_id: str
    partition: int
    node: int
    leader_epoch: int = -1
    after_epoch: int = -1
    """Leader epoch of the batch before the place where reading begins: a log that was cut back since shows (`Diverged`)."""


class Diverged(HeliographError):
    """The log is not the one that was read before: `epoch`, which the reader knew or the last one before, ends at `ends_at`."""

    def __init__(self, what: str, ends_at: int, epoch: int) -> None:
        super().__init__(f"{what}: it was cut back to {ends_at} since it was last read")
        self.ends_at = ends_at
        self.epoch = epoch


@dataclass(frozen=True)
class Seen:
    """A batch in a range: its header, its bytes, and why a reader may not see it (None: it may)."""

    header: BatchHeader
    data: memoryview
    dropped: str | None


class Judge(Protocol):
    """Knows which producers' batches came home."""

    async def learn(self, producer_ids: Iterable[int]) -> None:
        """Find out whose these ids are, or raise."""

    def is_theirs(self, producer_id: int) -> bool:
        """Of an id that was learned."""


async def fetch_once(
    client: ClusterClient, log: Log, offset: int, *, committed: bool, max_bytes: int = _CHUNK_BYTES, wait_ms: int = 0
) -> tuple[bytearray, FetchedPartition]:
    """One Fetch; at the end of the log it waits so long for more. BrokerRefused for the partition's error, Diverged."""
    connection = await client.connection(log.node, "poll" if wait_ms else "range")
    version = connection.version(FETCH_API, 13)
    max_bytes = min(max_bytes, connection.pace.size)
    part = FetchPartition(log.partition, -1, offset, log.after_epoch, max_bytes)
    topic = FetchTopic(log.topic, uuid.UUID(log.topic_id).bytes, [part])
    settings = FetchSettings(
        max_wait_ms=wait_ms, min_bytes=int(wait_ms > 0), max_bytes=max_bytes, read_committed=committed
    )
    answer = await connection.exchange(
        lambda correlation: [encode_fetch(version, correlation, CLIENT_ID, settings, [topic])]
    )
    connection.pace.took(len(answer), asyncio.get_running_loop().time() - connection.began_at)
    result = decode_fetch(version, answer)
    what = f"reading {log.topic}-{log.partition} at {offset}"
    if result.error_code:
        raise BrokerRefused(result.error_code, what)
    if not result.partitions:
        raise ConnectionLost(f"{what}: the answer is empty")
    fetched = result.partitions[0]
    if fetched.error_code:
        raise topic_refused(fetched.error_code, what, "READ", log.topic, client.cluster.alias)
    if fetched.diverging_epoch >= 0:
        raise Diverged(what, fetched.diverging_end, fetched.diverging_epoch)
    return answer, fetched


async def read_range(
    client: ClusterClient, log: Log, offset: int, end: int, *, committed: bool, home: Judge | None = None
) -> AsyncIterator[Seen]:
    """Every batch that overlaps [offset, end), in order. Stops early where the log has no more to give.

    With `home`, batches that came home are dropped too.
    """
    while offset < end:
        buffer, fetched = await fetch_once(client, log, offset, committed=committed)
        view = memoryview(buffer)
        visible = CommittedView(fetched.aborted, committed)
        before = offset
        for at, header in walk(buffer, fetched.start, fetched.end):
            dropped = visible.dropped_because(buffer, at, header)
            if header.next_offset <= offset:
                continue
            if header.base_offset >= end:
                return
            if home is not None and dropped is None:
                await home.learn([header.producer_id])
                dropped = CAME_HOME if home.is_theirs(header.producer_id) else None
            yield Seen(header, view[at : at + header.size], dropped)
            offset = header.next_offset
            if log.after_epoch >= 0 and header.leader_epoch != log.after_epoch:
                log = replace(log, after_epoch=header.leader_epoch)
        if offset == before:
            if fetched.end - fetched.start == 0:
                return
            # The first batch is larger than a chunk: the broker gives the first one whole only when asked for it alone.
            raise ConnectionLost(f"{log.topic}-{log.partition}: no whole batch at {offset}")
