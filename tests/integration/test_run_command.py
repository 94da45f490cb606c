"""`heliograph run` as a user meets it: first lines, logs, stopping, troubles; and that Spark's tasks move the bytes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from heliograph.operations.compare import compare_topics
from tests.support.clusters import TwoClusters
from tests.support.heliograph_run import PROGRAM, HeliographRun
from tests.support.mirror import (
    command,
    flow_file,
    lanes_of,
    run_to_the_end,
    status,
    status_when_following,
    summed,
    word,
)
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import Sample, samples, write, write_dense

STOP_SECONDS = 10.0
LANES = 200
BULK_RECORDS = 60_000
BULK_SIZE = 1_000


@dataclass(frozen=True)
class Names:
    """A flow of its own, and the topics it carries."""

    source: str
    target: str
    topic: str

    @property
    def flow(self) -> str:
        return f"{self.source}->{self.target}"

    @property
    def remote(self) -> str:
        return f"{self.source}.{self.topic}"

    def file(self, path: Path, clusters: TwoClusters, more: dict[str, str] | None = None) -> Path:
        addresses = {self.source: clusters.a.bootstrap, self.target: clusters.b.bootstrap}
        return flow_file(path / "integ.properties", addresses, {self.flow: self.topic}, more)


@pytest.fixture
def names() -> Names:
    return Names(word(), word(), word())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_ends_within_ten_seconds_and_leaves_nothing_behind(
    two_clusters: TwoClusters, tmp_path: Path, names: Names, number: signal.Signals
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    create_topic(here, names.topic, partitions=2)
    write(here, names.topic, samples(1_000, partitions=2))
    properties = names.file(tmp_path, two_clusters)
    with HeliographRun(properties, "--log-format", "json", program=PROGRAM) as run:
        wait_until(lambda: sum(ends(there, names.remote).values()) == 1_000, "it copies", every=0.2)
        running = status_when_following(properties, names.flow)
        assert (running["running"], running["process"]) == (True, run.pid)
        assert run.workers()
        write(here, names.topic, samples(5_000, partitions=2, seed=3))
        began, busy = time.monotonic(), os.getloadavg()[0]
        psutil.Process(run.pid).send_signal(number)
        assert run.wait() == 0, run.output
        took = time.monotonic() - began
        wait_until(lambda: run.survivors() == [], "nothing of it is left")
    # On a machine with more work than cores it gets its share of them.
    assert took < STOP_SECONDS * max(1.0, *(load / (os.cpu_count() or 1) for load in (busy, os.getloadavg()[0])))
    assert_log_lines_are_json(run)
    stopped = status(properties)[names.flow]
    assert (stopped["running"], stopped["process"], stopped["host"]) == (False, run.pid, running["host"])
    assert 0 < time.time_ns() // 1_000_000 - stopped["since_ms"] < 60_000
    said = command("status", str(properties))
    assert re.search(
        rf"{names.flow}: not running since .*; last held by {stopped['host']}, process {run.pid}", said.out
    )
    # What was copied is a whole beginning of the source, and the ledger knows exactly how far it goes.
    copied = ends(there, names.remote)
    assert {lane["partition"]: lane["position"] for lane in stopped["lanes"]} == copied
    until = {(names.topic, partition): end for partition, end in copied.items()}
    comparison = compare_topics(here, there, {names.topic: names.remote}, ends=until)
    assert (comparison.differences, comparison.records) == ([], sum(copied.values()))


def assert_log_lines_are_json(run: HeliographRun) -> None:
    lines = [json.loads(line) for line in run.stderr.read_text().splitlines()]
    assert {"time", "level", "logger", "message"} <= set(lines[0])
    assert "draining" in {line["message"] for line in lines}


def test_a_second_run_goes_on_where_the_first_one_ended(
    two_clusters: TwoClusters, tmp_path: Path, names: Names
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    create_topic(here, names.topic)
    properties = names.file(tmp_path, two_clusters)
    for seed in (1, 2):
        write(here, names.topic, samples(500, seed=seed))
        output = run_to_the_end(properties)
        assert "copied 500 records" in output
    comparison = compare_topics(here, there, {names.topic: names.remote})
    assert (comparison.differences, comparison.records) == ([], 1_000)


def test_an_unreachable_cluster_is_named_and_other_flows_go_on(
    two_clusters: TwoClusters, tmp_path: Path, names: Names
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    create_topic(here, names.topic)
    write(here, names.topic, samples(300))
    taken = socket.socket()  # nobody listens there, and nobody else can: the ports of brokers are chosen all the time
    taken.bind(("127.0.0.1", 0))
    nobody = f"127.0.0.1:{taken.getsockname()[1]}"
    away = word()
    flows = {names.flow: names.topic, f"{away}->{names.target}": names.topic}
    addresses = {names.source: here, names.target: there, away: nobody}
    properties = flow_file(tmp_path / "integ.properties", addresses, flows)
    with taken, HeliographRun(properties) as run:
        wait_until(lambda: sum(ends(there, names.remote).values()) == 300, "the other flow is copied", every=0.2)
        run.wait_for_text(f"flow {away}->{names.target}: waiting: ")
        assert nobody in run.output
        wait_until(
            lambda: nobody in status(properties)[f"{away}->{names.target}"]["trouble"], "status says so", every=0.3
        )
        assert run.terminate() == 0, run.output
    comparison = compare_topics(here, there, {names.topic: names.remote})
    assert (comparison.differences, comparison.records) == ([], 300)
    refused = command("run", str(properties), "--until-caught-up")
    assert refused.code == 1
    assert nobody in refused.err


def test_a_record_that_the_target_refuses_parks_its_lane_and_not_its_neighbours(
    two_clusters: TwoClusters, tmp_path: Path, names: Names
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    create_topic(here, names.topic, partitions=3)
    create_topic(there, names.remote, partitions=3, config={"max.message.bytes": "100000"})
    write(here, names.topic, samples(300, partitions=3))
    write(here, names.topic, [Sample(bytes(200_000), partition=1)])
    write(here, names.topic, samples(300, partitions=3, seed=2))
    # One try is enough: a parked lane is final for --until-caught-up after ten seconds in a row.
    properties = names.file(tmp_path, two_clusters, {"lane.retry.backoff.ms": "30000"})
    output = run_to_the_end(properties, code=1)
    assert re.search(rf"not finished: {names.flow}/{names.topic}/1: .*\b100\b.*\(on.bad.record = park\)", output), (
        output
    )
    assert f"raise max.message.bytes of {names.remote}" in output
    assert ends(there, names.remote) == {0: 200, 1: 100, 2: 200}
    until = {(names.topic, partition): end for partition, end in ends(there, names.remote).items()}
    comparison = compare_topics(here, there, {names.topic: names.remote}, ends=until)
    assert (comparison.differences, comparison.records) == ([], 500)


@dataclass(frozen=True)
class Bulk:
    """One run of 200 lanes and a bulky topic on two slots, with Spark's event log."""

    names: Names
    output: str
    flow: dict[str, Any]
    events: list[dict[str, Any]]
    workers: dict[int, set[str]]
    others: dict[int, set[str]]


