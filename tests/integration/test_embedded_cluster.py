"""Embedded clusters: killed, frozen, restarted, and gone with the process that started them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.embedded.mirrormaker import MirrorMaker
from heliograph.embedded.probe import brokers_known_to
from heliograph.embedded.settings import Jvm
from heliograph.embedded.traffic import PARTITIONS, Traffic
from heliograph.errors import SetupError
from heliograph.operations.compare import compare_topics
from tests.support.clusters import ClusterFactory, TwoClusters
from tests.support.compaction import COMPACTED, count_records, write_compacted
from tests.support.heliograph_run import write_properties
from tests.support.mirrormaker import QUICK_GROUPS, mirrormaker_lines
from tests.support.processes import lives
from tests.support.topics import create_topic, delete_records, ends, partition_count, stable_ends, starts
from tests.support.waiting import wait_until
from tests.support.writers import samples, write, write_dense, write_every_codec

FORGETFUL_PARENT = """
import pathlib, sys
from heliograph.embedded.cluster import EmbeddedCluster
cluster = EmbeddedCluster("orphan", pathlib.Path(sys.argv[1])).start()
print(*cluster.pids.values(), flush=True)
sys.stdin.read()
"""


def port_of(cluster: EmbeddedCluster, broker: int) -> int:
    return int(cluster.address(broker).rpartition(":")[2])


def test_a_broker_of_three_is_killed_and_comes_back_with_its_data(new_cluster: ClusterFactory) -> None:
    cluster = new_cluster("C", brokers=3)
    before = cluster.bootstrap
    create_topic(before, "kept", partitions=3, replicas=3)
    write(before, "kept", samples(300, partitions=3))
    cluster.kill(2)
    assert set(cluster.pids) == {100, 1, 3}
    write(before, "kept", samples(300, partitions=3), enable_idempotence=True)  # what is sent again counts once
    cluster.restart(2)
    assert cluster.bootstrap == before
    assert sum(ends(cluster.address(2), "kept").values()) == 600


def test_a_frozen_broker_keeps_silent_until_it_is_thawed(new_cluster: ClusterFactory) -> None:
    cluster = new_cluster("F")
    port = port_of(cluster, 1)
    cluster.freeze(1)
    assert brokers_known_to(port, timeout_seconds=0.5) == set()
    cluster.thaw(1)
    wait_until(lambda: brokers_known_to(port) == {1}, "the broker answers again")


def test_a_broker_that_cannot_start_is_named_with_its_reason(tmp_path: Path) -> None:
    cluster = EmbeddedCluster("wrong", tmp_path, config={"num.io.threads": "none"})
    with pytest.raises(SetupError, match="Node 1 of cluster wrong ended by itself: .*num.io.threads"):
        cluster.start()
    assert cluster.pids == {}


def test_brokers_die_with_a_parent_that_is_killed(kafka_jars: Path, tmp_path: Path) -> None:
    del kafka_jars
    command = [sys.executable, "-c", FORGETFUL_PARENT, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        brokers = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        assert len(brokers) == 1
        parent.send_signal(signal.SIGKILL)
    psutil.wait_procs(brokers, timeout=60)
    assert not [broker for broker in brokers if lives(broker)]


def test_sample_traffic_is_drained_when_it_stops_and_aborted_records_are_not_counted(
    new_cluster: ClusterFactory,
) -> None:
    cluster = new_cluster("T")
    traffic = Traffic(cluster.bootstrap, seed=7)
    traffic.start()
    wait_until(lambda: traffic.written.get("payments", 0) >= 100, "some transactions were written")
    traffic.stop()
    written = traffic.written
    assert set(written) == set(PARTITIONS)
    bootstrap = cluster.bootstrap
    # A commit is answered before its markers are written.
    wait_until(lambda: stable_ends(bootstrap, "payments") == ends(bootstrap, "payments"), "no transaction is open")
    committed = compare_topics(cluster.bootstrap, cluster.bootstrap, {topic: topic for topic in written})
    assert (committed.identical, committed.records) == (True, sum(written.values()))
    everything = compare_topics(
        cluster.bootstrap, cluster.bootstrap, {"payments": "payments"}, isolation="read_uncommitted"
    )
    assert everything.records > written["payments"]


def test_a_cleaned_topic_has_gaps_and_stays_as_it_is(two_clusters: TwoClusters, unique: str) -> None:
    here = two_clusters.a.bootstrap
    create_topic(here, unique, config=COMPACTED)
    left = write_compacted(here, unique)
    assert 50 <= left < ends(here, unique)[0] // 2
    assert count_records(here, unique) == left


def test_a_log_start_lies_in_the_middle_of_a_batch(two_clusters: TwoClusters, unique: str) -> None:
    here = two_clusters.a.bootstrap
    create_topic(here, unique)
    write_dense(here, unique, samples(1_000))
    delete_records(here, unique, 0, 333)
    assert (starts(here, unique), ends(here, unique)) == ({0: 333}, {0: 1_000})


def test_the_real_mirrormaker_2_runs_from_the_same_jars(
    new_cluster: ClusterFactory, unique: str, tmp_path: Path
) -> None:
    """On clusters of its own: its heartbeats would join every other test's flow."""
    here, there = new_cluster("A").bootstrap, new_cluster("B", config=QUICK_GROUPS).bootstrap
    create_topic(here, unique, partitions=2)
    written = write_every_codec(here, unique, 50, partitions=2)
    addresses = {"clusters": "A, B", "A.bootstrap.servers": here, "B.bootstrap.servers": there}
    flow = {"A->B.enabled": "true", "A->B.topics": unique, "B->A.enabled": "false", "replication.factor": "1"}
    # A worker that is thought lost copies some records twice.
    settings = addresses | flow | mirrormaker_lines("A", "B") | {"B.session.timeout.ms": "60000"}
    properties = write_properties(tmp_path / "mm2.properties", settings)
    remote = f"A.{unique}"
    with MirrorMaker(properties, tmp_path / "mm2.log", Jvm(heap="512m")) as mirror:
        assert psutil.pid_exists(mirror.pid)
        wait_until(lambda: partition_count(there, remote) == 2, f"MirrorMaker 2 made {remote}", 240, every=0.5)
        wait_until(lambda: sum(ends(there, remote).values()) == written, "it copied everything", 240, every=0.5)
    comparison = compare_topics(here, there, {unique: remote})
    assert (comparison.identical, comparison.records) == (True, written)
    with pytest.raises(SetupError, match="MirrorMaker 2 does not run"):
        _ = mirror.pid
