"""One run with every job on, both ways between two clusters: A->B with remote names, B->A with names that stay.

Topics, data, configs, ACLs, heartbeats, offset syncs, checkpoints and group offsets, as MirrorMaker 2 would have left them.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME

from heliograph.client import MirrorClient
from heliograph.embedded.cluster import start_many
from heliograph.embedded.jars import ensure_kafka_jars
from heliograph.embedded.java import find_java
from heliograph.embedded.settings import Jvm
from heliograph.operations.compare import compare_topics
from tests.support.acls import acls, add
from tests.support.doors import AuthorizedCluster
from tests.support.groups import checkpoints, commit, committed
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import flow_file, status
from tests.support.reading import messages
from tests.support.topics import create_topic, ends, overrides, partition_count, set_configs, topic_names
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
RECORDS = 30
GROUP = "billing"
_HEARTBEATS = {
    "emit.heartbeats.enabled": "true",
    "heartbeats.replication.enabled": "true",
    "heartbeats.topic.replication.factor": "1",
}
_ALL_JOBS = {
    "replication.policy.class": IDENTITY,
    "emit.offset-syncs.enabled": "true",
    "offset-syncs.topic.replication.factor": "1",
    "emit.checkpoints.enabled": "true",
    "emit.checkpoints.interval.seconds": "1",
    "checkpoints.topic.replication.factor": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "sync.topic.configs.interval.seconds": "1",
    "sync.topic.acls.interval.seconds": "1",
    "sync.topic.deletes.enabled": "true",
}
_OF_DEFAULTS = {"topic configs", "ACLs", "checkpoints"}
_READS = ("LITERAL", "User:bob", "READ", "ALLOW")


@dataclass(frozen=True)
class World:
    """Both clusters by their addresses, and the run between them."""

    a: str
    b: str
    file: Path
    run: HeliographRun

    def jobs(self, flow: str) -> dict[str, dict[str, object]]:
        return {job["name"]: job for job in status(self.file)[flow]["jobs"]}

    def troubles(self) -> list[str]:
        flows = status(self.file).values()
        return [f"{job['name']}: {job['trouble']}" for flow in flows for job in flow["jobs"] if job["trouble"]]


@pytest.fixture(scope="module")
def world(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    del kafka_jars
    folder = tmp_path_factory.mktemp("all-jobs")
    pair = [AuthorizedCluster("A", folder), AuthorizedCluster("B", folder)]
    try:
        start_many(pair)
        a, b = (cluster.bootstrap for cluster in pair)
        create_topic(a, "orders")
        write(a, "orders", samples(RECORDS, seed=3))
        create_topic(b, "carts", partitions=2, config={"retention.ms": "1000000"})
        write(b, "carts", samples(RECORDS))
        commit(b, GROUP, {("carts", 0): 12, ("carts", 1): 0})
        add(b, ("topic", "carts", *_READS))
        flows = {"A->B": "orders", "B->A": "carts"}
        more = _HEARTBEATS | {f"B->A.{name}": value for name, value in _ALL_JOBS.items()}
        file = flow_file(folder / "mm2.properties", {"A": a, "B": b}, flows, more)
        with HeliographRun(file) as run:
            yield World(a, b, file, run)
            assert run.terminate() == 0, run.output
    finally:
        for cluster in pair:
            cluster.stop()


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
    command = Jvm(heap="128m").command(
        find_java(),
        ensure_kafka_jars(),
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning", "--max-messages", "2"),
        *("--timeout-ms", "30000"),
        *("--formatter", "org.apache.kafka.connect.mirror.formatters.HeartbeatFormatter"),
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    return [line for line in done.stdout.splitlines() if line.startswith("Heartbeat")]


def test_a_run_writes_both_pairs_and_the_copy_of_the_sources_reaches_the_target(world: World) -> None:
    for bootstrap, remote in ((world.b, "A.heartbeats"), (world.a, "B.heartbeats")):
        wait_until(lambda at=bootstrap, name=remote: partition_count(at, name) == 1, f"{remote} is made", every=0.2)
        wait_until(lambda at=bootstrap, name=remote: ends(at, name)[0] >= 3, f"{remote} is copied", every=0.2)
        assert partition_count(bootstrap, "heartbeats") == 1
        assert overrides(bootstrap, "heartbeats") == {"cleanup.policy": "compact"}
    assert decoded(world.b, "heartbeats") == decoded(world.a, "B.heartbeats") == {("A", "B")}
    assert decoded(world.a, "heartbeats") == decoded(world.b, "A.heartbeats") == {("B", "A")}
    for names in (topic_names(world.a), topic_names(world.b)):
        assert not [name for name in names if name.count(".") > 1 and name.endswith("heartbeats")]
    read = as_mirrormaker_reads(world.b, "A.heartbeats")
    assert len(read) == 2
    assert all(line.startswith("Heartbeat{sourceClusterAlias=B, targetClusterAlias=A, timestamp=") for line in read)


def test_every_job_does_its_work_beside_the_others_and_names_may_stay(world: World) -> None:
    places = {("carts", 0): 12, ("carts", 1): 0}
    wait_until(lambda: committed(world.a, GROUP) == places, "the group's offsets are set", every=0.2)
    wait_until(lambda: ("topic", "carts", *_READS) in acls(world.a, "carts"), "the ACL is copied", every=0.2)
    # The group stands in the middle of what there is to copy.
    wait_until(lambda: sum(ends(world.a, "carts").values()) == RECORDS, "all of it is copied", every=0.2)
    comparison = compare_topics(world.b, world.a, {"carts": "carts"})
    assert (comparison.differences, comparison.records) == ([], RECORDS)
    # What moves on is followed by every job while the others go on.
    write(world.b, "carts", samples(RECORDS, seed=2))
    set_configs(world.b, "carts", {"retention.ms": "2000000"})
    commit(world.b, GROUP, {("carts", 0): 50})
    places["carts", 0] = 50
    wait_until(lambda: committed(world.a, GROUP) == places, "the group's offsets follow", every=0.2)
    wait_until(lambda: overrides(world.a, "carts") == {"retention.ms": "2000000"}, "the config follows", every=0.2)

    def newest() -> dict[tuple[str, str, int], tuple[int, int]]:
        rows = checkpoints(world.a, "B.checkpoints.internal")
        return {row[:3]: (row.upstream, row.downstream) for row in rows}

    wanted = {(GROUP, "carts", 0): (50, 50), (GROUP, "carts", 1): (0, 0)}
    wait_until(lambda: newest() == wanted, "the checkpoints follow", every=0.2)
    syncs_topic = "mm2-offset-syncs.A.internal"
    wait_until(lambda: sum(ends(world.b, syncs_topic).values()) > 0, "offset syncs are written", every=0.2)
    syncs = [struct.unpack(">qq", message.value()) for message in messages(world.b, syncs_topic)]
    assert all(upstream == downstream for upstream, downstream in syncs)
    of_all = {"heartbeats on A", "offset syncs on B", "topic deletes", "group offsets"} | _OF_DEFAULTS
    assert world.jobs("B->A").keys() == of_all
    of_few = {"heartbeats on B"} | (_OF_DEFAULTS - {"checkpoints"})
    wait_until(lambda: world.jobs("A->B").keys() == of_few, "the other flow has its jobs, and no more", every=0.5)
    # A busy machine may keep a job waiting for an answer once; what stays is a trouble.
    wait_until(lambda: not world.troubles(), f"no job has a trouble, as {world.troubles()}", every=0.5)


def test_a_flow_makes_no_topic_for_a_job_that_it_does_not_have(world: World) -> None:
    """Offset syncs and checkpoints are off for A->B, and the topics of the other flow have their own names."""
    wait_until(lambda: "B.checkpoints.internal" in topic_names(world.a), "checkpoints are written", every=0.2)
    wait_until(lambda: "mm2-offset-syncs.A.internal" in topic_names(world.b), "offset syncs are written", every=0.2)
    wait_until(lambda: sum(ends(world.b, "A.orders").values()) == RECORDS, "its records flow", every=0.2)
    assert compare_topics(world.a, world.b, {"orders": "A.orders"}).differences == []
    assert {name for name in topic_names(world.a) if name.endswith(".internal")} == {"B.checkpoints.internal"}
    assert {name for name in topic_names(world.b) if name.endswith(".internal")} == {"mm2-offset-syncs.A.internal"}


def test_the_client_tells_where_everything_came_from_under_either_policy(world: World) -> None:
    wait_until(lambda: {"B.heartbeats", "carts"} <= topic_names(world.a), "B's topics are on A", every=0.2)
    wait_until(lambda: {"A.heartbeats", "A.orders"} <= topic_names(world.b), "A's topics are on B", every=0.2)
    wait_until(lambda: "B.checkpoints.internal" in topic_names(world.a), "checkpoints are written", every=0.2)
    here, there = MirrorClient(world.file, "A"), MirrorClient(world.file, "B")
    assert (here.upstream_clusters(), here.replication_hops("B")) == ({"B"}, 1)
    assert (there.upstream_clusters(), there.replication_hops("A")) == ({"A"}, 1)
    assert here.heartbeat_topics() == {"heartbeats", "B.heartbeats"}
    assert here.checkpoint_topics() == {"B.checkpoints.internal"}
    assert here.remote_topics() == {"orders", "carts", "B.heartbeats"}, "names that stay tell nothing"
    assert there.remote_topics() == {"A.orders", "A.heartbeats"}
