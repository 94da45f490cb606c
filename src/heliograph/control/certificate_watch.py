"""Certificates under watch while a run goes on: looked at when it starts and every hour, told as events.

Beside everything else: whatever goes wrong here stops no flow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from heliograph.config.flows import FlowSettings
from heliograph.config.load import load_file
from heliograph.control.security import read_stores
from heliograph.errors import HeliographError
from heliograph.kafka.certificates import certificates_of, own_certificates
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.model.events import Event
from heliograph.replication.certificates import Certificate, Told, news, pause, with_renewals


class CertificateWatch:
    """Of all clusters of a run. `path` is its file, from which the next run would read our certificates."""

    def __init__(self, flows: Sequence[FlowSettings], path: str, warm: Warm, now_ms: Callable[[], int]) -> None:
        self._path = path
        self._warm = warm
        self._now_ms = now_ms
        self._told: Told = {}
        self.change(flows)

    def change(self, flows: Sequence[FlowSettings]) -> None:
        """The clusters of these flows, from the next look on."""
        self._flows: dict[Cluster, list[str]] = {}
        for flow in flows:
            for cluster in _clusters(flow):
                self._flows.setdefault(cluster, []).append(flow.flow.name)

    async def watch(self, tell: Callable[[Event], None]) -> None:
        """For ever."""
        while True:
            seen = await self._look()
            for event in self._news(seen):
                tell(event)
            await asyncio.sleep(pause(seen, self._now()).total_seconds())

    async def look_once(self) -> list[str]:
        """What `watch` would say first, as sentences without flows."""
        events = self._news(await self._look())
        return list(dict.fromkeys(f"{event.subject}: {event.reason}; {event.what_to_do}" for event in events))

    def _news(self, seen: dict[Certificate, list[str]]) -> list[Event]:
        events, self._told = news(seen, self._now(), self._told)
        return events

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._now_ms() / 1000, UTC)

    async def _look(self) -> dict[Certificate, list[str]]:
        """Every certificate, with the flows that need it."""
        found = await asyncio.gather(*(certificates_of(self._warm.client(cluster)) for cluster in self._flows))
        seen: dict[Certificate, list[str]] = {}
        for cluster, certificates in zip(self._flows, found, strict=True):
            for certificate in await self._renewed(certificates):
                flows = seen.setdefault(certificate, [])
                flows += [name for name in self._flows[cluster] if name not in flows]
        return seen

    async def _renewed(self, certificates: list[Certificate]) -> list[Certificate]:
        """With what the file has by now; it is read only where that will be said."""
        if not any(one.kept_in and one.needs_notice(self._now()) for one in certificates):
            return certificates
        return with_renewals(certificates, await asyncio.to_thread(_in_files, self._path))


def _clusters(flow: FlowSettings) -> list[Cluster]:
    """Each way to a flow's clusters that shows or sees other certificates."""
    ways = (flow.source, flow.target, flow.source_admin, flow.target_admin)
    return list({(way.alias, way.bootstrap, way.security.tls): way for way in reversed(ways)}.values())


def _in_files(path: str) -> list[Certificate]:
    try:
        settings = read_stores(load_file(path))
    except HeliographError:
        return []  # the next start says what is wrong with it
    return [one for flow in settings.flows for cluster in _clusters(flow) for one in own_certificates(cluster)]
