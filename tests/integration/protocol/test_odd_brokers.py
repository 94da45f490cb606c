"""Brokers that answer, and are wrong: cut off from their controller (M9), with a disk that failed (L2), naming a follower (L13)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from heliograph.kafka import fetch
from heliograph.kafka.client import ClusterClient
from heliograph.model.events import EventKind
from heliograph.wire.fetch_codec import FetchSettings
from tests.integration.protocol.harness import QUICK, Attempt, Mirror, with_client
from tests.support.clusters import TwoClusters
from tests.support.leaders import elect_preferred, leaders, reassign, wait_until_in_sync
from tests.support.odd_cluster import BROKEN, CUT_OFF, RACKS, OddCluster
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

IMPATIENT = replace(QUICK, request_timeout_ms=3_000)
OTHER = next(broker for broker in RACKS if broker != CUT_OFF)
PATIENCE_SECONDS = 90.0


@pytest.fixture(scope="module")
def odd(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OddCluster]:
    del kafka_jars
    with OddCluster("odd", tmp_path_factory.mktemp("odd")) as cluster:
        yield cluster


def led_by(cluster: OddCluster, topic: str, broker: int, partitions: int = 1) -> None:
    """Both brokers have the topic, and this one leads all of it."""
    order = [broker, *(other for other in RACKS if other != broker)]
    reassign(cluster.bootstrap, topic, dict.fromkeys(range(partitions), order))
    wait_until_in_sync(cluster.bootstrap, set(RACKS), topic)
    elect_preferred(cluster.bootstrap, topic, range(partitions))
    wait_until(lambda: set(leaders(cluster.bootstrap, topic).values()) == {broker}, f"broker {broker} leads", every=0.2)


def cut_off(cluster: OddCluster, topic: str) -> None:
    """The first broker is, and the others have another leader in its place."""
    cluster.cut_off()
    address = cluster.address(OTHER)
    wait_until(lambda: leaders(address, topic)[0] == OTHER, "another one leads", PATIENCE_SECONDS, every=0.3)
    assert with_client(cluster.address(CUT_OFF), partial(_named_leader, topic=topic)) == CUT_OFF, "it has heard of it"


async def _named_leader(client: ClusterClient, topic: str) -> int:
    """By the broker that is asked first."""
    connection = await client._any()
    return (await client._ask_metadata(connection, [topic], None))[topic].leaders[0].node


def copied(attempt: Attempt, count: int) -> None:
    def reached() -> bool:
        assert attempt.error is None, repr(attempt.error)
        return attempt.position() >= count

    wait_until(reached, f"{count} records are copied", PATIENCE_SECONDS, every=0.1)


def joined(odd: OddCluster, topic: str) -> None:
    """Both brokers know who leads, and have everything: until then whoever asks the one that was cut off is told of the past."""
    wait_until_in_sync(odd.address(OTHER), set(RACKS), topic)
    named = partial(_named_leader, topic=topic)
    wait_until(
        lambda: with_client(odd.address(CUT_OFF), named) == with_client(odd.address(OTHER), named),
        "the broker that was cut off knows who leads",
        PATIENCE_SECONDS,
        every=0.2,
    )


def test_a_target_broker_that_lost_its_controller_is_left_for_the_leader_that_others_know(
    two_clusters: TwoClusters, odd: OddCluster, unique: str
) -> None:
    """It is the first that is asked for metadata, takes records as if it led, and names itself as the leader for ever."""
    mirror = Mirror(two_clusters.a.bootstrap, odd.bootstrap, unique)
    mirror.policies = {"replication.factor": "2"}
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(100))
    opened = mirror.open()
    led_by(odd, mirror.remote, CUT_OFF)
    with Attempt(opened, IMPATIENT) as attempt:
        copied(attempt, 100)
        try:
            cut_off(odd, mirror.remote)
            write(mirror.source, mirror.topic, samples(100, seed=2))
            copied(attempt, 200)
        finally:
            odd.join()
        joined(odd, mirror.remote)
        attempt.stop()
    mirror.assert_identical(200)


def test_a_source_broker_that_lost_its_controller_is_left_for_the_leader_that_others_know(
    two_clusters: TwoClusters, odd: OddCluster, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers every question as before, and has nothing new: only another broker can tell."""
    monkeypatch.setattr(fetch, "LOOK_ELSEWHERE_SECONDS", 1.0)
    mirror = Mirror(odd.bootstrap, two_clusters.b.bootstrap, unique)
    create_topic(mirror.source, mirror.topic, 1, 2)
    led_by(odd, mirror.topic, CUT_OFF)
    write(mirror.source, mirror.topic, samples(100))
    with Attempt(mirror.open(), IMPATIENT) as attempt:
        copied(attempt, 100)
        try:
            cut_off(odd, mirror.topic)
            write(odd.address(OTHER), mirror.topic, samples(100, seed=2))
            copied(attempt, 200)
        finally:
            odd.join()
        joined(odd, mirror.topic)
        attempt.stop()
    mirror.assert_identical(200)


def test_a_source_that_sends_readers_to_a_follower_parks_the_lane_with_the_option_that_must_change(
    two_clusters: TwoClusters, odd: OddCluster, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's own selector does so for a reader in the follower's rack; Heliograph says none, but another selector may choose."""
    mirror = Mirror(odd.bootstrap, two_clusters.b.bootstrap, unique)
    create_topic(mirror.source, mirror.topic, 1, 2)
    led_by(odd, mirror.topic, CUT_OFF)
    write(mirror.source, mirror.topic, samples(100))
    with monkeypatch.context() as there:
        there.setattr(fetch, "FetchSettings", partial(FetchSettings, rack=RACKS[OTHER]))
        with Attempt(mirror.open()) as attempt:
            reason = attempt.wait_parked("replica.selector.class must leave Heliograph to the leader")
            assert f"sends readers of {unique}-0 to broker {OTHER}, which does not lead it" in reason
            assert attempt.records == 0
    with Attempt(mirror.open()) as attempt:
        copied(attempt, 100)  # as it is, in no rack
        attempt.stop()
    mirror.assert_identical(100)


def test_a_source_disk_that_fails_is_left_for_the_replica_on_another_broker(
    two_clusters: TwoClusters, odd: OddCluster, unique: str
) -> None:
    """With several disks a broker goes on without one of them, and refuses what lies there (error 56)."""
    partitions = 4
    mirror = Mirror(odd.bootstrap, two_clusters.b.bootstrap, unique)
    create_topic(mirror.source, mirror.topic, partitions, 2)
    led_by(odd, mirror.topic, BROKEN, partitions)
    write(mirror.source, mirror.topic, samples(400, partitions=partitions))
    assert any((odd.second_disk(BROKEN) / f"{unique}-{number}").exists() for number in range(partitions))
    with Attempt(mirror.open(), IMPATIENT) as attempt:
        attempt.wait_for_records(400)
        odd.lose_disk()
        try:
            wait_until(lambda: CUT_OFF in leaders(odd.bootstrap, unique).values(), "the other one leads", every=0.2)
            write(mirror.source, mirror.topic, samples(400, partitions=partitions, seed=2))
            wait_until(lambda: attempt.records >= 800, "all lanes continue", PATIENCE_SECONDS, every=0.1)
        finally:
            odd.return_disk()
        assert EventKind.PARKED not in {event.kind for event in attempt.events}, attempt.notes
        attempt.stop()
    assert sum(ends(mirror.target, mirror.remote).values()) == 800
    mirror.assert_identical(800)
