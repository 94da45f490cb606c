"""Brokers of other releases, as source and as target of Kafka 4.3.1: copies are identical; what is too old is refused.

Jars of other releases come by Maven like those of 4.3.1, once per machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from heliograph.embedded.cluster import EmbeddedCluster, start_many
from heliograph.embedded.settings import Jvm
from heliograph.operations.compare import compare_topics
from heliograph.replication.broker_versions import TESTED
from tests.integration.protocol.harness import SILENT, Attempt, Mirror, carry
from tests.support.clusters import TwoClusters
from tests.support.doors import AuthorizedCluster
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import command, flow_file, run_to_the_end, word
from tests.support.topics import create_topic, delete_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import (
    CODECS,
    samples,
    write,
    write_every_codec,
    write_odd_records,
    write_single_record_batches,
    write_transactions,
)

OLDEST, NEWEST_3 = "3.3.2", "3.9.2"
TOO_OLD = "3.0.2"
"""The last release that reads topics by name only."""
EACH = 300
ROUNDS = 8


@pytest.fixture(scope="module")
def old_clusters(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, EmbeddedCluster]]:
    """One broker of each release, started together."""
    del kafka_jars
    directory = tmp_path_factory.mktemp("versions")
    made = {
        # The authorizer for KRaft came with 3.2.
        version: kind(f"K{version.replace('.', '')}", directory, jvm=Jvm(kafka=version))
        for version, kind in (
            (OLDEST, AuthorizedCluster),
            (NEWEST_3, AuthorizedCluster),
            (TOO_OLD, EmbeddedCluster),
        )
    }
    try:
        start_many(list(made.values()))
        yield made
    finally:
        for cluster in made.values():
            cluster.stop()


@dataclass(frozen=True)
class Both:
    """A flow each way between 4.3.1 and another release, in one file."""

    new: str
    old: str
    topic: str
    addresses: dict[str, str]

    @classmethod
    def between(cls, new: EmbeddedCluster, old: EmbeddedCluster) -> Both:
        one, other = word(), word()
        return cls(one, other, word(), {one: new.bootstrap, other: old.bootstrap})

    def ways(self) -> list[tuple[str, str, str]]:
        """Source address, target address, remote topic: there and back."""
        return [
            (self.addresses[source], self.addresses[target], f"{source}.{self.topic}")
            for source, target in ((self.new, self.old), (self.old, self.new))
        ]

    def file(self, directory: Path) -> Path:
        topics = f"{self.topic}(-tx)?"
        flows = {f"{self.new}->{self.old}": topics, f"{self.old}->{self.new}": topics}
        return flow_file(directory / "versions.properties", self.addresses, flows, {"slots": "2"})

    def assert_identical(self, records: int) -> None:
        for source, target, remote in self.ways():
            comparison = compare_topics(source, target, {self.topic: remote, f"{self.topic}-tx": f"{remote}-tx"})
            assert (comparison.differences, comparison.records) == ([], records)


def fill(both: Both) -> int:
    """Every codec, odd records and transactions with aborts on either side; how many records are to be copied each way."""
    records = 0
    for source, _, _ in both.ways():
        create_topic(source, both.topic, partitions=2)
        create_topic(source, f"{both.topic}-tx")
        records = write_every_codec(source, both.topic, EACH, partitions=2)
        records += write_odd_records(source, both.topic)
        records += write_transactions(source, f"{both.topic}-tx", word())
    return records


def test_copies_between_releases_are_identical_there_and_back(
    two_clusters: TwoClusters, old_clusters: dict[str, EmbeddedCluster], tmp_path: Path
) -> None:
    both = Both.between(two_clusters.b, old_clusters[NEWEST_3])
    records = fill(both)
    assert records > EACH * len(CODECS)
    output = run_to_the_end(both.file(tmp_path))
    assert f"copied {2 * records:,} records" in output
    both.assert_identical(records)


def test_with_the_oldest_release_copies_are_identical_although_the_driver_was_killed(
    two_clusters: TwoClusters, old_clusters: dict[str, EmbeddedCluster], tmp_path: Path
) -> None:
    both = Both.between(two_clusters.b, old_clusters[OLDEST])
    records = fill(both)
    properties = both.file(tmp_path)
    with HeliographRun(properties) as run:
        wait_until(
            lambda: all(ends(target, remote).get(0) for _, target, remote in both.ways()), "it copies", every=0.1
        )
        for number in range(ROUNDS):
            for source, _, _ in both.ways():
                write(source, both.topic, samples(1_000, partitions=2, seed=number), "lz4")
            if number == ROUNDS // 2:
                run.kill()
    before = [sum(ends(target, remote).values()) for _, target, remote in both.ways()]
    run_to_the_end(properties)
    both.assert_identical(records + ROUNDS * 1_000)
    after = [sum(ends(target, remote).values()) for _, target, remote in both.ways()]
    assert all(0 < then < now for then, now in zip(before, after, strict=True)), "the kill did not fall in the middle"


def test_a_remote_topic_made_again_stops_the_lane_on_a_target_that_writes_by_name(
    two_clusters: TwoClusters, old_clusters: dict[str, EmbeddedCluster], unique: str
) -> None:
    """P3.5, P9, case 4b: the broker takes the next batch at offset 0 of the new topic; that is one batch and no more."""
    mirror = Mirror(two_clusters.a.bootstrap, old_clusters[NEWEST_3].bootstrap, unique)
    mirror.make_topic()
    write_single_record_batches(mirror.source, mirror.topic, 20)
    opened = mirror.open()
    with Attempt(opened, SILENT) as attempt:
        attempt.wait_for_records(20)
        delete_topic(mirror.target, mirror.remote)
        create_topic(mirror.target, mirror.remote)
        write(
            mirror.source, mirror.topic, samples(5, seed=2), linger_ms=5_000
        )  # one batch, however slowly they are handed over
        attempt.wait_parked("was deleted and created again")
        assert "expected at 20 at 0: it was truncated, recreated" in attempt.notes
        assert "5 stray records or more lie from 0 on" in attempt.notes
        write(mirror.source, mirror.topic, samples(5, seed=3))
        strays = ends(mirror.target, mirror.remote)[0]
        attempt.kill()
    assert strays == 5
    again = mirror.open()
    assert again.entries[0].generation >= 1
    carry(again)
    assert ends(mirror.target, mirror.remote)[0] == strays + 30


@pytest.mark.parametrize("place", ["source", "target"])
def test_a_release_that_is_too_old_is_refused_with_one_sentence(
    two_clusters: TwoClusters, old_clusters: dict[str, EmbeddedCluster], tmp_path: Path, place: str
) -> None:
    both = Both.between(two_clusters.b, old_clusters[TOO_OLD])
    flow = f"{both.old}->{both.new}" if place == "source" else f"{both.new}->{both.old}"
    properties = flow_file(tmp_path / "versions.properties", both.addresses, {flow: both.topic})
    said = command("run", str(properties), "--dry-run")
    assert (said.code, said.out) == (1, "")
    address = both.addresses[both.old]
    assert f"cluster '{both.old}': broker 1 at {address} is not supported: it does not offer Fetch 13" in said.err
    assert f"(tested: Kafka {TESTED})" in said.err
    *findings, _ = said.err.splitlines()
    assert all(" check: " in line for line in findings), "what the check found, and one sentence"
