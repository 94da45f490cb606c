"""Lines that are slow, held back or silent: what is slow is waited for, what is stuck stops nobody else."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.embedded.cluster import start_many
from heliograph.kafka.connections import Connection
from heliograph.kafka.slot import Slot, SlotPlan, SlotSettings
from heliograph.kafka.sockets import unsent_bytes
from tests.integration.protocol.harness import QUICK, SILENT, Attempt, Mirror, Opened, carry
from tests.support.clusters import TwoClusters
from tests.support.quotas import set_quota
from tests.support.relay import RelayedCluster
from tests.support.topics import ends
from tests.support.waiting import wait_until
from tests.support.writers import Sample, producer, send

LARGE = {"message.max.bytes": "20000000", "replica.fetch.max.bytes": "20000000"}
LINE_BYTES_S = 400_000
"""In the ten seconds that an answer had before, 4 MB."""
LONG_SECONDS = 120.0
SMALL_BUFFER = 64 << 10
"""The least that memory is handed out in."""


@pytest.fixture(scope="module")
def far(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoClusters]:
    """Clusters behind lines: a for sources, b for targets."""
    del kafka_jars
    directory = tmp_path_factory.mktemp("far")
    pair = TwoClusters(RelayedCluster("FA", directory, config=LARGE), RelayedCluster("FB", directory, config=LARGE))
    try:
        start_many([pair.a, pair.b])
        yield pair
    finally:
        pair.a.stop()
        pair.b.stop()


def line_of(cluster: object) -> RelayedCluster:
    assert isinstance(cluster, RelayedCluster)
    return cluster


def fill(bootstrap: str, topic: str, partitions: int, batches: int, size: int) -> int:
    """Batches of one record that no codec makes smaller."""
    chance = random.Random(partitions * size)
    client = producer(bootstrap, linger_ms=0, batch_num_messages=1, message_max_bytes=20_000_000)
    return send(
        client,
        topic,
        (Sample(chance.randbytes(size), partition=place % partitions) for place in range(batches * partitions)),
    )


def wait_for_records(attempt: Attempt, count: int, flow: str = "") -> None:
    def copied() -> bool:
        assert attempt.error is None, repr(attempt.error)
        lives = [life for life in attempt.lives if not flow or life.run.lane.id.flow == flow]
        return sum(life.run.counts.records for life in lives) >= count

    try:
        wait_until(copied, f"{count} records are copied", LONG_SECONDS)
    except AssertionError as error:
        attaches = sorted(life.run.counts.attaches for life in attempt.lives)
        raise AssertionError(f"{error}: {attempt.records} are, attaches {attaches}, {attempt.says()}") from error


def attached_once(attempt: Attempt) -> bool:
    return {life.run.counts.attaches for life in attempt.lives} == {1}


def test_answers_that_take_longer_than_any_limit_arrive_as_long_as_bytes_do(
    far: TwoClusters, two_clusters: TwoClusters, unique: str
) -> None:
    """20 partitions with a backlog and one batch of 6 MB: at this rate 15 s, and no connection and no lane is given up."""
    mirror = Mirror(far.a.bootstrap, two_clusters.b.bootstrap, unique)
    mirror.make_topic(20, config={"max.message.bytes": "20000000"})
    count = fill(far.a.bootstrap, unique, 20, 2, 30_000)
    client = producer(far.a.bootstrap, message_max_bytes=20_000_000)
    count += send(client, unique, [Sample(random.Random(7).randbytes(6_000_000), partition=7)])
    opened = mirror.open()
    line = line_of(far.a)
    line.slow_down(LINE_BYTES_S)
    try:
        with Attempt(opened) as attempt:
            wait_for_records(attempt, count)
            assert attached_once(attempt), attempt.notes
            assert attempt.slot is not None
            (reader,) = attempt.slot._readers.values()
            assert reader._pace.size < 2 * LINE_BYTES_S, "what is asked for follows the line"
            attempt.wait_for(lambda: 0 < reader._share < 2 * LINE_BYTES_S, "so much is asked for")
            attempt.stop()
    finally:
        line.slow_down(None)
    mirror.assert_identical(count)


def test_requests_that_leave_slowly_or_are_held_back_by_a_quota_are_not_overdue(
    far: TwoClusters, two_clusters: TwoClusters, unique: str
) -> None:
    """Each request may be silent for 6 s here, and the line needs 10 s for what one round of batches has; likewise a quota."""
    mirror = Mirror(two_clusters.a.bootstrap, far.b.bootstrap, unique)
    mirror.make_topic(20)
    count = fill(two_clusters.a.bootstrap, unique, 20, 1, 100_000)
    opened = mirror.open()
    line = line_of(far.b)
    line.slow_down(200_000)
    settings = replace(QUICK, request_timeout_ms=1_000)
    with Attempt(opened, settings) as attempt:
        try:
            wait_for_records(attempt, count)
        finally:
            line.slow_down(None)
        assert attached_once(attempt), attempt.notes
        set_quota(far.b.bootstrap, "mirror", "producer_byte_rate", 200_000)
        try:
            count += fill(two_clusters.a.bootstrap, unique, 20, 2, 100_000)
            wait_for_records(attempt, count)
        finally:
            set_quota(far.b.bootstrap, "mirror", "producer_byte_rate", None)
        assert attached_once(attempt), attempt.notes
        assert attempt.slot is not None
        assert sum(meter.throttle_ms for meter in attempt.slot.writer_meters.values()) > 0
        attempt.stop()
    mirror.assert_identical(count)


def test_a_source_that_says_nothing_is_given_up_after_the_files_request_timeout(
    far: TwoClusters, two_clusters: TwoClusters, unique: str
) -> None:
    mirror = Mirror(far.a.bootstrap, two_clusters.b.bootstrap, unique)
    mirror.options = {"request.timeout.ms": "2000"}
    mirror.make_topic()
    fill(far.a.bootstrap, unique, 1, 1, 1_000)
    lost: list[str] = []
    with Attempt(mirror.open()) as attempt:
        wait_for_records(attempt, 1)
        (relay,) = line_of(far.a).relays.values()
        relay.freeze()
        try:

            def is_given_up() -> bool:
                lost.extend(life.run.reason for life in attempt.lives if "no answer within" in life.run.reason)
                return bool(lost)

            wait_until(is_given_up, "the lane says that its source does not answer", every=0.002)
        finally:
            relay.thaw()
        fill(far.a.bootstrap, unique, 1, 1, 1_000)
        wait_for_records(attempt, 2)
        attempt.stop()
    assert re.search(r"no answer within 2(\.\d+)? s", lost[0]), f"not after a limit of the client's own: {lost[0]}"
    mirror.assert_identical(2)


def test_what_a_killed_attempt_left_on_a_line_does_not_arrive_later(
    far: TwoClusters, two_clusters: TwoClusters, unique: str
) -> None:
    """A batch that the system has taken whole, and the line has not: it ends with the process that sent it."""
    mirror = Mirror(two_clusters.a.bootstrap, far.b.bootstrap, unique)
    mirror.make_topic()
    fill(mirror.source, unique, 1, 1, 1_000)
    opened = mirror.open()
    (relay,) = line_of(far.b).relays.values()
    with Attempt(opened, SILENT) as attempt:
        wait_for_records(attempt, 1)
        relay.freeze()
        try:
            fill(mirror.source, unique, 1, 1, 350_000)
            attempt.wait_for(lambda: is_left_to_the_system(attempt), "the system has the whole request")
            attempt.kill()
        finally:
            relay.thaw()
    wait_until(lambda: relay.connections == 0, "the line has passed on all that it will")
    assert ends(mirror.target, mirror.remote)[0] == 1, "nothing arrives once its sender is gone"
    carry(opened, {mirror.lane_key: 2})
    mirror.assert_identical(2)


def is_left_to_the_system(attempt: Attempt) -> bool:
    """A batch is on its way, all of it is written, and the other side has not confirmed all of it."""
    (writer,) = slot_of(attempt)._writers.values()
    connection: Connection | None = writer._connection
    is_written = bool(attempt.life.run.in_flight) and not writer._unsent
    return is_written and connection is not None and unsent_bytes(connection._sock) > 0


def slot_of(attempt: Attempt) -> Slot:
    assert attempt.slot is not None
    return attempt.slot


def test_a_target_that_takes_nothing_stops_no_lane_of_the_slot_to_another_target(
    far: TwoClusters, two_clusters: TwoClusters, unique: str
) -> None:
    """One slot, two flows, and memory for half of what waits for the silent target."""
    source = two_clusters.a.bootstrap
    stuck = Mirror(source, far.b.bootstrap, f"{unique}x")
    moving = Mirror(source, two_clusters.b.bootstrap, f"{unique}y")
    for mirror in (stuck, moving):
        mirror.make_topic(10)
        fill(source, mirror.topic, 10, 1, 1_000)
    settings = replace(QUICK, memory_bytes=4 << 20)
    with together(settings, stuck.open(), moving.open()) as attempt:
        wait_for_records(attempt, 20)
        (relay,) = line_of(far.b).relays.values()
        relay.freeze()
        try:
            fill(source, stuck.topic, 10, 10, 80_000)
            wait_until(lambda: waiting_bytes(attempt, stuck.flow) > 1 << 20, "records wait for the silent target")
            fill(source, moving.topic, 10, 10, 80_000)
            wait_for_records(attempt, 110, moving.flow)
            assert waiting_bytes(attempt, stuck.flow) > 0, "the silent target still takes nothing"
        finally:
            relay.thaw()
        wait_for_records(attempt, 110, stuck.flow)
        attempt.stop()
    stuck.assert_identical(110)
    moving.assert_identical(110)


def test_what_waits_for_a_silent_target_takes_up_no_more_memory_than_it_needs(
    far: TwoClusters, two_clusters: TwoClusters, unique: str
) -> None:
    """What the socket has taken needs no buffer, and small answers get small ones although a large one is free."""
    mirror = Mirror(two_clusters.a.bootstrap, far.b.bootstrap, unique)
    mirror.make_topic(10)
    fill(mirror.source, unique, 10, 1, 1_000)
    with Attempt(mirror.open(), replace(QUICK, merge_below=0)) as attempt:
        wait_for_records(attempt, 10)
        send(producer(mirror.source), unique, [Sample(random.Random(3).randbytes(900_000), partition=0)])
        wait_for_records(attempt, 11)
        memory = slot_of(attempt).memory
        assert memory._free and len(memory._free[-1]) > 10 * SMALL_BUFFER, "a large buffer is free"
        (relay,) = line_of(far.b).relays.values()
        relay.freeze()
        try:
            fill(mirror.source, unique, 1, 1, 20_000)
            attempt.wait_for(lambda: bool(attempt.life.run.in_flight), "a batch is on its way")
            attempt.wait_for(lambda: memory._out == 0, "nothing is held for what the socket has")
            for number in range(20):
                before = waiting_bytes(attempt, mirror.flow)
                fill(mirror.source, unique, 1, 1, 1_000 + number)
                attempt.wait_for(lambda last=before: waiting_bytes(attempt, mirror.flow) > last, "it is read")
            held = [len(item.chunk.buffer) for item in attempt.life.run.queue if item.chunk is not None]
            assert len(held) > 10, "they wait for the target"
            assert set(held) == {SMALL_BUFFER}
        finally:
            relay.thaw()
        wait_for_records(attempt, 32)
        attempt.stop()
    mirror.assert_identical(32)


def test_readers_with_nothing_to_read_do_not_wait_for_each_other(two_clusters: TwoClusters, unique: str) -> None:
    """Twelve readers and memory for the first reads of three: all ask at the same time once they know that little comes."""
    mirrors = [Mirror(two_clusters.a.bootstrap, two_clusters.b.bootstrap, f"{unique}{n}") for n in range(12)]
    for mirror in mirrors:
        mirror.make_topic()
        fill(mirror.source, mirror.topic, 1, 1, 1_000)
    with together(replace(QUICK, memory_bytes=7 << 19), *(mirror.open() for mirror in mirrors)) as attempt:
        wait_for_records(attempt, 12)
        readers = slot_of(attempt)._readers
        assert len(readers) == 12
        attempt.wait_for(lambda: all(reader._polled for reader in readers.values()), "all of them ask at once")
        attempt.stop()


def waiting_bytes(attempt: Attempt, flow: str) -> int:
    return sum(life.run.queued_bytes for life in attempt.lives if life.run.lane.id.flow == flow)


def together(settings: SlotSettings, *flows: Opened) -> Attempt:
    """One slot that carries several flows."""
    attempts = [Attempt(opened, settings) for opened in flows]
    plans = [attempt._plan for attempt in attempts]
    whole = SlotPlan(
        lanes=tuple(lane for plan in plans for lane in plan.lanes),
        until={},
        clusters={alias: cluster for plan in plans for alias, cluster in plan.clusters.items()},
        flows={name: rules for plan in plans for name, rules in plan.flows.items()},
        settings=settings,
    )
    attempts[0]._plan = whole
    return attempts[0]
