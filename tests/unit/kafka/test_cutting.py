"""Which batch is forwarded, which is rebuilt, which is dropped, and why; with real batches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from heliograph.kafka.cutting import Cutter
from heliograph.kafka.lane import LaneRun
from heliograph.kafka.outgoing import Outgoing
from heliograph.model.lanes import Lane
from heliograph.wire import records as opening
from heliograph.wire.fetch_codec import FetchedPartition
from heliograph.wire.record_batch import read_header
from tests.unit.kafka.lanes import IDENTITY, Pool, answer, entry, following, lane
from tests.unit.wire.batches import (
    APPEND_TIME,
    NOW,
    TRANSACTIONAL,
    Rec,
    Shape,
    read_with_aiokafka,
    write_batch,
    write_marker,
)

START = 100
BIG = 5000


def dense(first: int, count: int, value_bytes: int = 600, shape: Shape | None = None) -> bytearray:
    records = [Rec(first + i, NOW + i, b"k%d" % (first + i), bytes([i % 251]) * value_bytes) for i in range(count)]
    return write_batch(records, shape or Shape())


def small(offset: int, count: int = 1) -> bytearray:
    return dense(offset, count, 20)


def response(batches: Sequence[bytes | bytearray], aborted: Sequence[tuple[int, int]] = (), cut_off: int = 0) -> Any:
    data = b"".join(bytes(batch) for batch in batches)
    end = len(data) - cut_off
    part = FetchedPartition("orders", 3, 0, 9999, 9999, 0, -1, -1, -1, -1, -1, list(aborted), 0, end)
    return data, part


def cut(
    run: LaneRun,
    batches: Sequence[bytes | bytearray],
    *,
    cutter: Cutter | None = None,
    pool: Pool | None = None,
    **more: Any,
) -> list[Outgoing]:
    data, part = response(batches, **more)
    chunk = (pool or Pool()).chunk(data)
    before = len(run.queue)
    (cutter or Cutter(read_committed=True)).cut(run, part, chunk)
    chunk.release()
    return list(run.queue)[before:]


def reading(on: Lane | None = None, until: int | None = None, sequence: int = 40) -> LaneRun:
    return following(entry(source_next=START, sequence_next=sequence), on=on or lane(), until=until)


# -- the raw path -------------------------------------------------------------------------------------------------------


def test_a_large_dense_batch_is_forwarded_where_it_lies() -> None:
    run = reading()
    source = dense(START, 10)
    [item] = cut(run, [source])
    header = read_header(item.data, 0)
    assert item.raw
    assert bytes(item.data[61:]) == bytes(source[61:])
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4711, 2, 40)
    assert (item.count, item.source_first, item.source_next, item.source_epoch) == (10, 100, 110, 4)
    assert item.max_timestamp == NOW + 9
    assert item.size == len(source)
    assert [rec.value for rec in read_with_aiokafka(bytes(item.data))] == [
        rec.value for rec in read_with_aiokafka(source)
    ]
    assert (run.fetch_offset, run.fetch_epoch, run.sequence) == (110, 4, 50)


@pytest.mark.parametrize("codec", range(5))
def test_every_codec_is_forwarded_as_it_is(codec: int) -> None:
    run = reading()
    source = dense(START, 20, shape=Shape(codec=codec))
    [item] = cut(run, [source], cutter=Cutter(True, merge_below=0))
    assert item.raw
    assert bytes(item.data[61:]) == bytes(source[61:])


def test_one_small_batch_between_large_ones_stays_raw() -> None:
    run = reading()
    items = cut(run, [dense(100, 10), small(110), dense(111, 10)])
    assert [(item.raw, item.source_first, item.sequence) for item in items] == [
        (True, 100, 40),
        (True, 110, 50),
        (True, 111, 51),
    ]
    assert run.counts.rebuilt == {}


def test_the_last_batch_of_an_answer_may_be_cut_off() -> None:
    run = reading()
    items = cut(run, [dense(100, 10), dense(110, 10)], cut_off=17)
    assert [item.source_next for item in items] == [110]
    assert run.fetch_offset == 110


def test_batches_before_the_position_are_passed_over() -> None:
    run = reading()
    items = cut(run, [dense(80, 10), dense(90, 10), dense(100, 10)])
    assert [item.source_first for item in items] == [100]


def test_append_time_is_forwarded_to_a_target_with_append_time() -> None:
    run = reading(lane(target_append_time=True))
    [item] = cut(run, [dense(100, 10, shape=Shape(attributes=APPEND_TIME, max_timestamp=NOW + 99))])
    assert item.raw
    assert read_header(item.data, 0).attributes == 0


# -- the record path ----------------------------------------------------------------------------------------------------


def test_neighbouring_small_batches_are_merged() -> None:
    run = reading()
    items = cut(run, [dense(100, 10), small(110), small(111, 3), small(114), dense(115, 10)])
    assert [(item.raw, item.count, item.source_first, item.source_next) for item in items] == [
        (True, 10, 100, 110),
        (False, 5, 110, 115),
        (True, 10, 115, 125),
    ]
    assert run.counts.rebuilt == {"small": 3}


def test_small_batches_at_the_end_of_an_answer_are_merged_too() -> None:
    items = cut(reading(), [small(100), small(101)])
    assert [(item.raw, item.count) for item in items] == [(False, 2)]


def test_a_merge_stays_below_its_aim() -> None:
    run = reading()
    items = cut(run, [small(100 + i) for i in range(40)], cutter=Cutter(True, merge_below=4096, merge_target=500))
    assert len(items) > 2
    assert sum(item.count for item in items) == 40
    assert all(item.size <= 500 for item in items)


def test_small_batches_that_open_to_too_much_together_are_forwarded_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(opening, "MAX_BYTES", 100_000)
    run = reading()
    bombs = [dense(100 + i, 1, 60_000, Shape(codec=4)) for i in range(3)]
    items = cut(run, [*bombs, dense(103, 10)])
    assert [(item.raw, item.source_first) for item in items] == [(True, 100), (True, 101), (True, 102), (True, 103)]
    assert run.failure is None and run.counts.rebuilt == {}


def test_one_that_must_be_opened_and_is_too_much_stops_its_lane_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MAX_BYTES", 100_000)
    run = reading()
    bomb = [Rec(offset, NOW, b"k", bytes(70_000)) for offset in (100, 105)]
    assert cut(run, [write_batch(bomb, Shape(codec=4, last_offset=106))]) == []
    assert run.failure is not None and run.failure.message.startswith("A record batch opens to more than the")


def test_a_gap_is_closed_by_the_record_path() -> None:
    run = reading()
    records = [Rec(offset, NOW + offset, b"k", bytes(700)) for offset in (100, 103, 104, 109)]
    [item] = cut(run, [write_batch(records, Shape(last_offset=111))])
    assert not item.raw
    assert (item.count, item.source_first, item.source_next) == (4, 100, 112)
    assert [rec.timestamp for rec in read_with_aiokafka(bytes(item.data))] == [rec.timestamp for rec in records]
    assert [rec.offset for rec in read_with_aiokafka(bytes(item.data))] == [0, 1, 2, 3]
    assert run.counts.rebuilt == {"gap": 1}


def test_a_position_inside_a_batch_leaves_the_records_before_it_out() -> None:
    run = reading()
    [item] = cut(run, [dense(94, 10)])
    assert not item.raw
    assert (item.count, item.source_first, item.source_next) == (4, 100, 104)
    assert [rec.key for rec in read_with_aiokafka(bytes(item.data))] == [b"k100", b"k101", b"k102", b"k103"]
    assert run.counts.rebuilt == {"begins earlier": 1}


def test_a_batch_over_the_targets_limit_is_split() -> None:
    run = reading(lane(max_batch_bytes=2500))
    items = cut(run, [dense(100, 10)])
    assert len(items) >= 3
    assert all(not item.raw and item.size <= 2500 for item in items)
    assert sum(item.count for item in items) == 10
    assert items[-1].source_next == 110
    assert run.counts.rebuilt == {"too large": 1}


def test_a_batch_as_large_as_the_limit_is_forwarded() -> None:
    source = dense(100, 10)
    [item] = cut(reading(lane(max_batch_bytes=len(source))), [source])
    assert item.raw


def test_after_a_refusal_as_too_large_the_guess_counts_and_not_the_lanes_limit() -> None:
    run = reading(lane(max_batch_bytes=1 << 20))
    run.max_bytes = 2500
    items = cut(run, [dense(100, 10), dense(110, 2)], cutter=Cutter(True, merge_below=0))
    assert [item.raw for item in items[-1:]] == [True], "what is within the guess goes as it is"
    pieces = items[:-1]
    assert len(pieces) >= 3
    assert all(not item.raw and item.size <= 2500 for item in pieces)
    assert sum(item.count for item in pieces) == 10
    assert run.counts.rebuilt == {"too large": 1}
    assert run.max_bytes == 2500


def test_a_batch_as_large_as_the_guess_is_forwarded() -> None:
    source = dense(100, 10)
    run = reading()
    run.max_bytes = len(source)
    [item] = cut(run, [source])
    assert item.raw


def test_one_byte_over_the_guess_is_split() -> None:
    source = dense(100, 10)
    run = reading()
    run.max_bytes = len(source) - 1
    items = cut(run, [source])
    assert len(items) == 2
    assert [item.raw for item in items] == [False, False]


def test_a_merge_stays_below_the_guess() -> None:
    run = reading()
    run.max_bytes = 400
    items = cut(run, [small(100 + i) for i in range(40)])
    assert sum(item.count for item in items) == 40
    assert all(item.size <= 400 for item in items)


def test_a_record_over_the_guess_raises_it_and_the_target_judges() -> None:
    run = reading(lane(max_batch_bytes=10_000))
    run.max_bytes = 1000
    records = [Rec(100, NOW, b"a", bytes(100)), Rec(101, NOW, b"b", bytes(3000)), Rec(102, NOW, b"c", bytes(100))]
    items = cut(run, [write_batch(records)])
    assert run.failure is None
    assert [rec.key for item in items for rec in read_with_aiokafka(bytes(item.data))] == [b"a", b"b", b"c"]
    assert 3000 < run.max_bytes < 3200
    assert max(item.size for item in items) == run.max_bytes, "no larger than that record needs"
    assert [item.sequence for item in items] == [40 + sum(item.count for item in items[:i]) for i in range(len(items))]
    assert run.counts.rebuilt == {"too large": 1}


def test_the_guess_rises_to_the_largest_record_of_the_batch() -> None:
    run = reading(lane(max_batch_bytes=10_000))
    run.max_bytes = 1000
    records = [Rec(100 + i, NOW, b"k", bytes(size)) for i, size in enumerate((2000, 5000, 4000))]
    items = cut(run, [write_batch(records)])
    assert run.failure is None
    assert sum(item.count for item in items) == 3
    assert 5000 < run.max_bytes < 5200


def test_a_record_over_the_lanes_own_limit_is_a_fault_whatever_the_guess() -> None:
    run, pool = reading(lane(max_batch_bytes=3000)), Pool()
    run.max_bytes = 1000
    cut(run, [write_batch([Rec(100, value=bytes(5000))])], pool=pool)
    assert run.failure is not None
    assert (run.failure.code, run.failure.finding) == (10, "record")
    assert run.max_bytes == 1000
    assert not run.queue
    assert pool.out == 0


def test_append_time_is_written_into_the_records_of_a_target_with_create_time() -> None:
    run = reading()
    [item] = cut(run, [dense(100, 10, shape=Shape(attributes=APPEND_TIME, max_timestamp=NOW + 99))])
    assert not item.raw
    assert {rec.timestamp for rec in read_with_aiokafka(bytes(item.data))} == {NOW + 99}
    assert run.counts.rebuilt == {"append time": 1}


def test_a_batch_that_was_refused_raw_is_rebuilt() -> None:
    run = reading()
    run.record_path_once.add(110)
    items = cut(run, [dense(100, 10), dense(110, 10), dense(120, 10)])
    assert [item.raw for item in items] == [True, False, True]
    assert run.counts.rebuilt == {"refused raw": 1}


def test_two_neighbours_of_different_reasons_are_rebuilt_together() -> None:
    run = reading()
    items = cut(run, [small(99, 3), small(102)])
    assert [(item.count, item.source_first, item.source_next) for item in items] == [(3, 100, 103)]
    assert run.counts.rebuilt == {"begins earlier": 1, "small": 1}


def test_sequences_run_on_over_raw_merged_and_split_batches_and_over_the_wrap() -> None:
    run = reading(lane(max_batch_bytes=4000), sequence=2**31 - 5)
    items = cut(run, [dense(100, 6), small(106), small(107), dense(108, 10), dense(118, 5)])
    sequence = 2**31 - 5
    for item in items:
        assert item.sequence == read_header(item.data, 0).base_sequence == sequence
        sequence = (sequence + item.count) % 2**31
    assert run.sequence == sequence == (2**31 - 5 + 23) % 2**31


# -- dropped ------------------------------------------------------------------------------------------------------------


def test_markers_aborted_and_empty_batches_are_dropped_and_counted() -> None:
    run = reading()
    ours = Shape(attributes=TRANSACTIONAL, producer=(7, 0, 0))
    theirs = Shape(attributes=TRANSACTIONAL, producer=(8, 0, 0))
    batches = [
        dense(100, 5, BIG, ours),
        dense(105, 5, BIG, theirs),
        write_marker(110, 7, commit=False),
        write_marker(111, 8, commit=True),
        write_batch([], Shape(base_offset=112, last_offset=114)),
        dense(115, 5, BIG, ours),
        write_marker(120, 7, commit=True),
    ]
    items = cut(run, batches, aborted=[(7, 100)])
    assert [(item.source_first, item.count) for item in items] == [(105, 5), (115, 5)]
    assert run.counts.dropped == {"aborted": 1, "control": 3, "empty": 1}
    assert run.fetch_offset == 121
    assert run.sequence == 50


def test_read_uncommitted_copies_what_was_aborted_but_no_markers() -> None:
    run = reading()
    shape = Shape(attributes=TRANSACTIONAL, producer=(7, 0, 0))
    items = cut(run, [dense(100, 5, BIG, shape), write_marker(105, 7, commit=False)], cutter=Cutter(False))
    assert [item.count for item in items] == [5]
    assert run.counts.dropped == {"control": 1}


def test_small_batches_around_a_marker_are_merged_without_it() -> None:
    run = reading()
    items = cut(run, [small(100), write_marker(101, 7, commit=True), small(102), write_marker(103, 7, commit=True)])
    assert [(item.count, item.source_first, item.source_next) for item in items] == [(2, 100, 103)]
    assert run.fetch_offset == 104


def test_a_batch_with_nothing_left_after_the_position_sends_nothing() -> None:
    """The offsets after its last record were compacted away."""
    run = reading()
    batch = write_batch([Rec(90), Rec(95)], Shape(last_offset=104))
    assert cut(run, [batch]) == []
    assert run.fetch_offset == 105
    assert run.sequence == 40


# -- until --------------------------------------------------------------------------------------------------------------


def test_reading_stops_at_the_end_that_was_asked_for() -> None:
    run = reading(until=120)
    items = cut(run, [dense(100, 10), dense(110, 10), dense(120, 10)])
    assert [item.source_next for item in items] == [110, 120]
    assert run.fetch_offset == 120
    assert not run.wants_data(1 << 30)


def test_a_batch_over_the_end_is_copied_whole() -> None:
    run = reading(until=115)
    items = cut(run, [dense(100, 10), dense(110, 10), dense(120, 10)])
    assert [item.source_next for item in items] == [110, 120]


def test_an_end_inside_a_hole_is_reached() -> None:
    run = reading(until=115)
    cut(run, [dense(100, 10), dense(118, 10)])
    assert run.fetch_offset == 115


def test_small_batches_before_the_end_are_sent() -> None:
    run = reading(until=102)
    items = cut(run, [small(100), small(101), small(102)])
    assert [(item.count, item.source_next) for item in items] == [(2, 102)]


# -- faults -------------------------------------------------------------------------------------------------------------


def test_a_corrupt_batch_is_not_opened() -> None:
    run = reading()
    bad = small(101)
    bad[-1] ^= 1
    cut(run, [small(100), bad])
    assert run.failure is not None
    assert (run.failure.code, run.failure.finding) == (2, "corrupt")
    assert not run.queue
    assert run.counts.rebuilt == {}


def test_nothing_is_queued_behind_a_batch_that_could_not_be_opened() -> None:
    """Else the lane would wait for ever for an answer to what is never sent."""
    run, pool = reading(), Pool()
    bad = small(101)
    bad[-1] ^= 1
    cut(run, [small(100), bad, dense(102, 10)], pool=pool)
    assert run.failure is not None
    assert not run.queue
    assert run.idle.is_set()
    assert pool.out == 0


def test_a_record_over_the_limit_says_which_and_what_to_do() -> None:
    run, pool = reading(lane(max_batch_bytes=3000)), Pool()
    cut(run, [write_batch([Rec(100, value=bytes(5000))])], pool=pool)
    assert run.failure is not None
    assert (run.failure.code, run.failure.finding, run.failure.offset) == (10, "record", 100)
    assert run.failure.message.startswith("it has 50")
    assert run.failure.message.endswith("bytes, A.orders takes 3000")
    assert pool.out == 0


def test_records_that_cannot_be_read_park_the_lane_with_the_reason() -> None:
    run = reading()
    batch = write_batch([Rec(100), Rec(102)], Shape(attributes=5))
    cut(run, [batch])
    assert run.failure is not None
    assert (run.failure.code, run.failure.finding) == (87, "record")
    assert run.failure.message


def test_what_lies_before_a_record_over_the_limit_is_copied_and_the_lane_stops_there() -> None:
    run = reading(lane(max_batch_bytes=5000))
    cut(run, [dense(100, 5), write_batch([Rec(105, value=bytes(9000))])])
    assert (run.failure, run.position(), [item.count for item in run.queue]) == (None, 100, [5])
    assert not run.wants_data(1 << 30), "nothing is read past what cannot be copied"
    run.take(NOW)
    run.answered(answer(40), "", NOW)
    assert run.failure is not None
    assert (run.failure.offset, run.failure.message[:9]) == (105, "it has 90")
    assert run.position() == 105


def test_records_of_its_own_batch_before_a_record_over_the_limit_are_copied_too() -> None:
    """What is left out begins with the record itself: everything before it must be on the target first."""
    run = reading(lane(max_batch_bytes=5000))
    cut(run, [write_batch([Rec(100), Rec(101), Rec(102, value=bytes(9000)), Rec(103)])])
    assert [(item.count, item.source_next) for item in run.queue] == [(2, 102)]
    run.take(NOW)
    run.answered(answer(40), "", NOW)
    assert run.failure is not None and run.failure.offset == run.position() == 102


def test_a_batch_with_a_refused_record_is_cut_into_pieces_and_only_that_one() -> None:
    run = reading()
    run.piece_count, run.piece_until = 3, 110
    cut(run, [dense(100, 10), dense(110, 10)])
    assert [(item.count, item.raw) for item in run.queue] == [(3, False)] * 3 + [(1, False), (10, True)]
    assert [item.source_first for item in run.queue] == [100, 103, 106, 109, 110]


# -- buffers ------------------------------------------------------------------------------------------------------------


def test_a_buffer_is_held_by_its_batches_until_they_are_acknowledged() -> None:
    run, pool = reading(), Pool()
    cut(run, [dense(100, 10), small(110), small(111), dense(112, 10)], pool=pool)
    assert pool.out == 1
    base = 40
    while run.queue:
        item = run.take(NOW)
        run.answered(answer(base), "", NOW)
        base += item.count
    assert pool.out == 0
    assert run.position() == 122


def test_a_buffer_of_dropped_batches_only_goes_back_at_once() -> None:
    run, pool = reading(), Pool()
    cut(run, [write_marker(100, 7, commit=True)], pool=pool)
    assert pool.out == 0


def test_the_identity_is_that_of_the_attach() -> None:
    run = reading()
    items = cut(run, [dense(100, 10), small(110), small(111)])
    headers = [read_header(item.data, 0) for item in items]
    assert {(header.producer_id, header.producer_epoch) for header in headers} == {
        (IDENTITY.producer_id, IDENTITY.producer_epoch)
    }


# -- another codec ------------------------------------------------------------------------------------------------------

LZ4 = 3


def test_batches_of_another_codec_are_recompressed_and_those_of_this_one_are_forwarded() -> None:
    run = reading()
    plain, packed = dense(START, 10), dense(START + 10, 40, shape=Shape(codec=LZ4))
    items = cut(run, [plain, packed], cutter=Cutter(True, merge_below=0, codec=LZ4))
    assert [(item.raw, item.count, item.sequence) for item in items] == [(False, 10, 40), (True, 40, 50)]
    assert [read_header(item.data, 0).codec for item in items] == [LZ4, LZ4]
    assert [record.value for record in read_with_aiokafka(items[0].data)] == [bytes([i]) * 600 for i in range(10)]
    assert run.counts.rebuilt == {"recompressed": 1}


def test_codec_none_unpacks() -> None:
    run = reading()
    [item] = cut(run, [dense(START, 40, shape=Shape(codec=LZ4))], cutter=Cutter(True, merge_below=0, codec=0))
    assert (item.raw, read_header(item.data, 0).codec, item.count) == (False, 0, 40)


def test_without_a_codec_every_batch_keeps_its_own() -> None:
    run = reading()
    items = cut(run, [dense(START, 10), dense(START + 10, 40, shape=Shape(codec=LZ4))], cutter=Cutter(True, 0))
    assert [(item.raw, read_header(item.data, 0).codec) for item in items] == [(True, 0), (True, LZ4)]


class Known:
    """A judge who knows that these producers are the other flow's."""

    def __init__(self, *theirs: int) -> None:
        self._theirs = theirs
        self.learned: set[int] = set()

    async def learn(self, producer_ids: Iterable[int]) -> None:
        self.learned |= set(producer_ids)

    def is_theirs(self, producer_id: int) -> bool:
        return producer_id in self._theirs


def test_batches_that_came_home_are_dropped_and_counted_whatever_their_size() -> None:
    run = following(entry(source_next=START))
    theirs, others = Shape(producer=(7, 0, 0)), Shape(producer=(8, 0, 0))
    batches = [dense(100, 10, shape=theirs), small(110), dense(111, 1, 20, theirs), dense(112, 10, shape=others)]
    judge = Known(7)
    cutter = Cutter(read_committed=True, home=judge)
    data, part = response(batches)
    asyncio.run(cutter.learn([part], Pool().chunk(data)))
    assert judge.learned == {7, 8, -1}
    sent = cut(run, batches, cutter=cutter)
    assert [(item.source_first, item.count) for item in sent] == [(110, 1), (112, 10)]
    assert run.counts.dropped == {"came home": 2}
    assert run.fetch_offset == 122
