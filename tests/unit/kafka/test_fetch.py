"""The memory of a slot, and what a source's refusal means."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pytest

from heliograph.kafka.client import ClusterClient
from heliograph.kafka.cutting import Cutter
from heliograph.kafka.fetch import SourceReader, source_failure
from heliograph.kafka.memory import Memory, ReadLimits
from heliograph.kafka.outgoing import Chunk
from heliograph.wire.fetch_codec import FetchedPartition
from tests.unit.kafka.lanes import entry, following
from tests.unit.wire.batches import Rec, write_batch
from tests.unit.wire.test_fetch_codec import Topic, partition, response

KIB = 1 << 10
MIB = 1 << 20


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def fits(loop: asyncio.Runner, memory: Memory, size: int) -> bool:
    """Whether a read of this size may begin now."""

    async def ask() -> bool:
        waiting = asyncio.ensure_future(memory.room(size))
        await asyncio.sleep(0)
        if waiting.done():
            waiting.result()
            return True
        waiting.cancel()
        return False

    return loop.run(ask())


# -- memory -------------------------------------------------------------------------------------------------------------


def test_reads_begin_until_the_limit_and_wait_beyond_it(loop: asyncio.Runner) -> None:
    memory = Memory(4 * MIB)
    chunks: list[Chunk] = []
    while fits(loop, memory, MIB):
        chunks.append(memory.take(MIB))
    assert len(chunks) == 4
    chunks.pop().release()
    assert fits(loop, memory, MIB)
    assert not fits(loop, memory, MIB + 1)


def test_one_read_over_the_limit_always_fits_when_nothing_is_out(loop: asyncio.Runner) -> None:
    memory = Memory(MIB)
    assert fits(loop, memory, 10 * MIB)
    big = memory.take(10 * MIB)
    assert not fits(loop, memory, 1)
    big.release()
    assert fits(loop, memory, 10 * MIB)


@pytest.mark.parametrize(
    ("readers", "wanted", "share"),
    [
        (1, 8 * MIB, 8 * MIB),
        (1, 3 * MIB, 3 * MIB),
        (1, 100 * MIB, 32 * MIB),
        (4, 8 * MIB, 8 * MIB),
        (5, 8 * MIB, 64 * MIB // 10),
        (16, 8 * MIB, 2 * MIB),
        (1000, 8 * MIB, MIB),
        (1, 10, MIB),
    ],
)
def test_all_readers_reads_together_fit_into_half_the_memory(readers: int, wanted: int, share: int) -> None:
    memory = Memory(64 * MIB)
    memory.readers = readers
    assert memory.share(wanted) == share


def test_room_is_there_when_every_reader_may_be_answered_at_once(loop: asyncio.Runner) -> None:
    memory = Memory(8 * MIB)
    memory.readers = 3
    chunks = [memory.take(MIB), memory.take(MIB)]
    assert fits(loop, memory, 2 * MIB)
    assert not fits(loop, memory, 2 * MIB + 1)
    chunks.append(memory.take(MIB))
    assert not fits(loop, memory, 2 * MIB)
    chunks.pop().release()
    assert fits(loop, memory, 2 * MIB)


def test_with_nothing_out_a_read_begins_however_many_readers_there_are(loop: asyncio.Runner) -> None:
    memory = Memory(4 * MIB)
    memory.readers = 100
    assert fits(loop, memory, MIB)


@pytest.mark.parametrize("readers", [1, 2, 5, 16])
def test_readers_who_all_ask_for_room_before_any_is_answered_stay_within_the_limit(
    loop: asyncio.Runner, readers: int
) -> None:
    """Every reader asks, then every answer comes: the buffers are taken after the asking, not with it."""
    memory = Memory(64 * MIB)
    memory.readers = readers
    size = memory.share(8 * MIB)
    out: list[Chunk] = []
    for _ in range(10):
        granted = sum(fits(loop, memory, size) for _ in range(readers))
        out += [memory.take(size) for _ in range(granted)]
    assert out
    assert memory.peak <= 64 * MIB


def test_who_waits_for_room_is_woken_by_a_buffer_that_comes_back() -> None:
    async def story() -> None:
        memory = Memory(MIB)
        chunk = memory.take(MIB)
        waiting = asyncio.create_task(memory.room(MIB))
        await asyncio.sleep(0)
        assert not waiting.done()
        chunk.release()
        await asyncio.wait_for(waiting, 1)

    asyncio.run(story())


def test_a_buffer_that_comes_back_is_used_again() -> None:
    memory = Memory(4 * MIB)
    first = memory.take(MIB)
    buffer = first.buffer
    first.release()
    second = memory.take(MIB // 2)
    assert second.buffer is buffer
    assert second.size == MIB // 2
    third = memory.take(MIB // 2)
    assert third.buffer is not buffer


def test_a_buffer_that_is_too_small_is_left_for_another() -> None:
    memory = Memory(4 * MIB)
    first = memory.take(100 * KIB)
    small = first.buffer
    first.release()
    assert memory.take(MIB).buffer is not small
    assert memory.take(KIB).buffer is small


def test_an_oversize_buffer_is_not_kept() -> None:
    memory = Memory(MIB)
    memory.take(10 * MIB).release()
    assert len(memory.take(MIB).buffer) == MIB


def test_small_reads_share_a_least_size() -> None:
    assert len(Memory(MIB).take(10).buffer) == 64 * KIB


def test_the_peak_is_the_most_that_was_out_at_once() -> None:
    memory = Memory(8 * MIB)
    one, two = memory.take(2 * MIB), memory.take(3 * MIB)
    one.release()
    two.release()
    memory.take(MIB)
    assert memory.peak == 5 * MIB


def test_what_is_out_and_what_is_kept_stay_within_the_limit_together(loop: asyncio.Runner) -> None:
    """Else a slot that was busy with small reads holds twice its memory once large ones come."""
    memory = Memory(4 * MIB)
    small = [memory.take(64 * KIB) for _ in range(64)]
    for chunk in small:
        chunk.release()
    large = []
    while fits(loop, memory, MIB):
        large.append(memory.take(MIB))
    kept = sum(len(buffer) for buffer in memory._free)
    assert sum(len(chunk.buffer) for chunk in large) + kept <= 4 * MIB


# -- refusals -----------------------------------------------------------------------------------------------------------

PART = FetchedPartition("orders", 3, 0, 500, 500, 0, -1, -1, -1, -1, -1, [], 0, 0)


@pytest.mark.parametrize(
    ("error_code", "finding", "code"),
    [
        (1, "source_range", 1),
        (3, "source", None),
        (5, "source", None),
        (6, "source", None),
        (9, "source", None),
        (74, "source", None),
        (75, "source", None),
        (78, "source", None),
        (100, "source_replaced", 100),
        (103, "source_replaced", 103),
        (29, "source_refused", 29),
        (56, "source_refused", 56),
        (-1, "source_refused", -1),
    ],
)
def test_a_refusal_of_the_source_has_its_finding(error_code: int, finding: str, code: int | None) -> None:
    failure = source_failure(following(), replace(PART, error_code=error_code))
    assert (failure.finding, failure.code) == (finding, code)
    assert "orders-3" in failure.message


def test_a_source_that_lost_copied_records_says_where_it_ends() -> None:
    failure = source_failure(following(), replace(PART, diverging_epoch=5, diverging_end=70))
    assert (failure.finding, failure.offset, failure.epoch) == ("source_cut", 70, 5)
    assert "at 70, the copy is at 100" in failure.message


def test_a_divergence_counts_more_than_a_code() -> None:
    failure = source_failure(following(), replace(PART, error_code=6, diverging_epoch=5, diverging_end=70))
    assert failure.finding == "source_cut"


# -- answers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("now_at", "taken"), [(100, 1), (90, 0), (110, 0)])
def test_an_answer_is_taken_only_by_a_lane_that_is_still_where_it_was_asked_for(now_at: int, taken: int) -> None:
    """A lane that attached again while the poll was on its way has gone back: 90 to 99 would be passed over in silence."""
    run = following(entry(source_next=100))

    async def hand_out() -> None:
        memory = Memory(MIB)
        reader = SourceReader(cast(ClusterClient, None), 1, Cutter(True, 0), memory, ReadLimits(), lambda: None)
        reader._lanes[("orders", 3)] = run
        reader._polled = {run: 100}
        run.fetch_offset = now_at
        batch = bytes(write_batch([Rec(100), Rec(101)]))
        answer = response(12, [Topic(topic="orders", partitions=[partition(3, batch)])])
        chunk = memory.take(len(answer))
        chunk.buffer[: len(answer)] = answer
        await reader._hand_out(12, chunk)

    asyncio.run(hand_out())
    assert len(run.queue) == taken
    assert run.fetch_offset == (102 if taken else now_at)


def test_a_read_is_measured_and_what_is_new_at_the_end_of_a_source_is_no_older_than_the_question() -> None:
    run = following(entry(source_next=100))
    run.source_end = 100  # nothing was there when the last answer came
    batch = bytes(write_batch([Rec(100, 1_000), Rec(101, 1_000)]))
    size = len(batch)

    async def hand_out() -> SourceReader:
        memory = Memory(MIB)
        reader = SourceReader(cast(ClusterClient, None), 1, Cutter(True, 0), memory, ReadLimits(), lambda: None)
        reader._lanes[("orders", 3)] = run
        reader._polled = {run: 100}
        reader._asked_ms = 1_600_000_000_000
        answer = response(12, [Topic(topic="orders", partitions=[partition(3, batch)])])
        chunk = memory.take(len(answer))
        chunk.buffer[: len(answer)] = answer
        await reader._hand_out(12, chunk)
        told = reader.meter.take()
        assert (told["fetches"], told["fetched_bytes"], told["wan_bytes"]) == (1, size, len(answer))
        return reader

    asyncio.run(hand_out())
    assert run.waiting_since() == 1_600_000_000_000
    assert run.times.age.count == 1