@pytest.fixture(scope="module")
def bulk(two_clusters: TwoClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bulk]:
    directory = tmp_path_factory.mktemp("integ")
    (directory / "events").mkdir()
    names = Names(word(), word(), word())
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    create_topic(here, names.topic, partitions=LANES)
    create_topic(here, f"{names.topic}-bulk", partitions=4)
    write(here, names.topic, samples(20_000, partitions=LANES), "lz4")
    write_dense(here, f"{names.topic}-bulk", incompressible(), "none")
    more = {
        "slots": "2",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (directory / "events").as_uri(),
        f"{names.flow}.topics": f"{names.topic}(-bulk)?",
    }
    properties = names.file(directory, two_clusters, more)
    with HeliographRun(properties) as run:
        wait_until(
            lambda: sum(ends(there, f"{names.remote}-bulk").values()) == BULK_RECORDS, "it is copied", 120, every=0.2
        )
        wait_until(lambda: sum(ends(there, names.remote).values()) == 20_000, "all lanes are copied", 120, every=0.2)
        wait_until(
            lambda: summed(status(properties)[names.flow]["lanes"], "bytes") >= BULK_RECORDS * BULK_SIZE,
            "the totals of the last second are published",
            every=0.2,
        )
        flow = status_when_following(properties, names.flow)
        doors = (two_clusters.a.door(), two_clusters.b.door())
        workers = {pid: brokers_of(pid, doors) for pid in run.workers()}
        others = {pid: brokers_of(pid, (here, there, *doors)) for pid in (*run.jvms(), *run.daemons())}
        assert run.terminate() == 0, run.output
    events = [
        json.loads(line) for path in (directory / "events").rglob("*") if path.is_file() for line in text_lines(path)
    ]
    yield Bulk(names, run.output, flow, events, workers, others)


