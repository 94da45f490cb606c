"""P2.3d where others write into the remote partition: what lies there is read once, however often a lane attaches (H4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from heliograph.errors import HeliographError
from heliograph.kafka import ranges, target_scan
from heliograph.wire.record_batch import read_header
from tests.integration.protocol.harness import (
    QUICK,
    SILENT,
    UNCLEAN,
    Attempt,
    Mirror,
    Opened,
    carry,
    elect_uncleanly,
)
from tests.integration.protocol.test_guard import FORGETFUL
from tests.support.batches import read_batches
from tests.support.clusters import ClusterFactory, TwoClusters
from tests.support.doors import AuthorizedCluster
from tests.support.mirror import word
from tests.support.reading import committed_values
from tests.support.topics import admin, ends
from tests.support.waiting import wait_until
from tests.support.writers import Sample, samples, write

MEGABYTE = 1 << 20
OTHERS = [Sample(b"%03d" % n * 3_000) for n in range(116)]
"""About a megabyte that an application writes."""


class Reads:
    """Counts the bytes of remote partitions that attaches fetch; may hold a fetch up once so many came."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        self.hold_at = 0
        self.is_held = False
        self._fetch = ranges.fetch_once
        for module in (ranges, target_scan):
            patch.setattr(module, "fetch_once", self._counted)

    async def _counted(self, client: Any, log: Any, offset: int, **how: Any) -> Any:
        buffer, fetched = await self._fetch(client, log, offset, **how)
        if not log.topic.startswith("__"):
            self.bytes += fetched.end - fetched.start
            if self.hold_at and self.bytes >= self.hold_at:
                self.is_held = True
                await asyncio.Event().wait()
        return buffer, fetched

    def take(self) -> float:
        """Megabytes since the last call."""
        read, self.bytes = self.bytes / MEGABYTE, 0
        return read


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with AuthorizedCluster("T", tmp_path_factory.mktemp("forgetful"), config=FORGETFUL) as target:
        yield target.bootstrap


def shared(two_clusters: TwoClusters, target: str) -> tuple[Mirror, Opened]:
    """A lane that copied ten records and was forgotten since; then others write forty megabytes."""
    own = Mirror(two_clusters.a.bootstrap, target, word())
    own.make_topic()
    write(own.source, own.topic, samples(10))
    opened = own.open()
    carry(opened)
    write_others(own, 40)
    wait_until_forgotten(own, opened)
    return own, opened


def wait_until_forgotten(own: Mirror, opened: Opened) -> None:
    wait_until(lambda: opened.entries[0].identity.producer_id not in own.producers(), "the target forgot the lane")


def write_others(own: Mirror, megabytes: int) -> None:
    for _ in range(megabytes):
        write(own.target, own.remote, OTHERS)


def test_what_others_wrote_is_read_once(two_clusters: TwoClusters, forgetful: str, reads: Reads) -> None:
    own, opened = shared(two_clusters, forgetful)
    here = {own.lane_key: 10}
    reads.take()
    carry(opened, here)
    first = reads.take()
    write_others(own, 3)
    carry(opened, here)
    second = reads.take()
    carry(opened, here)
    third = reads.take()
    assert first > 39
    assert second < 8, "only what came since"
    assert third < 3, "nothing came since: a batch or two to see that it is so"
    entry = own.book().latest(opened.entries[0].lane)
    assert entry is not None and entry.scanned is not None
    assert (entry.target_next, entry.scanned.to) == (10, ends(own.target, own.remote)[0]), "what is ours ends at 10"
    more = list(samples(5, seed=2))
    end = ends(own.target, own.remote)[0]
    write(own.source, own.topic, more)
    carry(opened, {own.lane_key: 15})
    assert committed_values(own.target, own.remote, end) == [sample.value for sample in more]
    # By the log: the target forgets within two seconds what it knows.
    last = read_header(read_batches(own.target, own.remote)[-1], 0)
    ours = opened.entries[0].identity.producer_id
    assert (last.producer_id, last.base_sequence + last.last_offset_delta) == (ours, 14)


def test_an_attach_that_is_interrupted_is_continued_by_the_next(
    two_clusters: TwoClusters, forgetful: str, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_scan, "_NOTE_SECONDS", 0.0)
    own, opened = shared(two_clusters, forgetful)
    reads.take()
    reads.hold_at = 25 * MEGABYTE
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_for(lambda: reads.is_held, "it reads what others wrote")
        attempt.stop()  # it does not wait for the attach
    reads.hold_at = 0
    reads.take()
    carry(opened, {own.lane_key: 10})
    assert reads.take() < 22, "it began where the killed one was"


def test_what_others_wrote_is_read_again_where_the_target_was_cut_back_since(
    new_cluster: ClusterFactory, two_clusters: TwoClusters, unique: str
) -> None:
    """Records of ours lie since then where others' were read before: who believes what was read copies them twice."""
    target = new_cluster("T", brokers=2, config={**UNCLEAN, **FORGETFUL})
    own = Mirror(two_clusters.a.bootstrap, target.bootstrap, unique)
    own.make_topic()
    client = admin(own.target)
    client.create_topics([NewTopic(own.remote, 1, replica_assignment=[[1, 2]], config={})])[own.remote].result(30)
    write(own.source, own.topic, samples(10))
    opened = own.open()
    carry(opened)
    target.kill(2)  # this follower has ten records of ours and nothing else
    others = [Sample(b"other")] * 30
    write(own.target, own.remote, others, acks=1)
    wait_until_forgotten(own, opened)
    wait_until(
        lambda: scanned_to(own, opened) is not None, "the ledger has moved to the broker that is left", every=0.5
    )
    carry(opened, {own.lane_key: 10})
    assert scanned_to(own, opened) == 40
    elect_uncleanly(target, lambda: end_of(own) == 10)
    more = list(samples(5, seed=2))
    write(own.source, own.topic, more)
    with Attempt(opened, SILENT) as attempt:
        attempt.wait_for_records(5)
        attempt.kill()
    write(own.target, own.remote, [*others, *others])
    wait_until_forgotten(own, opened)
    assert scanned_to(own, opened) == 40, "that is all the ledger knows"
    last = carry(opened, {own.lane_key: 15})
    assert (last.records, ends(own.target, own.remote)[0]) == (0, 75), "all five are there"
    assert committed_values(own.target, own.remote, 10)[:5] == [sample.value for sample in more]


def scanned_to(own: Mirror, opened: Opened) -> int | None:
    """How far the ledger says that others' records were read, 0: not at all; None while it cannot be read."""
    try:
        entry = own.book().latest(opened.entries[0].lane)
    except HeliographError:
        return None
    return 0 if entry is None or entry.scanned is None else entry.scanned.to


def end_of(own: Mirror) -> int | None:
    """None while no leader answers."""
    try:
        return ends(own.target, own.remote, within=3.0).get(0)
    except (TimeoutError, KafkaException):
        return None
