"""The CRC promise: damage between fetch and produce is refused by the target, and what is opened is verified first.

A slot is driven without Spark, so that a test can reach between its reader and its writer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.claims import open_generations, transactional_id
from heliograph.kafka.client import EARLIEST, LATEST
from heliograph.kafka.outgoing import Outgoing
from heliograph.kafka.slot import FlowRules, Slot, SlotPlan, SlotSettings, Warm, now_ms
from heliograph.model.clusters import Cluster
from heliograph.model.lanes import Lane, LaneCounts, LaneId, LedgerEntry, Rule
from heliograph.operations.compare import compare_topics
from tests.support.clusters import TwoClusters
from tests.support.topics import create_topic
from tests.support.writers import samples, write_dense, write_single_record_batches

DAY_MS = 86_400_000


@dataclass(frozen=True)
class Carried:
    """What one slot did."""

    counts: LaneCounts
    notes: list[str]
    state: str


@dataclass(frozen=True)
class OneLane:
    """A lane of one partition from A to B under a flow of its own."""

    clusters: TwoClusters
    topic: str

    @property
    def remote(self) -> str:
        return f"A.{self.topic}"

    def carry(self, damage: Any) -> Carried:
        """Copy everything; `damage(slot)` is called before it begins."""
        create_topic(self.clusters.b.bootstrap, self.remote)
        admin = ClusterAdmin(self._b)
        try:
            admin.ensure_internal_topics(1)
        finally:
            admin.close()
        return asyncio.run(self._carry(damage))

    @property
    def _a(self) -> Cluster:
        return Cluster("A", (self.clusters.a.bootstrap,))

    @property
    def _b(self) -> Cluster:
        return Cluster("B", (self.clusters.b.bootstrap,))

    async def _carry(self, damage: Any) -> Carried:
        warm = Warm()
        try:
            slot = Slot(await self._plan(warm), warm, "test")
            damage(slot)
            slot.go(list(slot.lives), True, {})
            async with asyncio.timeout(60):
                await slot.run()
            life = next(iter(slot.lives.values()))
            return Carried(life.run.counts, [str(event) for event in life.take_events()], str(life.run.state))
        finally:
            warm.close()

    async def _plan(self, warm: Warm) -> SlotPlan:
        flow, name = f"{self.topic}->B", (self.topic, 0)
        source, target = warm.client(self._a), warm.client(self._b)
        here = (await source.metadata([self.topic]))[self.topic]
        there = (await target.metadata([self.remote]))[self.remote]
        node = here.leaders[0].node
        start = (await source.offsets(node, [name], EARLIEST))[name]
        end = (await source.offsets(node, [name], LATEST, True))[name]
        lane = Lane(LaneId(flow, self.topic, 0), "A", "B", self.remote, here.topic_id, there.topic_id)
        identity = await target.new_identity(transactional_id(flow))
        ids = (target.cluster_id, lane.source_topic_id, lane.target_topic_id)
        entry = LedgerEntry(lane.id, 0, identity, Rule(), *ids, start, 0, start, -1, 0, 0)
        await open_generations(warm.ledger(self._b), [entry], now_ms())
        rules = FlowRules(flow, "A", "B", True, DAY_MS)
        return SlotPlan((lane,), {lane.id.key: end}, {"A": self._a, "B": self._b}, {flow: rules}, SlotSettings())

    def assert_identical(self, records: int) -> None:
        here, there = self.clusters.a.bootstrap, self.clusters.b.bootstrap
        comparison = compare_topics(here, there, {self.topic: self.remote})
        assert comparison.differences == []
        assert comparison.records == records


def flip_one_bit_of_outgoing_batch(number: int, at: int) -> Any:
    """A bit of the body of the lane's n-th batch flips after it was restamped, before it is sent, once."""

    def damage(slot: Slot) -> None:
        run = next(iter(slot.lives.values())).run
        push, pushed = run.push, [0]

        def flip(item: Outgoing) -> None:
            pushed[0] += 1
            if pushed[0] == number:
                data = memoryview(item.data)
                data[at] ^= 0x10
            push(item)

        run.push = flip  # type: ignore[method-assign]

    return damage


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_bit_that_flips_in_the_mirror_is_refused_by_the_target_and_fetched_again(
    two_clusters: TwoClusters, unique: str, codec: str
) -> None:
    lane = OneLane(two_clusters, unique)
    create_topic(two_clusters.a.bootstrap, unique)
    written = write_dense(two_clusters.a.bootstrap, unique, samples(3_000, size=1_000), codec)
    carried = lane.carry(flip_one_bit_of_outgoing_batch(3, 777))
    assert carried.counts.refused == 1
    assert carried.counts.rebuilt_batches == 0
    assert carried.counts.records == written
    assert carried.state == "done"
    assert any("fetching the batch again" in note for note in carried.notes), carried.notes
    lane.assert_identical(written)


def test_the_first_batch_of_all_may_be_the_damaged_one(two_clusters: TwoClusters, unique: str) -> None:
    lane = OneLane(two_clusters, unique)
    create_topic(two_clusters.a.bootstrap, unique)
    written = write_dense(two_clusters.a.bootstrap, unique, samples(1_000, size=1_000), "lz4")
    carried = lane.carry(flip_one_bit_of_outgoing_batch(1, 500))
    assert carried.counts.refused == 1
    lane.assert_identical(written)


def test_a_batch_is_verified_before_it_is_opened_and_fetched_again_when_it_is_damaged(
    two_clusters: TwoClusters, unique: str
) -> None:
    """The record path gives its batches a checksum of their own: damage before it would go unnoticed for ever."""
    lane = OneLane(two_clusters, unique)
    create_topic(two_clusters.a.bootstrap, unique)
    written = write_single_record_batches(two_clusters.a.bootstrap, unique, 500)
    flipped = []

    def damage(slot: Slot) -> None:
        hand_out = slot.reader

        def reader(rules: FlowRules, node: int) -> Any:
            made = hand_out(rules, node)
            take = made._take

            def damaged(run: Any, part: Any, chunk: Any) -> None:
                if not flipped and part.end - part.start > 300:
                    flipped.append(chunk.buffer[part.end - 8])
                    chunk.buffer[part.end - 8] ^= 0x01
                take(run, part, chunk)

            if not hasattr(made, "_damaged"):
                made._damaged = True
                made._take = damaged
            return made

        slot.reader = reader  # type: ignore[method-assign]

    carried = lane.carry(damage)
    assert len(flipped) == 1
    assert carried.counts.refused == 0
    assert carried.counts.records == written
    assert any("CRC" in note and "fetching it again" in note for note in carried.notes), carried.notes
    lane.assert_identical(written)
