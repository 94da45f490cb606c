"""`heliograph forget`: take a flow's traces out of Heliograph's own topics on its target. Remote topics are not touched.

Looks twice before it does anything: a flow of which something was written in between is running, and is refused. No
other host's clock is compared with ours.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

from heliograph.errors import SetupError
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.ledger import EVENTS_TOPIC, LEDGER_TOPIC, TELEMETRY_TOPIC, Ledger
from heliograph.kafka.own_topics import PlainRecord, cut_off, delete_topic, read_topic
from heliograph.model.clusters import Cluster
from heliograph.replication.forgetting import UNKNOWN_FLOW, Forgetting, LogRecord, plan_forgetting

LOOK_AGAIN_SECONDS = 6.0
"""Three times as long as a run needs to say again that it holds a flow, six times its telemetry's interval."""
_LOGS = (TELEMETRY_TOPIC, EVENTS_TOPIC)


@dataclass(frozen=True)
class _Survey:
    """The three topics as they are: living ledger keys with the offset of their record, the logs, which topics exist."""

    ledger: Mapping[str, int]
    logs: Mapping[tuple[str, int], list[LogRecord]]
    topics: tuple[str, ...]

    def plan(self, flow: str) -> Forgetting:
        return plan_forgetting(flow, self.ledger, self.logs, self.topics)

    def signs(self, flow: str) -> frozenset[tuple[str, int]]:
        """Offsets of all that the flow has written: more of them later means that it runs."""
        mine = {str(key) for key in self.plan(flow).ledger_keys}
        return frozenset(
            {(key, offset) for key, offset in self.ledger.items() if key in mine}
            | {(topic, r.offset) for (topic, _), records in self.logs.items() for r in records if r.flow == flow}
        )


async def forget(target: Cluster, flow: str, now_ms: int, dry_run: bool, patience_s: float) -> Forgetting:
    """What was done, or with `dry_run` would be; SetupError if the flow runs."""
    client = ClusterClient(target)
    try:
        first = await _survey(client)
        if first.plan(flow).is_nothing:
            return first.plan(flow)
        await asyncio.sleep(patience_s)
        second = await _survey(client)
        if second.signs(flow) - first.signs(flow):
            raise SetupError(f"flow {flow} is running: stop it first (`heliograph status FILE` says where it runs)")
        plan = second.plan(flow)
        if not dry_run:
            await _apply(client, plan, now_ms)
        return plan
    finally:
        client.close()


async def _survey(client: ClusterClient) -> _Survey:
    living: dict[str, int] = {}
    ledger = await read_topic(client, LEDGER_TOPIC)
    for record in (record for records in (ledger or {}).values() for record in records):
        key = (record.key or b"").decode(errors="replace")
        if record.value is None:
            living.pop(key, None)
        else:
            living[key] = record.offset
    logs: dict[tuple[str, int], list[LogRecord]] = {}
    topics = [LEDGER_TOPIC] if ledger is not None else []
    for topic in _LOGS:
        found = await read_topic(client, topic)
        if found is not None:
            topics.append(topic)
            logs |= {(topic, part): [LogRecord(r.offset, _flow_of(r)) for r in rows] for part, rows in found.items()}
    return _Survey(living, logs, tuple(topics))


def _flow_of(record: PlainRecord) -> str:
    """Telemetry and events name their flow in the value; what does not is somebody else's."""
    try:
        fields = json.loads(record.value or b"{}")
    except ValueError:
        return UNKNOWN_FLOW
    return str(fields.get("flow", UNKNOWN_FLOW)) if isinstance(fields, dict) else UNKNOWN_FLOW


async def _apply(client: ClusterClient, plan: Forgetting, now_ms: int) -> None:
    for topic in plan.delete_topics:
        await delete_topic(client, topic)
    if plan.delete_topics:
        return
    if plan.ledger_keys:
        await Ledger(client).write([(key, None) for key in plan.ledger_keys], now_ms)
    for cut in plan.cuts:
        if cut.removed:
            await cut_off(client, cut.topic, cut.partition, cut.cut)
