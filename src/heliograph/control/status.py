"""What can be said of a flow from any shell: the ledger, the last telemetry, and both clusters' ends at this moment.

Reads only. When nothing runs, the ledger still knows every position and who held the flow last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from heliograph.config.flows import FlowSettings
from heliograph.control.events import EventReader
from heliograph.control.machine import is_gone
from heliograph.control.telemetry import read_telemetry
from heliograph.errors import BrokerRefused, HeliographError
from heliograph.kafka.client import LATEST, ClusterClient, Partition
from heliograph.kafka.log_ends import offsets_of
from heliograph.kafka.slot import Warm
from heliograph.model.events import Event
from heliograph.model.lanes import LaneState, LedgerEntry
from heliograph.model.takeover import hold_s
from heliograph.replication.bottleneck import bottleneck
from heliograph.replication.generations import Holder, LedgerBook
from heliograph.replication.lags import Place, place_of, target_lag
from heliograph.replication.standbys import STANDBY_NOTE, Standby, standbys
from heliograph.replication.topic_names import should_replicate

_FRESH_MS = 8_000
_READ = (LaneState.FOLLOWING, LaneState.DRAINING)
_SILENT_MS = 10_000
"""A lane that moves is reported every second: one that was not for so long, while its source grew and its copy did not, is stuck."""
_MISSING = {3, 100}
_EVENTS_LOOKED_AT = 500
_LEFT_OUT = "left out"
_NOT_NAMED = "the file does not choose its topic any more; its position is kept"
_EVENTS_SHOWN = 5


@dataclass(frozen=True)
class LaneStatus:
    """One lane; -1 where a number is not known."""

    lane: str
    topic: str
    partition: int
    remote_topic: str
    source_end: int
    position: int
    remote_end: int
    lag: int
    delta: int
    generation: int
    producer_id: int
    producer_epoch: int
    state: str
    reason: str
    since_ms: int
    align: bool = False
    """offsets.align is on for the flow."""
    differs_since: int = -1
    """The first source offset whose copy has another offset; -1: none yet."""
    guard: str = ""
    records: int = 0
    bytes: int = 0
    raw_batches: int = 0
    rebuilt_batches: int = 0
    rebuilt: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    foreign: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    committed: int = -1
    """What the ledger has; `position` may be a second newer."""
    read_position: int = -1
    """How far the source was read; -1 while nothing runs."""
    target_lag: int = -1
    """By both ends alone: what the source has and the target has not."""


@dataclass(frozen=True)
class FlowStatus:
    """One flow; `trouble` is what kept it from being read, or what its run says troubles it."""

    flow: str
    running: bool | None
    """None: what would say so cannot be read, or whoever holds the flow is not heard."""
    since_ms: int
    host: str
    process: int
    trouble: str
    epoch: int
    spark: Mapping[str, Any]
    lanes: tuple[LaneStatus, ...]
    events: tuple[Event, ...] = ()
    """The newest ones, oldest first."""
    events_dropped: int = 0
    """How many the run could not write."""
    jobs: tuple[Mapping[str, Any], ...] = ()
    """What the run does around the records: each job's last turn, and its trouble."""
    bottleneck: str = ""
    """What keeps the flow from copying faster, in words; empty where nothing runs."""
    standbys: tuple[Standby, ...] = ()
    """The runs that wait for it, the longest waiting first."""
    reported_ms: int = 0
    """When the run told the numbers of its lanes; 0 where nothing runs, and they are the ledger's and the logs' of now."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


async def read_status(flows: tuple[FlowSettings, ...], takeover_wait_s: float, now_ms: int) -> list[FlowStatus]:
    warm = Warm()
    try:
        return list(await asyncio.gather(*(flow_status(flow, warm, takeover_wait_s, now_ms) for flow in flows)))
    finally:
        warm.close()


async def flow_status(flow: FlowSettings, warm: Warm, takeover_wait_s: float, now_ms: int) -> FlowStatus:
    name = flow.flow.name
    try:
        book = await warm.ledger(flow.target).refresh()
    except BrokerRefused as error:
        if error.code not in _MISSING:
            return _without_lanes(name, None, str(error))
        trouble = await _source_trouble(flow, warm) or "nothing was ever copied: the ledger does not exist"
        return _without_lanes(name, False, trouble)
    except (HeliographError, TimeoutError) as error:
        return _without_lanes(name, None, str(error) or f"cluster {flow.target.alias} did not answer in time")
    telemetry, unread = await _telemetry(warm.client(flow.target), name, now_ms)
    holder = book.holder(name)
    entries = {lane.key: entry for lane in book.lanes() if lane.flow == name and (entry := book.latest(lane))}
    rows = {row["lane"]: row for row in telemetry.get("lanes", ())}
    unheard = unread or _unheard(telemetry, holder, takeover_wait_s, now_ms)
    running = None if unheard else _is_running(telemetry, holder, now_ms)
    trouble = telemetry.get("trouble", "") if running else unheard
    ends: dict[Partition, int] = {}
    remote_ends: dict[Partition, int] = {}
    try:
        ends, remote_ends = await _ends(flow, warm, entries, rows)
    except (HeliographError, TimeoutError) as error:
        trouble = trouble or str(error)
    told_ms = telemetry["time_ms"] if running else 0
    lanes = [
        _lane(key, entries.get(key), rows.get(key), _Ends(flow, ends, remote_ends, running is None), told_ms)
        for key in sorted({*entries, *rows}, key=_order)
    ]
    since = _since(telemetry, holder, running)
    return FlowStatus(
        name,
        running,
        since[0],
        since[1],
        since[2],
        trouble,
        telemetry.get("epoch", 0),
        telemetry.get("spark", {}),
        tuple(lanes),
        await _newest_events(warm.client(flow.target), name),
        telemetry.get("events_dropped", 0) if running else 0,
        tuple(telemetry.get("jobs", ())) if running else (),
        _bottleneck(telemetry) if running else "",
        _waiting(book, name, telemetry.get("run", "") if running else "", now_ms),
        told_ms,
    )


async def _telemetry(client: ClusterClient, flow: str, now_ms: int) -> tuple[dict[str, Any], str]:
    """What the run says of the flow, or why that is not known: the ledger is worth showing without it."""
    try:
        return await read_telemetry(client, flow, now_ms), ""
    except (HeliographError, TimeoutError) as error:
        return {}, str(error) or f"cluster {client.cluster.alias} did not answer in time"


def _is_running(telemetry: Mapping[str, Any], holder: Holder | None, now_ms: int) -> bool:
    is_fresh = bool(telemetry) and now_ms - telemetry["time_ms"] < _FRESH_MS
    return is_fresh and not (holder is not None and holder.released and holder.run == telemetry["run"])


def _unheard(
    telemetry: Mapping[str, Any],
    holder: Holder | None,
    takeover_wait_s: float,
    now_ms: int,
    is_gone: Callable[[str, int], bool] = is_gone,
) -> str:
    """That a run holds the flow and tells nothing, in words: it may be frozen, cut off or dead. Empty where that is not so, or
    its hold has run out, or it is known to have ended."""
    if holder is None or holder.released or _is_running(telemetry, holder, now_ms):
        return ""
    if now_ms - holder.renewed_ms >= hold_s(takeover_wait_s) * 1000 or is_gone(holder.machine, holder.process):
        return ""
    has_spoken = telemetry.get("run") == holder.run
    silent_ms = max(0, now_ms - (telemetry["time_ms"] if has_spoken else holder.since_ms))
    who = f"{holder.host}, process {holder.process},"
    if not has_spoken and silent_ms < _FRESH_MS:
        return f"{who} has just begun to hold the flow and has not reported yet"
    return f"{who} holds the flow and was not heard for {silent_ms // 1000} s"


def _waiting(book: LedgerBook, flow: str, carrier: str, now_ms: int) -> tuple[Standby, ...]:
    """Whoever said so lately, less the run that carries the flow: it may do so before it holds it."""
    found = standbys(book.notes(flow, STANDBY_NOTE))
    return tuple(one for one in found if one.run != carrier and now_ms - one.renewed_ms < _FRESH_MS)


def _bottleneck(telemetry: Mapping[str, Any]) -> str:
    window = telemetry.get("window")
    if not window:
        return ""
    following = (row for row in telemetry["lanes"] if row["state"] == LaneState.FOLLOWING)
    since_ms = min((row["waiting_since_ms"] for row in following if row.get("waiting_since_ms")), default=0)
    lag_ms = telemetry["time_ms"] - since_ms if since_ms else 0
    is_paused = any(row["state"] == "paused" for row in telemetry["lanes"])
    return str(bottleneck(window["time"], lag_ms / 1000, window["records_per_s"], is_paused))


async def _newest_events(client: ClusterClient, flow: str) -> tuple[Event, ...]:
    try:
        return tuple((await EventReader(client, [flow]).read(_EVENTS_LOOKED_AT))[-_EVENTS_SHOWN:])
    except (HeliographError, TimeoutError):
        return ()  # positions are worth more than events: `heliograph events` says what is wrong


async def _source_trouble(flow: FlowSettings, warm: Warm) -> str:
    """Why nothing could be copied yet, if it is the source."""
    try:
        await warm.client(flow.source).metadata([])
    except HeliographError as error:
        return str(error)
    return ""


def _without_lanes(name: str, running: bool | None, trouble: str) -> FlowStatus:
    return FlowStatus(name, running, 0, "", 0, trouble, 0, {}, ())


def _order(key: str) -> tuple[str, int]:
    topic, _, partition = key.rpartition("/")
    return topic, int(partition)


def _since(telemetry: Mapping[str, Any], holder: Holder | None, running: bool | None) -> tuple[int, str, int]:
    """Since when it runs, or since when it does not; and which host and process it was."""
    if running:
        return telemetry["since_ms"], telemetry["host"], telemetry["process"]
    if holder is None:
        return telemetry.get("time_ms", 0), telemetry.get("host", ""), telemetry.get("process", 0)
    return max(holder.renewed_ms, telemetry.get("time_ms", 0)), holder.host, holder.process


async def _ends(
    flow: FlowSettings, warm: Warm, entries: Mapping[str, LedgerEntry], rows: Mapping[str, Any]
) -> tuple[dict[Partition, int], dict[Partition, int]]:
    names = {_topic_of(key) for key in {*entries, *rows}}
    remote = {(flow.remote_name(topic), partition) for topic, partition in names}
    committed = flow.isolation == "read_committed"
    return (
        await offsets_of(warm.client(flow.source), names, LATEST, committed),
        await offsets_of(warm.client(flow.target), remote, LATEST),
    )


@dataclass(frozen=True)
class _Ends:
    """Both clusters' ends, by each side's own names."""

    flow: FlowSettings
    source: Mapping[Partition, int]
    target: Mapping[Partition, int]
    unheard: bool = False
    """It is not known whether a run carries the lanes."""


def _topic_of(key: str) -> Partition:
    _, topic, partition = key.rsplit("/", 2)
    return topic, int(partition)


def _lane(
    key: str,
    entry: LedgerEntry | None,
    row: Mapping[str, Any] | None,
    ends: _Ends,
    told_ms: int,
) -> LaneStatus:
    """`told_ms`: when the run that is alive told `row`; 0: nothing runs, and only the ledger and the logs count."""
    topic, partition = _topic_of(key)
    left_out = row is None and not _is_chosen(ends.flow, topic)
    row, running = row or {}, bool(told_ms)
    remote = ends.flow.remote_name(topic)
    logs = ends.source.get((topic, partition), -1), ends.target.get((remote, partition), -1)
    reported = _reported(row) if running else None
    place = place_of(reported, entry, logs, _is_read(row, told_ms, logs[1]))
    totals = row.get("totals", {})
    stopped = "stopped" if entry is not None and not ends.unheard else "unknown"
    state = _LEFT_OUT if left_out else row.get("state", "waiting") if running else stopped
    return LaneStatus(
        lane=key,
        topic=topic,
        partition=partition,
        remote_topic=remote,
        source_end=place.source_end,
        position=place.position,
        remote_end=place.target_next,
        lag=place.lag,
        delta=place.target_next - place.position if reported and place.target_next >= 0 else _delta(entry),
        generation=entry.generation if entry else row.get("generation", -1),
        producer_id=entry.identity.producer_id if entry else row.get("producer_id", -1),
        producer_epoch=entry.identity.producer_epoch if entry else row.get("producer_epoch", -1),
        state=state,
        reason=_NOT_NAMED if left_out else row.get("reason", "") if running else "",
        since_ms=row.get("since_ms", 0) if running else (entry.time_ms if entry else 0),
        align=ends.flow.align,
        differs_since=entry.differs_at if entry else -1,
        guard=row.get("guard", ""),
        records=totals.get("records", 0),
        bytes=totals.get("bytes", 0),
        raw_batches=totals.get("raw_batches", 0),
        rebuilt_batches=totals.get("rebuilt_batches", 0),
        rebuilt=totals.get("rebuilt", {}),
        dropped=totals.get("dropped", {}),
        foreign=totals.get("foreign", 0),
        skipped=totals.get("skipped", {}),
        committed=entry.source_next if entry else -1,
        read_position=max(row.get("read_position", -1), place.position) if running else -1,
        target_lag=place.lag if running else target_lag(entry, *logs),
    )


def _reported(row: Mapping[str, Any]) -> Place | None:
    """What the lane's task said last; None of a lane that no task has had yet, or that does not know its place yet."""
    is_known = row.get("position", -1) >= 0
    return Place(row["source_end"], row["position"], row["target_next"]) if is_known else None


def _is_read(row: Mapping[str, Any], told_ms: int, remote_end: int) -> bool:
    """Reported a moment ago, or copied since: a lane at rest is not reported again before something comes."""
    is_recent = told_ms - row.get("told_ms", told_ms) < _SILENT_MS
    return row.get("state") in _READ and (is_recent or remote_end > row["target_next"])


def _is_chosen(flow: FlowSettings, topic: str) -> bool:
    heartbeats = flow.heartbeats_replication_enabled
    return should_replicate(topic, flow.topic_names, flow.naming, flow.flow.target, heartbeats).replicate


def _delta(entry: LedgerEntry | None) -> int:
    """Target offset minus source offset, from the newest anchor; before the first record, of the two starts."""
    if entry is None:
        return 0
    source, target = entry.anchors[-1] if entry.anchors else (entry.source_start, entry.target_start)
    return target - source
