"""One event through a flow: sent to the source, awaited on the target, by whichever mirror runs."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import asdict, dataclass
from typing import Any

from heliograph.config.flows import FlowSettings
from heliograph.control.clock import Clock
from heliograph.errors import HeliographError
from heliograph.kafka.follow import Follower
from heliograph.kafka.slot import Warm
from heliograph.kafka.topic_writer import TopicWriter
from heliograph.replication.canary import Canary, canary_topic

_MISSING = {3, 100}
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True)
class CanaryLook:
    """`latency_ms` is None where nothing arrived: `reason` says why."""

    flow: str
    topic: str
    remote_topic: str
    latency_ms: float | None
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


async def canary_look(flow: FlowSettings, seconds: float, dry_run: bool = False) -> CanaryLook:
    """Sends one event, unless the flow does not carry it, and waits so long for it."""
    topic = canary_topic(flow.flow)
    remote = flow.remote_name(topic)
    warm = Warm()
    try:
        latency = await _latency(flow, warm, seconds, dry_run)
    except _NotSent as error:
        return CanaryLook(flow.flow.name, topic, remote, None, str(error))
    except (HeliographError, TimeoutError) as error:
        return CanaryLook(flow.flow.name, topic, remote, None, str(error) or "a cluster did not answer in time")
    finally:
        warm.close()
    reason = (
        ""
        if latency is not None
        else f"it did not arrive within {seconds:g} s: `heliograph status FILE` says whether a mirror runs"
    )
    return CanaryLook(flow.flow.name, topic, remote, latency, reason)


class _NotSent(Exception):
    """Why no event was sent."""


async def _latency(flow: FlowSettings, warm: Warm, seconds: float, dry_run: bool) -> float | None:
    topic, clock = canary_topic(flow.flow), Clock()
    if not flow.topic_names.accepts(topic):
        raise _NotSent(f"the flow does not carry topic {topic}: write canary.enabled = true")
    source = warm.client(flow.source_writer)
    if (await source.metadata([topic]))[topic].error in _MISSING:
        raise _NotSent(
            f"topic {topic} does not exist on cluster {flow.flow.source} yet: a run with canary.enabled = true makes it"
        )
    if dry_run:
        raise _NotSent(f"it would be sent through topic {topic}")
    canary = Canary(uuid.uuid4().hex, clock.monotonic)
    follower = Follower(warm.client(flow.target), flow.remote_name(topic), clock.now_ms())
    await follower.read()  # connected before the clock runs
    now_ms = clock.now_ms()
    record = canary.send(now_ms)
    await TopicWriter(source, topic).append({0: [record]}, now_ms)
    try:
        async with asyncio.timeout(seconds):
            return await _arrival(canary, follower)
    except TimeoutError:
        return None


async def _arrival(canary: Canary, follower: Follower) -> float:
    while True:
        found = await follower.read()
        for record in found or ():
            latency = canary.see(record.key)
            if latency is not None:
                return latency
        if found is None:
            await asyncio.sleep(_PAUSE_SECONDS)
