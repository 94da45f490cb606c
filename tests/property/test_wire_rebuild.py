"""Merging and splitting, for any records: nothing lost, repeated, moved or changed, and no batch over its limit."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.wire.rebuild import Rebuilder, RecordTooLarge, record_at
from heliograph.wire.record_batch import BatchHeader, read_header
from tests.unit.wire.batches import APPEND_TIME, NOW, Rec, Shape, read_with_aiokafka, write_batch

small = st.none() | st.binary(max_size=40)
values = small | st.integers(60, 9000).map(lambda size: b"x" * size)
headers = st.lists(st.tuples(st.text(max_size=5), small), max_size=3).map(tuple)
timestamps = st.integers(0, 2**45) | st.integers(NOW, NOW + 20_000)


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[bytearray, list[Rec]]]:
    """Neighbouring batches with gaps in, before and after their records; each with the records that a consumer sees."""
    offset = draw(st.integers(0, 2**40))
    log = []
    for _ in range(draw(st.integers(1, 6))):
        base = offset = offset + draw(st.integers(0, 3))
        records = []
        for _ in range(draw(st.integers(0, 5))):
            offset += draw(st.integers(0, 2))
            records.append(Rec(offset, draw(timestamps), draw(small), draw(values), draw(headers)))
            offset += 1
        last = max(offset - 1, base) + draw(st.integers(0, 2))
        append_time = draw(st.booleans())
        shape = Shape(
            codec=draw(st.integers(0, 4)),
            attributes=APPEND_TIME if append_time else 0,
            base_offset=base,
            last_offset=last,
            base_timestamp=draw(timestamps),
            max_timestamp=NOW + 5 if append_time else None,
            leader_epoch=draw(st.integers(0, 9)),
        )
        batch = write_batch(records, shape)
        if append_time:
            records = [Rec(r.offset, NOW + 5, r.key, r.value, r.headers) for r in records]
        log.append((batch, records))
        offset = last + 1
    return log


def opened(log: list[tuple[bytearray, list[Rec]]]) -> list[tuple[memoryview, BatchHeader]]:
    return [(memoryview(batch), read_header(batch, 0)) for batch, _ in log]


@settings(max_examples=150)
@given(
    log=logs(),
    limit=st.integers(200, 30_000),
    aim=st.integers(100, 40_000),
    sequence=st.integers(0, 2**31 - 1),
    skip=st.integers(0, 12),
)
def test_results_are_the_wanted_records_in_order(
    log: list[tuple[bytearray, list[Rec]]], limit: int, aim: int, sequence: int, skip: int
) -> None:
    batches = opened(log)
    from_offset = batches[0][1].base_offset + skip
    wanted = [record for _, records in log for record in records if record.offset >= from_offset]
    try:
        results = Rebuilder(8, 1, limit, aim).rebuild(batches, from_offset, sequence)
    except RecordTooLarge as fault:
        assert fault.size > limit == fault.limit
        assert fault.offset in [record.offset for record in wanted]
        return
    copied = [record for result in results for record in read_with_aiokafka(result.data)]
    assert [_content(record) for record in copied] == [_content(record) for record in wanted]
    assert all(len(result.data) <= limit for result in results)
    position = 0
    for result in results:
        header = read_header(result.data, 0)
        assert header.is_dense and header.count == result.count and header.size == len(result.data)
        assert (header.base_offset, header.leader_epoch, header.attributes & ~7) == (0, -1, 0)
        assert (header.producer_id, header.producer_epoch) == (8, 1)
        assert header.base_sequence == (sequence + position) % 2**31
        mine = wanted[position : position + result.count]
        assert result.first_offset == mine[0].offset
        assert result.max_timestamp == header.max_timestamp == max(record.timestamp for record in mine)
        assert header.base_timestamp == mine[0].timestamp
        position += result.count
    _check_positions(results, wanted, log)


def _content(record: Rec) -> tuple[object, ...]:
    return record.timestamp, record.key, record.value, record.headers


def _check_positions(results, wanted, log) -> None:  # type: ignore[no-untyped-def]
    """Going on at source_next after any result copies the rest: neither a record twice nor one left out."""
    position = 0
    for result in results:
        position += result.count
        later = [record.offset for record in wanted[position:]]
        assert wanted[position - 1].offset < result.source_next <= min(later, default=result.source_next)
        last = wanted[position - 1].offset
        owner = next(batch for batch, records in log if records and records[-1].offset >= last)
        assert result.source_epoch == read_header(owner, 0).leader_epoch
    assert all(before.source_next < after.source_next for before, after in pairwise(results))
    if results:
        assert results[-1].source_next == read_header(log[-1][0], 0).next_offset


@given(log=logs(), at=st.integers(0, 100))
def test_any_record_is_found_by_its_offset(log: list[tuple[bytearray, list[Rec]]], at: int) -> None:
    batch, records = log[at % len(log)]
    for record in records:
        names = tuple((name.encode(), value) for name, value in record.headers)
        assert record_at(memoryview(batch), record.offset) == (record.timestamp, record.key, record.value, names)
