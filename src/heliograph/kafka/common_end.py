"""Whether a source and its copy are the same up to an offset: the record before it, on both sides.

Asked where a source was cut back and grew again, and its leader cannot say how far it agrees with what was copied.
"""

from __future__ import annotations

from heliograph.errors import HeliographError
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.ranges import Log, read_range
from heliograph.kafka.walked import Content, alike
from heliograph.model.lanes import Lane, LedgerEntry
from heliograph.wire.rebuild import record_at


async def common_end(
    lane: Lane,
    entry: LedgerEntry,
    clients: tuple[ClusterClient, ClusterClient],
    nodes: tuple[int, int],
    offset: int,
) -> bool:
    """Whether source record `offset - 1` is what the copy has in its place, by the entry's anchors.

    False also where it cannot be shown: an anchor is missing, or the record is a marker, deleted, or part of a gap.
    """
    anchors = [(entry.source_start, entry.target_start), *entry.anchors]
    known = [(source, target) for source, target in anchors if source < offset]
    if not known:
        return False
    source, target = max(known)
    here = await _record(clients[0], Log(lane.id.topic, lane.source_topic_id, lane.id.partition, nodes[0]), offset - 1)
    there = await _record(
        clients[1],
        Log(lane.remote_topic, lane.target_topic_id, lane.id.partition, nodes[1]),
        offset - 1 + target - source,
    )
    if here is None or there is None:
        return False
    return alike(here[0], there[0], append_time=there[1])


async def _record(client: ClusterClient, log: Log, offset: int) -> tuple[Content, bool] | None:
    """A record, and whether its timestamp is the broker's."""
    try:
        async for seen in read_range(client, log, offset, offset + 1, committed=False):
            return record_at(seen.data, offset), seen.header.is_append_time
    except HeliographError:
        return None
    return None
