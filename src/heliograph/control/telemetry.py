"""What others may see of a run: one JSON record per flow and second in the telemetry topic of the flow's target."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any

from heliograph.control.board import Board
from heliograph.errors import HeliographError
from heliograph.kafka.ledger import TELEMETRY_TOPIC, TopicWriter
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster

VERSION = 1
_SECONDS = 2.0


def snapshot(flow: str, board: Board, about: Mapping[str, Any], waiting: Mapping[str, str]) -> dict[str, Any]:
    """The state of one flow's lanes; `waiting` are lanes that no task has yet, with the reason."""
    lanes = [
        {
            **{name: value for name, value in view.row.items() if name not in ("counts", "latency_ms", "events")},
            "totals": vars(view.totals),
        }
        for key, view in sorted(board.lanes.items())
        if key.startswith(f"{flow}/")
    ]
    known = {lane["lane"] for lane in lanes}
    lanes += [
        {"lane": key, "state": "parked", "reason": reason}
        for key, reason in waiting.items()
        if key.startswith(f"{flow}/") and key not in known
    ]
    return {"version": VERSION, "flow": flow, **about, "lanes": lanes}


class TelemetryWriter:
    """Appends snapshots; a target that does not take them is no reason to stop copying."""

    def __init__(self, warm: Warm) -> None:
        self._warm = warm
        self._writers: dict[Cluster, TopicWriter] = {}

    async def write(self, target: Cluster, flow: str, record: Mapping[str, Any], now_ms: int) -> None:
        if target not in self._writers:
            self._writers[target] = TopicWriter(self._warm.client(target), TELEMETRY_TOPIC)
        value = json.dumps(record, separators=(",", ":")).encode()
        with contextlib.suppress(HeliographError, TimeoutError):
            async with asyncio.timeout(_SECONDS):
                await self._writers[target].append({0: [(flow.encode(), value)]}, now_ms)
