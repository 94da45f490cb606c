"""What others may see of a run: JSON records in the telemetry topic of the flow's target.

Every second one record says how a flow stands. The rows of its lanes are in it while they are few; many go into records of
their own, in parts that fit a message, and less often: a second for every 500 lanes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from heliograph.control.board import Board, LaneView
from heliograph.errors import HeliographError
from heliograph.kafka.client import EARLIEST, LATEST, ClusterClient
from heliograph.kafka.ledger import TELEMETRY_TOPIC
from heliograph.kafka.ranges import Log, read_range
from heliograph.kafka.refusals import topic_refused
from heliograph.kafka.slot import Warm
from heliograph.kafka.topic_writer import TopicWriter
from heliograph.model.clusters import Cluster
from heliograph.wire.records import read_records

VERSION = 1
LANES_IN_A_RECORD = 500
_SECONDS = 2.0
_NEWEST = 40
_LOOKED_BACK_MS = 15_000
"""The rows of 5,000 lanes are published every ten seconds."""
_MISSING = {3, 100}
_NO_LEADER = 5
_NOT_TOLD = frozenset({"counts", "latency_ms", "events"})

Record = Mapping[str, Any]
Held = Callable[[str], Mapping[str, Any]]
"""What is to be said of a lane, by its key, instead of what its task reported: somebody stopped it."""


def row_of(view: LaneView) -> dict[str, Any]:
    """What others may see of a lane."""
    row = {name: value for name, value in view.row.items() if name not in _NOT_TOLD}
    return {**row, "totals": vars(view.totals)}


def rows_of(flow: str, board: Board, waiting: Mapping[str, str], held: Held) -> list[str]:
    """The state of one flow's lanes, a JSON object each; `waiting` are lanes that no task may have had yet, with the reason if
    there is one. What is to be said of those is said: that they are refused, or that somebody stopped them."""
    known = [key for key in sorted(board.lanes) if key.startswith(f"{flow}/")]
    lanes = [_text(board.lanes[key], held(key)) for key in known]
    for key, reason in waiting.items():
        if key.startswith(f"{flow}/") and key not in board.lanes:
            said = {**({"state": "parked", "reason": reason} if reason else {}), **held(key)}
            lanes += [_json({"lane": key, **said})] if said else []
    return lanes


def _text(view: LaneView, held: Record) -> str:
    """A lane that stands still is not written out again."""
    if held:
        return _json({**row_of(view), **held})
    view.text = view.text or _json(row_of(view))
    return view.text


def _json(value: Record) -> str:
    return json.dumps(value, separators=(",", ":"))


def rows_are_due(lanes: int, since_last_s: float) -> bool:
    """Whether rows are published again; those of few lanes always are."""
    return lanes <= LANES_IN_A_RECORD or since_last_s >= lanes / LANES_IN_A_RECORD


def snapshot(flow: str, about: Record, lanes: list[str] | None) -> Iterator[str]:
    """The records of one moment, as JSON; `lanes` is None where rows are not due."""
    head = {"version": VERSION, "flow": flow, **about}
    if lanes is not None and len(lanes) <= LANES_IN_A_RECORD:
        yield _with_lanes(head, lanes)
        return
    yield _json(head)
    rows = lanes or []
    parts = [rows[at : at + LANES_IN_A_RECORD] for at in range(0, len(rows), LANES_IN_A_RECORD)]
    for number, part in enumerate(parts):
        place = {"time_ms": about["time_ms"], "part": number, "parts": len(parts)}
        yield _with_lanes({"version": VERSION, "flow": flow, **place}, part)


def _with_lanes(head: Record, lanes: list[str]) -> str:
    return f'{_json(head)[:-1]},"lanes":[{",".join(lanes)}]}}'


def newest(records: Iterable[Record]) -> dict[str, Any]:
    """How the flow stood last, with the newest rows that are there in all their parts; empty if there are no records."""
    about: dict[str, Any] = {}
    lanes: list[Any] = []
    parts: dict[int, list[Any]] = {}
    moment = -1
    for record in records:
        if "part" not in record:
            about = dict(record)
            lanes = about.pop("lanes", lanes)
            continue
        if record["time_ms"] != moment:
            moment, parts = record["time_ms"], {}
        parts[record["part"]] = record["lanes"]
        if len(parts) == record["parts"]:
            lanes = [row for number in sorted(parts) for row in parts[number]]
    return {**about, "lanes": lanes} if about else {}


async def read_telemetry(client: ClusterClient, flow: str, now_ms: int) -> dict[str, Any]:
    """What the telemetry topic says of the flow last; empty if it says nothing, or is not there."""
    view = (await client.metadata([TELEMETRY_TOPIC]))[TELEMETRY_TOPIC]
    if view.error in _MISSING:
        return {}
    if view.error or 0 not in view.leaders:
        code, alias = view.error or _NO_LEADER, client.cluster.alias
        raise topic_refused(code, f"cluster {alias}: topic {TELEMETRY_TOPIC}", "DESCRIBE", TELEMETRY_TOPIC, alias)
    node = view.leaders[0].node
    name = (TELEMETRY_TOPIC, 0)
    end = (await client.offsets(node, [name], LATEST)).get(name, 0)
    start = (await client.offsets(node, [name], EARLIEST)).get(name, 0)
    recent = (await client.offsets(node, [name], now_ms - _LOOKED_BACK_MS)).get(name, -1)
    begin = max(start, min(end - _NEWEST, recent) if recent >= 0 else end - _NEWEST)
    log = Log(TELEMETRY_TOPIC, view.topic_id, 0, node)
    found = []
    async for seen in read_range(client, log, begin, end, committed=False):
        for record in read_records(seen.data, seen.header):
            if record.key == flow.encode() and record.value is not None:
                found.append(json.loads(record.value))
    return newest(found)


class TelemetryWriter:
    """Appends records; a target that does not take them is no reason to stop copying."""

    def __init__(self, warm: Warm) -> None:
        self._warm = warm
        self._writers: dict[Cluster, TopicWriter] = {}

    async def write(self, target: Cluster, flow: str, record: str, now_ms: int) -> None:
        if target not in self._writers:
            self._writers[target] = TopicWriter(self._warm.client(target), TELEMETRY_TOPIC)
        with contextlib.suppress(HeliographError, TimeoutError):
            async with asyncio.timeout(_SECONDS):
                await self._writers[target].append({0: [(flow.encode(), record.encode())]}, now_ms)
