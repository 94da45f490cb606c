"""Lanes, attach results and answers for the tests of the carrying parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from heliograph.kafka.lane import LaneRun, Start
from heliograph.kafka.outgoing import Chunk, Outgoing
from heliograph.model.lanes import Identity, Lane, LaneId, LedgerEntry, Rule
from heliograph.wire.produce_codec import ProducedPartition

NOW = 1_700_000_000_000
DAY_MS = 86_400_000
OLD = NOW - 3 * DAY_MS
SOURCE_ID = "11111111-1111-1111-1111-111111111111"
TARGET_ID = "22222222-2222-2222-2222-222222222222"
IDENTITY = Identity(4711, 2)


def lane(**changes: Any) -> Lane:
    return replace(
        Lane(LaneId("A->B", "orders", 3), "A", "B", "A.orders", SOURCE_ID, TARGET_ID),
        **changes,
    )


def entry(source_next: int = 100, target_next: int = 40, sequence_next: int = 40) -> LedgerEntry:
    return LedgerEntry(
        lane=LaneId("A->B", "orders", 3),
        generation=0,
        identity=IDENTITY,
        rule=Rule(),
        target_cluster_id="b",
        source_topic_id=SOURCE_ID,
        target_topic_id=TARGET_ID,
        source_start=60,
        target_start=0,
        source_next=source_next,
        source_epoch=4,
        target_next=target_next,
        sequence_next=sequence_next,
    )


def start(known: LedgerEntry, **changes: Any) -> Start:
    return replace(
        Start(
            entry=known,
            source_next=known.source_next,
            source_epoch=known.source_epoch,
            sequence=known.sequence_next,
            target_next=known.target_next,
            source_node=1,
            source_leader_epoch=9,
            target_node=2,
            guarded=True,
        ),
        **changes,
    )


def following(
    known: LedgerEntry | None = None,
    *,
    window: int = 5,
    until: int | None = None,
    on: Lane | None = None,
    **changes: Any,
) -> LaneRun:
    """A lane right after attach."""
    run = LaneRun(on or lane(), window, DAY_MS, until)
    run.begin(start(known or entry(), **changes), NOW)
    return run


class Pool:
    """Gives out chunks and counts those that came back."""

    def __init__(self) -> None:
        self.out = 0

    def chunk(self, data: bytes | bytearray = b"") -> Chunk:
        self.out += 1
        return Chunk(bytearray(data), len(data), self._back)

    def _back(self, _: Chunk) -> None:
        self.out -= 1


def batch(run: LaneRun, count: int = 10, **changes: Any) -> Outgoing:
    """The next batch of a lane, as the cutter would push it: `count` dense records from the reading position."""
    item = Outgoing(
        data=b"x" * 100,
        count=count,
        sequence=run.sequence,
        source_first=run.fetch_offset,
        source_last=run.fetch_offset + count - 1,
        source_next=run.fetch_offset + count,
        source_epoch=5,
        max_timestamp=NOW,
        size=100,
    )
    return replace(item, **changes)


def push(run: LaneRun, count: int = 10, **changes: Any) -> Outgoing:
    item = batch(run, count, **changes)
    run.push(item)
    run.fetch_offset, run.fetch_epoch = item.source_next, item.source_epoch
    return item


def answer(base_offset: int, error_code: int = 0) -> ProducedPartition:
    return ProducedPartition("A.orders", 3, error_code, base_offset, -1, 0, "", -1, -1)


def send_all(run: LaneRun, now_ms: int = NOW) -> int:
    """Take as much as the lane lets go; how many batches that was."""
    taken = 0
    while run.can_send(now_ms):
        run.take(now_ms)
        taken += 1
    return taken
