"""The topic that keeps what REST and the shell changed in a run: rows by key, the last one counts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from heliograph.errors import BrokerRefused
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.grants import TOPIC_REFUSED
from heliograph.kafka.ledger import FLOWS_TOPIC
from heliograph.kafka.own_topics import read_topic
from heliograph.kafka.slot import Warm
from heliograph.kafka.topic_writer import TopicWriter
from heliograph.model.clusters import Cluster

VERSION = 1
_SECONDS = 8.0

Row = Mapping[str, Any]


class StateTopic:
    """Read once at the start; every change is written before it counts."""

    def __init__(self, cluster: Cluster, replication_factor: int) -> None:
        self.cluster = cluster
        self._replication_factor = replication_factor
        self._warm = Warm()
        self._writer: TopicWriter | None = None

    @property
    def cluster_id(self) -> str:
        return self._warm.client(self.cluster).cluster_id

    async def read(self) -> dict[str, Row]:
        """The rows of a topic that is not there, or that may not be read, are none."""
        try:
            found = await read_topic(self._warm.client(self.cluster), FLOWS_TOPIC)
        except BrokerRefused as error:
            if error.code != TOPIC_REFUSED:
                raise
            return {}
        rows: dict[str, Row] = {}
        for record in (found or {}).get(0, []):
            key = (record.key or b"").decode(errors="replace")
            row = _decoded(record.value)
            rows.pop(key, None)
            if row is not None:
                rows[key] = row
        return rows

    async def write(self, rows: Mapping[str, Row | None], now_ms: int) -> None:
        """All of them in one batch; None takes a row out. HeliographError or TimeoutError: nothing is to be counted on."""
        async with asyncio.timeout(_SECONDS):
            if self._writer is None:
                await asyncio.to_thread(self._ensure)
                self._writer = TopicWriter(self._warm.client(self.cluster), FLOWS_TOPIC)
            records = [(key.encode(), None if row is None else _encoded(row)) for key, row in rows.items()]
            await self._writer.append({0: records}, now_ms)

    def _ensure(self) -> None:
        admin = ClusterAdmin(self.cluster)
        try:
            admin.ensure_flows_topic(self._replication_factor)
        finally:
            admin.close()

    def close(self) -> None:
        self._warm.close()


def _encoded(row: Row) -> bytes:
    return json.dumps({"version": VERSION, **row}, separators=(",", ":"), ensure_ascii=False).encode()


def _decoded(value: bytes | None) -> Row | None:
    """None for what cannot be read: one strange record must not hide the others."""
    try:
        row = json.loads(value or b"null")
    except ValueError:
        return None
    return row if isinstance(row, dict) and row.get("version") == VERSION else None
