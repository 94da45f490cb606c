"""`offsets.align`: the records of a new lane have the offsets of their source, whatever interrupts the fill."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from heliograph.control.status import LaneStatus, read_status
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.life import now_ms
from heliograph.model.lanes import Identity
from heliograph.wire.filler import MOST, filler_batch
from tests.integration.protocol.harness import Attempt, Mirror, Opened, _produce, carry, with_client
from tests.support.clusters import ClusterFactory, TwoClusters
from tests.support.guarded import Grant, GuardedCluster
from tests.support.reading import messages
from tests.support.topics import create_topic, delete_records, ends, stable_ends, starts
from tests.support.waiting import wait_until
from tests.support.writers import Sample, samples, write, write_transactions

NOBODY = (-1, -1)


def fill(bootstrap: str, topic: str, offsets: int) -> None:
    """So many records that nobody wants, so that what is written next has an offset far from 0."""

    async def all_of_it(client: ClusterClient) -> None:
        for first in range(0, offsets, MOST):
            batch = filler_batch(min(MOST, offsets - first), NOBODY, -1, now_ms())
            assert (await _produce(client, topic, batch)).base_offset == first

    with_client(bootstrap, all_of_it)
    delete_records(bootstrap, topic, 0, offsets)


@pytest.fixture
def aligned(mirror: Mirror) -> Mirror:
    mirror.policies = {"offsets.align": "true"}
    return mirror


def contents(bootstrap: str, topic: str) -> dict[int, tuple[Any, ...]]:
    return {
        message.offset(): (message.key(), message.value(), message.timestamp(), message.headers())
        for message in messages(bootstrap, topic)
    }


def lane_status(opened: Opened) -> LaneStatus:
    [flow] = asyncio.run(read_status((opened.plan.settings,), 15, now_ms()))
    [lane] = flow.lanes
    return lane


def test_a_source_that_begins_at_five_million_has_its_offsets_on_the_target_until_a_marker(aligned: Mirror) -> None:
    begin = 5_000_000
    aligned.make_topic()
    fill(aligned.source, aligned.topic, begin)
    assert starts(aligned.source, aligned.topic) == {0: begin}
    write(aligned.source, aligned.topic, samples(3_000), "lz4")
    opened = aligned.open()
    carry(opened)
    source, target = contents(aligned.source, aligned.topic), contents(aligned.target, aligned.remote)
    assert starts(aligned.target, aligned.remote) == {0: begin} and min(target) == begin, "no consumer sees filler"
    assert source == target and len(source) == 3_000
    assert lane_status(opened).differs_since == -1

    write_transactions(aligned.source, aligned.topic, aligned.topic, transactions=2)
    write(aligned.source, aligned.topic, samples(500, seed=2))
    again = aligned.open()
    assert not again.flow.refused
    end = stable_ends(aligned.source, aligned.topic)[0]
    attempt = carry(again, {aligned.lane_key: end})
    aligned.assert_identical(3_540)
    since = begin + 3_000 + 20 + 1
    assert lane_status(again).differs_since == since, "the first record behind the first marker"
    told = [event for event in attempt.events if event.kind == "alignment"]
    assert [f"since source offset {since} " in event.reason for event in told] == [True]
    source, target = contents(aligned.source, aligned.topic), contents(aligned.target, aligned.remote)
    assert all(target[offset] == source[offset] for offset in source if offset < since)
    assert target[since] != source[since]


def test_a_fill_that_is_killed_again_and_again_goes_on_and_is_exact(aligned: Mirror) -> None:
    """Thousands of small batches, so that the first kill falls into the fill."""
    begin = 250_000
    aligned.make_topic()
    create_topic(aligned.target, aligned.remote, config={"max.message.bytes": "400"})
    fill(aligned.source, aligned.topic, begin)
    write(aligned.source, aligned.topic, samples(200))
    filled = []
    for share in (0, 1, 2):
        with Attempt(aligned.open()) as attempt:
            wanted = share * begin // 4
            attempt.wait_for(partial(_has, aligned, wanted), f"more than {wanted} offsets are filled")
            attempt.kill()
        filled.append(ends(aligned.target, aligned.remote)[0])
    assert filled[0] < begin, "the first kill fell into the fill"
    opened = aligned.open()
    carry(opened)
    entry = aligned.book().latest(opened.entries[0].lane)
    assert entry is not None and not entry.filling and entry.differs_at == -1
    assert contents(aligned.target, aligned.remote) == contents(aligned.source, aligned.topic)
    assert starts(aligned.target, aligned.remote) == {0: begin}
    aligned.assert_identical(200)


def _has(mirror: Mirror, offsets: int) -> bool:
    return ends(mirror.target, mirror.remote)[0] > offsets


def begins_at(mirror: Mirror) -> int:
    """-1 while the broker that was restarted does not lead yet."""
    try:
        return starts(mirror.target, mirror.remote)[0]
    except KafkaException:
        return -1


def test_a_broker_that_forgot_the_lane_and_the_cut_takes_the_first_record_where_it_belongs(
    two_clusters: TwoClusters, new_cluster: ClusterFactory, unique: str
) -> None:
    """Killed before it has written down the cut, a broker shows the filler again; the lane cuts it off, once more."""
    # What was cut off is written down once a minute of the broker's life, whenever that is: here not before the kill.
    there = new_cluster("B", config={"log.flush.start.offset.checkpoint.interval.ms": "3600000"})
    mirror = Mirror(two_clusters.a.bootstrap, there.bootstrap, unique)
    mirror.policies = {"offsets.align": "true"}
    mirror.make_topic()
    fill(mirror.source, mirror.topic, 150_000)
    opened = mirror.open()
    with Attempt(opened) as attempt:
        attempt.wait_for(lambda: starts(mirror.target, mirror.remote) == {0: 150_000}, "it is filled and cut off")
        attempt.kill()
    there.kill(1)
    there.restart(1)
    wait_until(
        lambda: begins_at(mirror) == 0, "the filler is there again: this is what the lane must expect", every=0.2
    )
    write(mirror.source, mirror.topic, samples(100))
    carry(mirror.open(), {mirror.lane_key: 150_100})
    assert contents(mirror.target, mirror.remote) == contents(mirror.source, mirror.topic)


def test_a_remote_topic_that_has_records_is_refused_and_left_as_it_is(aligned: Mirror) -> None:
    aligned.make_topic()
    fill(aligned.source, aligned.topic, 1_000)
    create_topic(aligned.target, aligned.remote)
    write(aligned.target, aligned.remote, [Sample(b"somebody else's")])
    opened = aligned.open()
    assert opened.flow.entries == {}
    assert "has or had records: it ends at 1" in opened.flow.refused[aligned.lane_key]
    [event] = opened.flow.events
    assert event.kind == "alignment" and "offsets.align = false" in event.what_to_do
    assert ends(aligned.target, aligned.remote) == {0: 1}
    aligned.policies = {}
    carry(aligned.open())


def test_somebody_who_writes_while_it_is_filled_parks_the_lane(aligned: Mirror) -> None:
    aligned.make_topic()
    fill(aligned.source, aligned.topic, 1_000)
    opened = aligned.open()
    write(aligned.target, aligned.remote, [Sample(b"somebody else's")])
    with Attempt(opened) as attempt:
        said = "somebody else wrote into the remote partition before this lane began: it ends at 1"
        assert "delete the remote topic" in attempt.wait_parked(said)
    assert ends(aligned.target, aligned.remote) == {0: 1}


def test_without_delete_the_lane_parks_and_names_it_and_goes_on_once_it_is_granted(
    two_clusters: TwoClusters, kafka_jars: Path, unique: str, tmp_path: Path
) -> None:
    del kafka_jars
    guarded = GuardedCluster("G", tmp_path)
    guarded.start()
    try:
        for operation in ("CREATE", "WRITE", "READ", "DESCRIBE_CONFIGS"):
            guarded.grant(Grant("topic", "*", operation))
        guarded.grant(Grant("cluster", "kafka-cluster", "DESCRIBE_CONFIGS"))
        guarded.grant(Grant("transactional id", "heliograph.", "WRITE", prefixed=True))
        mirror = Mirror(two_clusters.a.bootstrap, guarded.bootstrap, unique)
        mirror.policies = {"offsets.align": "true"}
        mirror.make_topic()
        fill(mirror.source, mirror.topic, 1_000)
        write(mirror.source, mirror.topic, samples(10))
        with Attempt(mirror.open()) as attempt:
            attempt.wait_parked(f"this needs DELETE on the topic {mirror.remote} of cluster {unique}t")
            guarded.grant(Grant("topic", mirror.remote, "DELETE"))
            attempt.wait_for_position(1_010)
    finally:
        guarded.stop()


def test_a_second_writer_of_filler_cannot_write_it_twice(aligned: Mirror) -> None:
    """Invariant F: a number is taken once, whoever sends it."""
    aligned.make_topic()
    fill(aligned.source, aligned.topic, 2_000)
    opened = aligned.open()
    identity: Identity = opened.entries[0].identity
    named = (identity.producer_id, identity.producer_epoch)

    async def race(client: ClusterClient) -> list[tuple[int, int]]:
        first = await _produce(client, aligned.remote, filler_batch(500, named, 0, now_ms()))
        repeated = await _produce(client, aligned.remote, filler_batch(500, named, 0, now_ms()))
        further = await _produce(client, aligned.remote, filler_batch(500, named, 700, now_ms()))
        return [(answer.error_code, answer.base_offset) for answer in (first, repeated, further)]

    assert with_client(aligned.target, race) == [(0, 0), (0, 0), (45, -1)]
    write(aligned.source, aligned.topic, samples(10))
    carry(opened, {aligned.lane_key: 2_010})
    wait_until(lambda: ends(aligned.target, aligned.remote) == {0: 2_010}, "the rest was filled once")
    assert contents(aligned.target, aligned.remote) == contents(aligned.source, aligned.topic)
