"""Limits on real brokers: bytes per second, changed while it runs; socket buffers; another codec for the copies."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from heliograph.kafka.client import ClusterClient
from heliograph.kafka.ranges import Log, read_range
from heliograph.operations.compare import compare_topics
from tests.integration.protocol.harness import BATCH_BY_BATCH, Attempt, Mirror, Opened, carry, with_client
from tests.support.clusters import TwoClusters
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import flow_file, word
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import Sample, samples, write, write_every_codec

RECORD = 1_000
FLOW_LIMIT, TOPIC_LIMIT = 300_000, 60_000
SECONDS = 8.0
SLOW_RECORDS = 8_000
"""For more than two minutes at its limit: when they are all there after one, it was lifted."""
ZSTD = 4


def test_a_limit_holds_for_the_flow_and_for_a_topic_and_is_lifted_by_saving_the_file(
    two_clusters: TwoClusters, tmp_path: Path
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    source, target, topic = word(), word(), word()
    slow = f"{topic}-slow"
    for name, partitions, records in ((topic, 4, 6_000), (slow, 1, SLOW_RECORDS)):
        create_topic(here, name, partitions=partitions)
        write(here, name, samples(records, size=RECORD, partitions=partitions), batch_size=20_000)
    flow = f"{source}->{target}"
    limited = {
        "slots": "2",
        "epoch.seconds": "5",
        "reload.interval.seconds": "1",
        f"{flow}.throttle.bytes.per.second": str(FLOW_LIMIT),
        f"{flow}.topic.{slow}.throttle.bytes.per.second": str(TOPIC_LIMIT),
        f"{target}.producer.send.buffer.bytes": "65536",
    }
    limited_no_more = {name: limited[name] for name in ("slots", "epoch.seconds", "reload.interval.seconds")}
    properties = tmp_path / "limits.properties"
    addresses, flows = {source: here, target: there}, {flow: f"{topic}(-slow)?"}
    flow_file(properties, addresses, flows, limited)

    def copied(name: str) -> int:
        return sum(ends(there, f"{source}.{name}").values()) * RECORD

    with HeliographRun(properties) as run:
        wait_until(lambda: copied(slow) > 0 and copied(topic) > 0, "it copies", every=0.1)
        began, all_then, slow_then = time.monotonic(), copied(topic) + copied(slow), copied(slow)
        time.sleep(SECONDS)
        # Wide bounds, because a new epoch begins with an empty account every 5 s; without a limit it would be over at once. A
        # machine that has other things to do may need longer for the least that must come.
        wait_until(lambda: copied(topic) + copied(slow) - all_then > 0.4 * FLOW_LIMIT * SECONDS, "enough comes", 24)
        wait_until(lambda: copied(slow) - slow_then > 0.3 * TOPIC_LIMIT * SECONDS, "enough comes of the slow one", 24)
        passed, all_now, slow_now = time.monotonic() - began, copied(topic) + copied(slow), copied(slow)
        assert (all_now - all_then) / passed < 2 * FLOW_LIMIT
        assert (slow_now - slow_then) / passed < 2.5 * TOPIC_LIMIT
        flow_file(properties, addresses, flows, limited_no_more)
        everything = (6_000 + SLOW_RECORDS) * RECORD
        wait_until(lambda: copied(topic) + copied(slow) == everything, "the rest comes at once", 60, every=0.1)
        assert run.terminate() == 0, run.output
    assert f"{flow}.throttle.bytes.per.second = 0, it was 300000" in run.output
    assert f"{flow}.topic.{slow}.throttle.bytes.per.second = not set, it was 60000" in run.output
    assert f"{flow}: send buffer bytes changed too, which counts from the next start" in run.output
    assert f"reading for {flow}: socket buffer of 4,194,304 bytes asked, " in run.output
    assert f"writing to {target}: socket buffer of 65,536 bytes asked, 65,536 bytes granted" in run.output
    comparison = compare_topics(here, there, {topic: f"{source}.{topic}", slow: f"{source}.{slow}"})
    assert (comparison.differences, comparison.records) == ([], 6_000 + SLOW_RECORDS)


@pytest.fixture
def mirror(two_clusters: TwoClusters, unique: str) -> Mirror:
    return Mirror(two_clusters.a.bootstrap, two_clusters.b.bootstrap, unique)


def recompressing(opened: Opened, codec: str) -> Opened:
    """What `recompress = true` and the target's `producer.compression.type` make of a plan."""
    return replace(opened, plan=replace(opened.plan, settings=replace(opened.plan.settings, codec=codec)))


def codecs(mirror: Mirror) -> set[int]:
    """Of the remote partition's batches."""

    async def read(client: ClusterClient) -> set[int]:
        view = (await client.metadata([mirror.remote]))[mirror.remote]
        end = ends(mirror.target, mirror.remote)[0]
        log = Log(mirror.remote, view.topic_id, 0, view.leaders[0].node)
        return {seen.header.codec async for seen in read_range(client, log, 0, end, committed=False)}

    return with_client(mirror.target, read)


def test_recompressed_copies_have_one_codec_and_every_record_once_also_after_a_kill(mirror: Mirror) -> None:
    mirror.make_topic()
    write_every_codec(mirror.source, mirror.topic, 400)
    opened = recompressing(mirror.open(), "zstd")
    with Attempt(opened, BATCH_BY_BATCH) as attempt:
        attempt.wait_for_records(700)
        attempt.kill()
    write(mirror.source, mirror.topic, [Sample(b"x" * 50_000, b"%d" % place) for place in range(20)], "gzip")
    carry(opened, {mirror.lane_key: 2_020})
    mirror.assert_identical(2_020)
    assert codecs(mirror) == {ZSTD}


def test_without_recompress_batches_keep_their_codecs(mirror: Mirror) -> None:
    mirror.make_topic()
    write_every_codec(mirror.source, mirror.topic, 400)
    carry(mirror.open())
    mirror.assert_identical(2_000)
    assert codecs(mirror) == {0, 1, 2, 3, 4}
