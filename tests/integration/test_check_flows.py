"""`heliograph check` on clusters without an authorizer: what it says of clusters, limits, MirrorMaker 2 and other writers."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from pathlib import Path

from confluent_kafka import Producer

from heliograph.config.load import load_file
from heliograph.control.clock import Clock
from heliograph.embedded.mirrormaker import MirrorMaker
from heliograph.embedded.settings import Jvm
from heliograph.operations.check import check
from heliograph.replication.findings import Finding, Level
from tests.support.clusters import TwoClusters
from tests.support.doors import address_lines
from tests.support.heliograph_run import write_properties
from tests.support.mirror import command, flow_file, word
from tests.support.topics import create_topic
from tests.support.waiting import wait_until


def findings(file: Path, now_shift_ms: int = 0) -> dict[str, Finding]:
    """By subject, the worst one where a subject has several."""
    order = list(Level)
    found: dict[str, Finding] = {}
    for finding in asyncio.run(check(load_file(str(file)), lambda: Clock().now_ms() + now_shift_ms)):
        known = found.get(finding.subject)
        if known is None or order.index(finding.level) > order.index(known.level):
            found[finding.subject] = finding
    return found


class OneFlow:
    """A flow of one topic between the shared clusters, under names of its own."""

    def __init__(self, clusters: TwoClusters, directory: Path, **more: str) -> None:
        self.name = word()
        self.source, self.target = f"{self.name}s", f"{self.name}t"
        self.flow, self.remote = f"{self.source}->{self.target}", f"{self.source}.{self.name}"
        ends = {self.source: clusters.a.bootstrap, self.target: clusters.b.bootstrap}
        options = {key.replace("_", "."): value for key, value in more.items()}
        self.file = flow_file(directory / f"{self.name}.properties", ends, {self.flow: self.name}, options)

    def check(self, what: str, now_shift_ms: int = 0) -> Finding:
        return findings(self.file, now_shift_ms)[f"{self.flow}: {what}"]


def write(bootstrap: str, topic: str, idempotent: bool) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": idempotent, "acks": "all"})
    producer.produce(topic, b"by somebody else")
    assert producer.flush(30) == 0


def test_a_flow_that_can_run_passes_everything_and_exits_with_zero(two_clusters: TwoClusters, tmp_path: Path) -> None:
    one = OneFlow(two_clusters, tmp_path)
    create_topic(two_clusters.a.bootstrap, one.name, 3)
    said = command("check", str(one.file), "--json")
    answer = json.loads(said.out)
    assert (said.code, answer["warned"], answer["failed"]) == (0, 0, 0), said.out
    subjects = {row["subject"] for row in answer["findings"]}
    for what in ("cluster ids", "permission READ", "replication.factor", "max.message.bytes", "timestamp limits"):
        assert f"{one.flow}: {what}" in subjects
    for what in (f"clock of {one.source}", f"space on {one.target}", "MirrorMaker 2", "topics"):
        assert f"{one.flow}: {what}" in subjects
    assert {f"{one.source}: reach", f"{one.source}: authentication", f"{one.target}: versions"} <= subjects


def test_the_file_of_a_worker_has_its_cluster_checked(two_clusters: TwoClusters, tmp_path: Path) -> None:
    lines = {name.removeprefix("w."): value for name, value in address_lines("w", two_clusters.a.bootstrap).items()}
    own = {"group.id": word(), "listeners": "http://127.0.0.1:8083", "heliograph.topics.replication.factor": "1"}
    said = command("check", str(write_properties(tmp_path / "worker.properties", lines | own)))
    assert said.code == 0, said.out + said.err
    assert "PASS  worker: reach: " in said.out
    assert "PASS  worker: versions: " in said.out
    assert "NOTE  flows: no flows yet (a worker's file)" in said.out


def test_what_is_wrong_fails_with_one_and_a_line_each(two_clusters: TwoClusters, tmp_path: Path) -> None:
    one = OneFlow(two_clusters, tmp_path, replication_factor="3")
    create_topic(two_clusters.a.bootstrap, one.name)
    said = command("check", str(one.file))
    assert said.code == 1
    assert f"FAIL  {one.flow}: replication.factor: replication.factor = 3, and cluster {one.target} has 1 " in said.out
    assert f"FAIL  {one.flow}: remote topics: the target would not create topic {one.remote}" in said.out


def test_two_aliases_of_one_cluster_fail(two_clusters: TwoClusters, tmp_path: Path) -> None:
    ends = {"x": two_clusters.a.bootstrap, "y": two_clusters.a.bootstrap}
    file = flow_file(tmp_path / "same.properties", ends, {"x->y": word()})
    assert findings(file)["x->y: cluster ids"].level is Level.FAIL


def test_a_cluster_out_of_reach_fails_and_the_other_one_is_still_checked(
    two_clusters: TwoClusters, tmp_path: Path
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{listener.getsockname()[1]}"
        file = flow_file(tmp_path / "gone.properties", {"x": two_clusters.a.bootstrap, "y": nobody}, {"x->y": word()})
        found = findings(file)
    assert found["y: reach"].level is Level.FAIL
    assert nobody in found["y: reach"].sentence
    assert found["x: reach"].level is Level.PASS


def test_a_clock_that_differs_is_measured(two_clusters: TwoClusters, tmp_path: Path) -> None:
    one = OneFlow(two_clusters, tmp_path)
    create_topic(two_clusters.a.bootstrap, one.name)
    right = one.check(f"clock of {one.target}")
    wrong = one.check(f"clock of {one.target}", now_shift_ms=-90_000)
    assert right.level is Level.PASS
    assert wrong.level is Level.WARN
    measured = re.match(r"([\d.]+) s ahead of this machine's, give or take ([\d.]+) s", wrong.sentence)
    assert measured is not None, wrong.sentence
    assert abs(float(measured[1]) - 90) <= float(measured[2]) + 0.1, wrong.sentence
    assert one.check(f"clock of {one.target}", now_shift_ms=4_000_000).level is Level.FAIL


def test_a_stricter_remote_topic_is_told_before_a_record_parks(two_clusters: TwoClusters, tmp_path: Path) -> None:
    one = OneFlow(two_clusters, tmp_path)
    create_topic(two_clusters.a.bootstrap, one.name, config={"max.message.bytes": "2000000"})
    assert one.check("max.message.bytes").level is Level.PASS  # it would be made as large
    strict = {"max.message.bytes": "1000", "message.timestamp.before.max.ms": "86400000"}
    create_topic(two_clusters.b.bootstrap, one.remote, config=strict)
    assert one.check("max.message.bytes").sentence == f"{one.remote} takes 1000, {one.name} 2000000"
    assert one.check("timestamp limits").sentence == f"{one.remote} refuses records older than 1 d"


def test_other_writers_are_seen_with_and_without_a_producer_id(two_clusters: TwoClusters, tmp_path: Path) -> None:
    one = OneFlow(two_clusters, tmp_path)
    create_topic(two_clusters.a.bootstrap, one.name)
    create_topic(two_clusters.b.bootstrap, one.remote)
    assert one.check("other writers").level is Level.PASS
    write(two_clusters.b.bootstrap, one.remote, idempotent=False)
    assert f"{one.remote}-0 (last batch without a producer id)" in one.check("other writers").sentence
    write(two_clusters.b.bootstrap, one.remote, idempotent=True)
    found = one.check("other writers")
    assert found.level is Level.WARN
    assert f"{one.remote}-0 (producer " in found.sentence


def test_a_mirror_maker_that_runs_for_the_flow_fails_the_check(two_clusters: TwoClusters, tmp_path: Path) -> None:
    factors = ("offset.storage", "status.storage", "config.storage")
    one = OneFlow(two_clusters, tmp_path)
    create_topic(two_clusters.a.bootstrap, one.name)
    theirs = flow_file(
        tmp_path / "theirs.properties",
        {one.source: two_clusters.a.bootstrap, one.target: two_clusters.b.bootstrap},
        {one.flow: one.name},
        {f"{name}.replication.factor": "1" for name in (*factors, "offset-syncs.topic", "checkpoints.topic")}
        | {f"emit.{name}.enabled": "true" for name in ("offset-syncs", "checkpoints")},
    )
    with MirrorMaker(theirs, tmp_path / "mm2.log", Jvm()):

        def seen() -> bool:
            # While its workers share out their work it fails with other words.
            found = one.check("MirrorMaker 2")
            named = f"a MirrorMaker 2 on 127.0.0.1 (group '{one.source}-mm2')" in found.sentence
            return named and found.level is Level.FAIL

        wait_until(seen, "the check sees MirrorMaker 2", 240, every=0.5)
    wait_until(lambda: one.check("MirrorMaker 2").level is Level.PASS, "the check sees that it left", every=0.5)