def text_lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.startswith("{")]


def incompressible() -> Iterator[Sample]:
    return samples(BULK_RECORDS, size=BULK_SIZE, partitions=4)


def brokers_of(pid: int, addresses: tuple[str, ...]) -> set[str]:
    """Which of these brokers a process has a connection to."""
    try:
        found = psutil.Process(pid).net_connections()
    except psutil.NoSuchProcess:
        return set()  # an idle worker has ended
    peers = {f"{peer.raddr.ip}:{peer.raddr.port}" for peer in found if peer.raddr}
    return {peer.removeprefix("::ffff:") for peer in peers} & set(addresses)


def test_the_first_lines_say_what_it_will_do(bulk: Bulk) -> None:
    lines = bulk.output.splitlines()
    assert re.match(
        rf"flow {bulk.names.flow}: 2 topics, {LANES + 4} partitions, 80,000 records, \d+(\.\d)? MB on the source",
        lines[0],
    ), lines[0]
    assert any(line.startswith(f"  create {bulk.names.remote}: {LANES} partitions") for line in lines)
    assert "master local[4,4], 2 slots" in lines


def test_two_hundred_lanes_ride_on_two_slots(bulk: Bulk, two_clusters: TwoClusters) -> None:
    names = bulk.names
    assert len(lanes_of(bulk.flow, names.topic)) == LANES
    pairs = {names.topic: names.remote, f"{names.topic}-bulk": f"{names.remote}-bulk"}
    comparison = compare_topics(two_clusters.a.bootstrap, two_clusters.b.bootstrap, pairs)
    assert (comparison.differences, comparison.records) == ([], 20_000 + BULK_RECORDS)


def test_sparks_own_event_log_shows_epochs_of_two_tasks(bulk: Bulk) -> None:
    epochs = {
        event["Job ID"]: event["Stage IDs"]
        for event in bulk.events
        if event["Event"] == "SparkListenerJobStart"
        and event["Properties"].get("spark.jobGroup.id", "").startswith("heliograph-epoch-")
    }
    assert epochs
    stages = {stage for found in epochs.values() for stage in found}
    tasks = [event for event in bulk.events if event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in stages]
    assert len(tasks) == 2 * len(stages)
    assert {task["Task End Reason"]["Reason"] for task in tasks} == {"Success"}


def test_the_workers_talk_to_both_brokers_and_the_jvm_to_none(bulk: Bulk) -> None:
    """Linux counts no socket bytes per process: who is connected to whom shows that no byte can cross into the JVM."""
    carrying = [brokers for brokers in bulk.workers.values() if len(brokers) == 2]
    assert len(carrying) >= 2, bulk.workers
    assert set().union(*bulk.others.values()) == set(), bulk.others
    assert sum(lane["bytes"] for lane in bulk.flow["lanes"]) >= BULK_RECORDS * BULK_SIZE
