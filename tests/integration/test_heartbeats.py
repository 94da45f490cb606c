"""Heartbeats: MirrorMaker 2's own formatter reads them on both sides, another client finds the bytes it would have written."""

from __future__ import annotations

import asyncio
import struct
import subprocess
from pathlib import Path

from confluent_kafka import TIMESTAMP_CREATE_TIME
from confluent_kafka.admin import ConfigResource, ResourceType

from heliograph.control.clock import Clock
from heliograph.control.heartbeats import HeartbeatJob, Place
from heliograph.control.jobs import JobRunner
from heliograph.embedded.jars import ensure_kafka_jars
from heliograph.embedded.java import find_java
from heliograph.embedded.settings import Jvm
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.model.events import Event
from heliograph.replication.heartbeats import Pulse
from tests.support.clusters import ClusterFactory
from tests.support.guarded import Grant, GuardedCluster
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import flow_file, status
from tests.support.reading import messages
from tests.support.topics import ANSWER_SECONDS, admin, create_topic, ends, partition_count, topic_names
from tests.support.waiting import wait_until

_ON = {
    "emit.heartbeats.enabled": "true",
    "heartbeats.replication.enabled": "true",
    "heartbeats.topic.replication.factor": "1",
}


def overrides(bootstrap: str, topic: str) -> dict[str, str]:
    client = admin(bootstrap)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = client.describe_configs([resource])[resource].result(ANSWER_SECONDS)
    return {entry.name: entry.value for entry in found.values() if entry.source == 1}


def decoded(bootstrap: str, topic: str) -> set[tuple[str, str]]:
    """The pairs of all heartbeats, taken apart by hand; each record's time is its value's."""
    pairs = set()
    for message in messages(bootstrap, topic):
        key = message.key()
        (length,) = struct.unpack_from(">h", key)
        source, rest = key[2 : 2 + length].decode(), key[2 + length :]
        (length,) = struct.unpack_from(">h", rest)
        assert len(rest) == 2 + length
        version, time_ms = struct.unpack(">hq", message.value())
        assert (version, message.timestamp()) == (0, (TIMESTAMP_CREATE_TIME, time_ms))
        pairs.add((source, rest[2:].decode()))
    return pairs


def as_mirrormaker_reads(bootstrap: str, topic: str) -> list[str]:
    """Two records through kafka-console-consumer and MirrorMaker 2's formatter."""
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning", "--max-messages", "2"]
    arguments += [
        "--timeout-ms",
        "30000",
        "--formatter",
        "org.apache.kafka.connect.mirror.formatters.HeartbeatFormatter",
    ]
    command = Jvm(heap="128m").command(
        find_java(), ensure_kafka_jars(), "org.apache.kafka.tools.consumer.ConsoleConsumer", *arguments
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    return [line for line in done.stdout.splitlines() if line.startswith("Heartbeat")]


def test_a_run_writes_both_pairs_and_the_copy_of_the_sources_reaches_the_target(
    new_cluster: ClusterFactory, unique: str, tmp_path: Path
) -> None:
    here, there = new_cluster("A").bootstrap, new_cluster("B").bootstrap
    create_topic(here, unique)
    file = flow_file(tmp_path / "mm2.properties", {"A": here, "B": there}, {"A->B": unique}, _ON)
    with HeliographRun(file) as run:
        wait_until(lambda: partition_count(there, "A.heartbeats") == 1, "A.heartbeats is made", every=0.2)
        wait_until(lambda: ends(there, "A.heartbeats")[0] >= 3, "heartbeats of A are copied to B", every=0.2)
        wait_until(lambda: ends(there, "heartbeats")[0] >= 2, "heartbeats are written to B", every=0.2)
        jobs = {job["name"]: job for job in status(file)["A->B"]["jobs"]}
        assert run.terminate() == 0
    assert jobs.keys() == {"heartbeats on A", "heartbeats on B", "topic configs", "ACLs"}
    assert all(job["trouble"] == "" and job["ended_ms"] for job in jobs.values())
    assert all(job["actions"] >= 2 for name, job in jobs.items() if name.startswith("heartbeats"))
    for bootstrap in (here, there):
        assert partition_count(bootstrap, "heartbeats") == 1
        assert overrides(bootstrap, "heartbeats") == {"cleanup.policy": "compact"}
    assert decoded(there, "heartbeats") == {("A", "B")}
    assert decoded(here, "heartbeats") == {("B", "A")}
    assert decoded(there, "A.heartbeats") == {("B", "A")}
    others = [name for side in (here, there) for name in topic_names(side) if name.endswith(".internal")]
    assert others == [], "emit.offset-syncs.enabled and emit.checkpoints.enabled are false in this file"
    assert "B.A.heartbeats" not in topic_names(here) and "A.A.heartbeats" not in topic_names(there)
    read = as_mirrormaker_reads(there, "A.heartbeats")
    assert len(read) == 2
    assert all(line.startswith("Heartbeat{sourceClusterAlias=B, targetClusterAlias=A, timestamp=") for line in read)


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
