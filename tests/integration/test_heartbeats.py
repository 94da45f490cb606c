"""Heartbeats where permissions are missing, and their topic in a run's first plan; what a run writes is in test_all_jobs.py."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from heliograph.config.load import load_file
from heliograph.control.clock import Clock
from heliograph.control.heartbeats import HeartbeatJob, Place
from heliograph.control.jobs import JobRunner
from heliograph.control.planner import FlowPlanner
from heliograph.embedded.cluster import EmbeddedCluster, start_many
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.model.events import Event
from heliograph.replication.heartbeats import Pulse
from tests.support.guarded import Grant, GuardedCluster
from tests.support.mirror import flow_file
from tests.support.topics import create_topic, overrides, topic_names


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


def test_the_topic_of_heartbeats_is_in_the_first_plan_and_no_later_look_finds_other_lanes(
    kafka_jars: Path, tmp_path: Path
) -> None:
    """Other lanes would be another epoch, in the middle of the first copy."""
    del kafka_jars
    pair = [EmbeddedCluster("A", tmp_path), EmbeddedCluster("B", tmp_path)]
    try:
        start_many(pair)
        a, b = (cluster.bootstrap for cluster in pair)
        for topic in ("apples", "zebras"):
            create_topic(a, topic)
        on = {"emit.heartbeats.enabled": "true", "heartbeats.replication.enabled": "true"}
        more = on | {"heartbeats.topic.replication.factor": "1"}
        settings = load_file(str(flow_file(tmp_path / "mm2.properties", {"A": a, "B": b}, {"A->B": ".*"}, more)))
        _look(FlowPlanner(settings.flows[0], settings.engine), a)
    finally:
        for cluster in pair:
            cluster.stop()


def _look(planner: FlowPlanner, source: str) -> None:
    try:
        pulses = planner.settings.jobs.heartbeats
        plan = planner.discover()
        assert list(plan.topics) == ["apples", "zebras"]
        impossible = [replace(pulse, replication_factor=3) for pulse in pulses]
        assert planner.with_heartbeats(plan, impossible) == plan, "the job says what is wrong"
        assert planner.with_heartbeats(plan, [Pulse("A", "B", 1, 1)]) == plan, "that one is not on the source"
        assert "heartbeats" not in topic_names(source)

        first = planner.with_heartbeats(plan, pulses)
        assert list(first.topics) == ["apples", "heartbeats", "zebras"]
        assert overrides(source, "heartbeats") == {"cleanup.policy": "compact"}
        assert planner.with_heartbeats(first, pulses) is first
        carried = planner.apply(first).lanes
        assert [lane.remote_topic for lane in carried] == ["A.apples", "A.heartbeats", "A.zebras"]
        assert planner.apply(planner.discover()).lanes == carried
    finally:
        planner.close()
