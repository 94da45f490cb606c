"""How far every lane is behind, in three ways, with sizes and the brokers' addresses: asked of both clusters now.

Reads only, and needs no running mirror; one that runs tells the read positions. Connections are kept between looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from heliograph.config.flows import FlowSettings
from heliograph.control.status import FlowStatus, LaneStatus, flow_status
from heliograph.errors import HeliographError
from heliograph.kafka.client import EARLIEST, ClusterClient, Partition
from heliograph.kafka.groups import committed_offsets
from heliograph.kafka.log_ends import offsets_of
from heliograph.kafka.log_sizes import partition_sizes
from heliograph.kafka.slot import Warm
from heliograph.replication.lags import LogSize, behind, bytes_behind
from heliograph.replication.source_group import source_group


@dataclass(frozen=True)
class LaneLag:
    """One lane; -1 where a number is not known."""

    topic: str
    partition: int
    remote_topic: str
    owner: str
    """Host and process that carry it; empty while nothing runs."""
    state: str
    source_end: int
    committed: int
    """As the ledger has it."""
    group_committed: int
    """As the group on the source has it."""
    committed_lag: int
    read_position: int
    read_lag: int
    target_end: int
    target_lag: int
    log_bytes: int
    bytes_behind: int
    """About, by the average of the log, of `target_lag`."""


@dataclass(frozen=True)
class FlowLag:
    flow: str
    group: str
    running: bool | None
    """None: what would say so cannot be read, or whoever holds the flow is not heard."""
    since_ms: int
    host: str
    process: int
    trouble: str
    lanes: Sequence[LaneLag] = ()
    brokers: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """By cluster alias and broker id, the address."""
    reported_ms: int = 0
    """When the run told the numbers of its lanes; 0 where nothing runs."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class LagLook:
    """Looks again and again at the same flows."""

    def __init__(self, flows: Sequence[FlowSettings], takeover_wait_s: float, topic: str = "") -> None:
        self._flows = flows
        self._wait_s = takeover_wait_s
        self._topic = topic
        self._warm = Warm()

    def close(self) -> None:
        self._warm.close()

    async def look(self, now_ms: int) -> list[FlowLag]:
        return list(await asyncio.gather(*(self._flow(flow, now_ms) for flow in self._flows)))

    async def _flow(self, flow: FlowSettings, now_ms: int) -> FlowLag:
        status = await flow_status(flow, self._warm, self._wait_s, now_ms)
        lanes = [lane for lane in status.lanes if self._topic in ("", lane.topic, lane.remote_topic)]
        source, target = self._warm.client(flow.source), self._warm.client(flow.target)
        group = source_group(flow.flow)
        places = [(lane.topic, lane.partition) for lane in lanes]
        committed = await _committed(source, group, places)
        logs = await _logs(source, places, lanes)
        return FlowLag(
            status.flow,
            group,
            status.running,
            status.since_ms,
            status.host,
            status.process,
            status.trouble,
            tuple(_lane(lane, status, logs, committed) for lane in lanes),
            {client.cluster.alias: _addresses(client) for client in (source, target)},
            status.reported_ms,
        )


def _lane(
    lane: LaneStatus, status: FlowStatus, logs: Mapping[Partition, LogSize], committed: Mapping[Partition, int]
) -> LaneLag:
    place = (lane.topic, lane.partition)
    log = logs.get(place, LogSize(-1, lane.source_end, -1))
    return LaneLag(
        topic=lane.topic,
        partition=lane.partition,
        remote_topic=lane.remote_topic,
        owner=f"{status.host}/{status.process}" if status.running else "",
        state=lane.state,
        source_end=lane.source_end,
        committed=lane.committed,
        group_committed=committed.get(place, -1),
        committed_lag=behind(lane.source_end, lane.committed),
        read_position=lane.read_position,
        read_lag=behind(lane.source_end, lane.read_position),
        target_end=lane.remote_end,
        target_lag=lane.target_lag,
        log_bytes=log.size,
        bytes_behind=bytes_behind(lane.target_lag, log),
    )


async def _committed(source: ClusterClient, group: str, places: Sequence[Partition]) -> Mapping[Partition, int]:
    try:
        return await committed_offsets(source, group, places) if places else {}
    except (HeliographError, TimeoutError):
        return {}  # who may not see the group, or has switched it off, has the ledger


async def _logs(
    source: ClusterClient, places: Sequence[Partition], lanes: Sequence[LaneStatus]
) -> Mapping[Partition, LogSize]:
    if not places:
        return {}
    try:
        starts = await offsets_of(source, places, EARLIEST)
        sizes = await partition_sizes(source, places)
    except (HeliographError, TimeoutError):
        return {}
    ends = {(lane.topic, lane.partition): lane.source_end for lane in lanes}
    return {place: LogSize(starts.get(place, -1), ends[place], sizes.get(place, -1)) for place in places}


def _addresses(client: ClusterClient) -> dict[int, str]:
    return {node: f"{host}:{port}" for node, (host, port) in sorted(client.brokers.items())}
