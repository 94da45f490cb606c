"""Heartbeats where permissions are missing; what a run writes is in test_all_jobs.py."""

from __future__ import annotations

import asyncio
from pathlib import Path

from heliograph.control.clock import Clock
from heliograph.control.heartbeats import HeartbeatJob, Place
from heliograph.control.jobs import JobRunner
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.model.events import Event
from heliograph.replication.heartbeats import Pulse
from tests.support.guarded import Grant, GuardedCluster


def test_missing_permissions_are_named_one_after_the_other_and_heartbeats_begin_once_they_are_granted(
    kafka_jars: Path, tmp_path: Path
) -> None:
    del kafka_jars
    cluster = GuardedCluster("G", tmp_path)
    cluster.start()
    try:
        told = asyncio.run(_beats_until_granted(cluster))
    finally:
        cluster.stop()
    describe, create, write, over = (event.reason for event in told)
    assert "this needs DESCRIBE on the topic heartbeats of cluster G" in describe
    assert "create topic 'heartbeats'" in create and "this needs CREATE on the topic" in create
    assert "this needs WRITE on the topic heartbeats of cluster G" in write
    assert over == "it goes on"


async def _beats_until_granted(cluster: GuardedCluster) -> list[Event]:
    events: list[Event] = []
    warm = Warm()
    guarded = Cluster("G", (cluster.bootstrap,))
    runner = JobRunner("G->H", lambda: True, events.append, Clock())
    job = HeartbeatJob(Pulse("H", "G", 1, 1), Place(warm.client(guarded), guarded), Clock(), lambda: None)
    try:
        for operation in ("DESCRIBE", "CREATE", "WRITE"):
            for _ in range(2):  # a trouble that goes on is said once
                assert not await runner.once(job)
            await asyncio.to_thread(cluster.grant, Grant("topic", "heartbeats", operation))
        assert await runner.once(job) and await runner.once(job)
    finally:
        warm.close()
    return events
