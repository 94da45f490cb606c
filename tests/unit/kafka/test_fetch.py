"""The memory of a slot, and what a source's refusal means."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from heliograph.kafka import fetch
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.connections import Connection
from heliograph.kafka.cutting import Cutter
from heliograph.kafka.fetch import SourceReader
from heliograph.kafka.lane import Failure, LaneRun
from heliograph.kafka.leaders import Leader, TopicView, Views
from heliograph.kafka.memory import Fairness, Memory, ReadLimits
from heliograph.kafka.outgoing import Chunk
from heliograph.kafka.source_faults import Unreadable, batch_bytes, source_failure
from heliograph.wire.fetch_codec import FetchedPartition
from tests.unit.kafka.lanes import NOW, entry, following, push
from tests.unit.wire.batches import Rec, write_batch
from tests.unit.wire.test_fetch_codec import Topic, partition, response

KIB = 1 << 10
MIB = 1 << 20


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def fits(loop: asyncio.Runner, memory: Memory, size: int) -> int:
    """How many bytes a reader that wants so many may ask for now; 0: it waits."""

    async def ask() -> int:
        waiting = asyncio.ensure_future(memory.room(size))
        await asyncio.sleep(0)
        if waiting.done():
            return waiting.result()
        waiting.cancel()
        return 0

    return loop.run(ask())


# -- memory -------------------------------------------------------------------------------------------------------------


def read(loop: asyncio.Runner, memory: Memory, size: int) -> Chunk | None:
    """Ask, and be answered with as much."""
    share = fits(loop, memory, size)
    if not share:
        return None
    memory.answered(share)
    return memory.take(share)


def test_reads_begin_until_the_limit_and_wait_beyond_it(loop: asyncio.Runner) -> None:
    memory = Memory(4 * MIB)
    chunks: list[Chunk] = []
    while (chunk := read(loop, memory, MIB)) is not None:
        chunks.append(chunk)
    assert len(chunks) == 4
    chunks.pop().release()
    assert fits(loop, memory, MIB) == MIB


def test_one_read_over_the_limit_always_fits_when_nothing_is_out(loop: asyncio.Runner) -> None:
    memory = Memory(MIB)
    big = memory.take(10 * MIB)
    assert not fits(loop, memory, 1)
    big.release()
    assert fits(loop, memory, 10 * MIB)


def test_what_was_asked_for_counts_until_it_is_answered(loop: asyncio.Runner) -> None:
    memory = Memory(16 * MIB)
    shares = [fits(loop, memory, 4 * MIB) for _ in range(20)]
    assert sum(shares) <= 16 * MIB
    assert shares[-1] == 0
    assert shares[0] == 4 * MIB
    memory.answered(shares[0])
    assert fits(loop, memory, 4 * MIB)


@pytest.mark.parametrize("readers", [64, 100, 200])
def test_readers_that_only_wait_keep_none_from_reading(loop: asyncio.Runner, readers: int) -> None:
    """Long polls of a quarter of a megabyte each, and a reader with a backlog beside them."""
    memory = Memory(64 * MIB)
    for _ in range(readers):
        assert fits(loop, memory, 256 * KIB)
    out = memory.take(100)
    assert fits(loop, memory, 8 * MIB) >= MIB
    out.release()


def test_many_readers_with_a_backlog_have_a_share_each(loop: asyncio.Runner) -> None:
    memory = Memory(64 * MIB)
    shares = [fits(loop, memory, 8 * MIB) for _ in range(12)]
    assert shares[0] == 8 * MIB
    assert all(shares)
    assert sum(shares) <= 64 * MIB


def test_where_nothing_comes_back_the_rest_is_used_in_smaller_reads(loop: asyncio.Runner) -> None:
    memory = Memory(8 * MIB)
    stuck = memory.take(7 * MIB)
    asked: list[str] = []
    memory.make_room = lambda: asked.append("room")

    async def wait() -> int:
        async with asyncio.timeout(20):
            return await memory.room(4 * MIB)

    assert loop.run(wait()) == MIB // 2
    assert asked
    stuck.release()


def test_who_waits_for_room_is_woken_by_a_buffer_that_comes_back() -> None:
    async def story() -> None:
        memory = Memory(MIB)
        chunk = memory.take(MIB)
        waiting = asyncio.create_task(memory.room(MIB))
        await asyncio.sleep(0)
        assert not waiting.done()
        chunk.release()
        assert await asyncio.wait_for(waiting, 20) == MIB

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


def test_large_answers_share_buffers_while_there_is_memory() -> None:
    """Fresh pages cost more than the copy: answers of a steady read are of many sizes."""
    memory = Memory(64 * MIB)
    memory.take(8 * MIB).release()
    for size in (MIB, 3 * MIB, 7 * MIB):
        chunk = memory.take(size)
        assert len(chunk.buffer) == 8 * MIB
        chunk.release()
    memory.take(25 * MIB)
    assert len(memory.take(MIB).buffer) == MIB, "half would be out"


def test_a_small_answer_does_not_take_a_large_buffer() -> None:
    """Six answers of 10 KB counted as 48 MB, and every reader of the slot waited."""
    memory = Memory(64 * MIB)
    large = [memory.take(8 * MIB) for _ in range(6)]
    for chunk in large:
        chunk.release()
    small = [memory.take(10 * KIB) for _ in range(6)]
    assert sum(len(chunk.buffer) for chunk in small) <= MIB
    assert memory.left >= 63 * MIB


def test_a_buffer_is_at_most_an_eighth_larger_than_what_it_holds() -> None:
    memory = Memory(1 << 30)
    for size in (1, 64 * KIB, 65 * KIB, MIB - 1, MIB, MIB + 1, 8 * MIB + 12_345, 60 * MIB + 1):
        assert size <= len(memory.take(size).buffer) <= max(128 * KIB, size * 9 // 8 + 1)


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
    while (chunk := read(loop, memory, MIB)) is not None:
        large.append(chunk)
    kept = sum(len(buffer) for buffer in memory._free)
    assert sum(len(chunk.buffer) for chunk in large) + kept <= 4 * MIB


# -- what is stuck ------------------------------------------------------------------------------------------------------


def waiting_in(run: LaneRun, chunk: Chunk, at: int, data: bytes) -> None:
    """A batch of the lane that lies in the chunk."""
    chunk.buffer[at : at + len(data)] = data
    push(run, data=memoryview(chunk.buffer)[at : at + len(data)], size=len(data), chunk=chunk)


def test_a_batch_that_is_stuck_in_a_large_buffer_is_copied_out_of_it() -> None:
    memory, run = Memory(64 * MIB), following()
    for place in range(3):
        chunk = memory.take(8 * MIB)
        waiting_in(run, chunk, 1000, b"batch %d" % place)
        chunk.since -= 60
        chunk.release()
    memory.squeeze([run])
    assert memory.left >= 63 * MIB
    assert [bytes(item.data) for item in run.queue] == [b"batch 0", b"batch 1", b"batch 2"]
    run.fail(Failure(None, "gone"))
    assert memory.left == 64 * MIB


def test_buffers_that_are_young_well_used_or_in_use_are_left_alone() -> None:
    memory, run = Memory(64 * MIB), following()
    young, full, sent = memory.take(MIB), memory.take(MIB), memory.take(MIB)
    waiting_in(run, young, 0, b"young")
    waiting_in(run, full, 0, bytes(MIB // 2))
    waiting_in(run, sent, 0, b"queued")
    for chunk in (full, sent):
        chunk.since -= 60
    young.release()
    full.release()  # `sent` is held by a request that the socket has not taken yet
    chunks = [item.chunk for item in run.queue]
    memory.squeeze([run])
    assert [item.chunk for item in run.queue] == chunks


def boxed(size: int) -> dict[LaneRun, None]:
    """An outbox with one lane that has so many bytes for it."""
    run = following()
    push(run, size=size)
    return {run: None}


@pytest.mark.parametrize(
    ("taken", "waiting", "stopped"),
    [
        (1, [MIB, 0], []),
        (5, [5 * MIB, 0], [0]),
        (5, [2 * MIB, 3 * MIB], []),
        (6, [1 * MIB, 5 * MIB], [1]),
        (7, [7 * MIB], []),
    ],
)
def test_a_target_with_more_waiting_than_is_left_is_not_read_for_where_others_are(
    taken: int, waiting: list[int], stopped: list[int]
) -> None:
    memory = Memory(8 * MIB)
    memory.take(taken * MIB)
    boxes = [boxed(size) for size in waiting]
    assert Fairness(memory, lambda: boxes).overfull() == {id(boxes[place]) for place in stopped}


def test_what_a_socket_has_taken_does_not_count_as_waiting() -> None:
    memory = Memory(8 * MIB)
    memory.take(6 * MIB)
    box = boxed(5 * MIB)
    (run,) = box
    run.take(NOW)
    assert Fairness(memory, lambda: [box, {}]).overfull() == set()


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
        (56, "source", 56),
        (2, "source", 2),
        (-1, "source", -1),
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


def test_a_reader_that_is_sent_to_a_follower_stays_with_the_leader_and_says_so() -> None:
    """The partition gave nothing, for ever, and the lane was `following`."""
    failure = source_failure(following(), replace(PART, preferred_replica=2))
    assert (failure.finding, failure.code) == ("source_refused", 0)
    assert "orders-3 to broker 2" in failure.message
    assert "replica.selector.class" in failure.message


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


# -- bytes without a batch ----------------------------------------------------------------------------------------------


def without_a_batch(times: int, head: bytes, run: LaneRun) -> Unreadable:
    unreadable = Unreadable()
    for _ in range(times):
        unreadable.nothing_whole(run, replace(PART, end=len(head)), bytearray(head))
    return unreadable


def cut_short(length: int) -> bytes:
    """The first bytes of a batch that says it is so long."""
    return struct.pack(">qi", 100, length - 12) + bytes(50)


def test_a_batch_that_is_cut_off_once_or_twice_is_nothing() -> None:
    run = following()
    assert without_a_batch(2, cut_short(5000), run).next_alone() is None
    assert run.failure is None


def test_a_batch_that_is_never_whole_is_asked_for_alone_with_its_size_and_then_parks() -> None:
    run = following()
    unreadable = without_a_batch(3, cut_short(5000), run)
    assert unreadable.next_alone() == (run, 5000)
    assert unreadable.bytes_alone({run: 1.0}) == 5000
    assert run.failure is None
    unreadable.nothing_whole(run, replace(PART, end=62), bytearray(cut_short(5000)))
    assert run.failure is not None
    assert (run.failure.finding, run.failure.code) == ("corrupt", 2)
    assert "orders-3 at 100: 62 bytes came and no whole batch" in run.failure.message
    assert not unreadable
    assert unreadable.bytes_alone({run: 1.0}) == 0


@pytest.mark.parametrize("length", [0, -5, 40, 2_000_000_000])
def test_a_length_that_cannot_be_one_fails_the_lane(length: int) -> None:
    run = following()
    without_a_batch(3, cut_short(length), run)
    assert run.failure is not None
    assert run.failure.finding == "corrupt"


def test_a_lane_that_got_further_begins_again() -> None:
    run = following()
    unreadable = without_a_batch(2, cut_short(5000), run)
    run.fetch_offset += 1
    unreadable.nothing_whole(run, replace(PART, end=62), bytearray(cut_short(5000)))
    assert unreadable.next_alone() is None
    unreadable.forget(run)
    assert not unreadable


def test_a_few_bytes_say_nothing_of_their_batch() -> None:
    assert batch_bytes(bytes(5), 0, 5) == 4 * MIB


def handed(run: LaneRun, times: int, records: bytes, **changes: int) -> SourceReader:
    """A reader that is given the same answer again and again, as long as its lane asks."""

    async def hand_out() -> SourceReader:
        memory = Memory(MIB)
        reader = SourceReader(cast(ClusterClient, None), 1, Cutter(True, 0), memory, ReadLimits(), lambda: None)
        reader._lanes[("orders", 3)] = run
        answer = response(12, [Topic(topic="orders", partitions=[partition(3, records, **changes)])])
        for _ in range(times):
            reader._polled = {run: run.fetch_offset}
            chunk = memory.take(len(answer))
            chunk.buffer[: len(answer)] = answer
            await reader._hand_out(12, chunk)
        return reader

    return asyncio.run(hand_out())


def test_a_reader_notices_an_answer_without_a_whole_batch_and_gives_the_lane_up() -> None:
    """L3: it asked again at full speed, and the lane was `following` without a reason."""
    run = following()
    assert handed(run, 3, cut_short(5000))._unreadable.next_alone() == (run, 5000)
    assert run.failure is None
    handed(run, 4, cut_short(5000))
    assert run.failure is not None and run.failure.finding == "corrupt"


def test_a_reader_notices_that_it_is_sent_to_a_follower() -> None:
    """L13: nothing ever came, and the lane was `following`."""
    run = following()
    handed(run, 1, b"", preferred_read_replica=2)
    assert run.failure is not None and "replica.selector.class" in run.failure.message


# -- who leads by now ---------------------------------------------------------------------------------------------------


class Opinions:
    """Of a cluster client, what a reader uses to hear who leads."""

    def __init__(self, *epochs: int) -> None:
        self._epochs = list(epochs)
        self.doubts = 0

    def doubt(self) -> None:
        self.doubts += 1

    async def metadata(self, _: object) -> Views:
        return {"orders": TopicView("id", {3: Leader(2, self._epochs.pop(0))})}


def test_another_broker_is_asked_now_and_then_who_leads_although_this_one_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """M9: a broker that lost its controller answers for ever, and has nothing new."""
    now = 1000.0
    monkeypatch.setattr(fetch.time, "monotonic", lambda: now)
    run, client = following(), Opinions(9, 10)
    reasons: list[str] = []

    async def story() -> None:
        nonlocal now
        reader = SourceReader(cast(ClusterClient, client), 1, Cutter(True, 0), Memory(MIB), ReadLimits(), lambda: None)
        reader._connection = cast(Connection, SimpleNamespace(closed=False, close=reasons.append))
        now += fetch.LOOK_ELSEWHERE_SECONDS
        assert not reader.must_look_elsewhere, "it has no lane"
        reader._lanes[("orders", 3)] = run
        for _ in range(2):
            assert reader.must_look_elsewhere
            await reader.look_elsewhere()
            assert not reader.must_look_elsewhere
            now += fetch.LOOK_ELSEWHERE_SECONDS

    asyncio.run(story())
    assert client.doubts == 2
    assert reasons == ["broker 2 leads orders now"], "the first one named the leader that the lane has"
