"""Any log, read in any portions, comes out as its committed records, in order, under dense sequences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from heliograph.kafka.cutting import Cutter
from heliograph.kafka.outgoing import Outgoing
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

WRAP = 2**31
LIMIT = 700
"""The remote topic's max.message.bytes: some batches are over it."""


@dataclass(frozen=True)
class Event:
    """One batch of the log, before it has offsets. Producer 0: no transaction; `end`: a marker, commit or abort."""

    producer: int
    sizes: tuple[int, ...]
    holes: tuple[int, ...]
    append_time: bool
    codec: int
    end: bool | None


@dataclass(frozen=True)
class Stored:
    """A batch as it lies in the log."""

    data: bytes
    first: int
    next: int
    producer: int
    records: tuple[Rec, ...]


EVENTS = st.builds(
    Event,
    producer=st.sampled_from((0, 0, 7, 8)),
    sizes=st.lists(st.integers(0, 120), max_size=6).map(tuple),
    holes=st.lists(st.sampled_from((0, 0, 0, 1, 4)), min_size=7, max_size=7).map(tuple),
    append_time=st.sampled_from((False, False, False, True)),
    codec=st.sampled_from((0, 0, 1, 3)),
    end=st.sampled_from((None, None, None, True, False)),
)


def write_log(events: list[Event], first: int) -> tuple[list[Stored], list[tuple[int, int, int]]]:
    """The log, and its aborted transactions as (producer, first offset, marker's offset). All are ended."""
    stored: list[Stored] = []
    aborted: list[tuple[int, int, int]] = []
    begun: dict[int, int] = {}
    at = first
    endings = [Event(producer, (), (0,) * 7, False, 0, True) for producer in (7, 8)]
    for event in [*events, *endings]:
        if event.end is not None:
            if event.producer not in begun:
                continue
            began = begun.pop(event.producer)
            if not event.end:
                aborted.append((event.producer, began, at))
            marker = bytes(write_marker(at, event.producer, commit=event.end))
            stored.append(Stored(marker, at, at + 1, event.producer, ()))
            at += 1
            continue
        batch = data_batch(event, at)
        if event.producer:
            begun.setdefault(event.producer, at)
        stored.append(batch)
        at = batch.next
    return stored, aborted


def data_batch(event: Event, at: int) -> Stored:
    records, offset = [], at
    for index, size in enumerate(event.sizes):
        offset += event.holes[index]
        records.append(Rec(offset, NOW + offset * 3, b"%d" % offset, bytes([offset % 251]) * size, (("h", b"x"),)))
        offset += 1
    last = offset - 1 + event.holes[6]
    shape = Shape(codec=event.codec, base_offset=at, last_offset=max(last, at))
    if event.append_time:
        shape = replace(shape, attributes=APPEND_TIME, max_timestamp=NOW + 77)
    if event.producer:
        shape = replace(shape, attributes=shape.attributes | TRANSACTIONAL, producer=(event.producer, 0, 0))
    seen = tuple(replace(record, timestamp=NOW + 77) if event.append_time else record for record in records)
    return Stored(bytes(write_batch(records, shape)), at, max(last, at) + 1, event.producer, seen)


def committed(stored: list[Stored], aborted: list[tuple[int, int, int]], start: int) -> list[Rec]:
    """By the definition: a record counts unless its producer's transaction around it was aborted."""
    found = []
    for batch in stored:
        if any(batch.producer == producer and first <= batch.first < end for producer, first, end in aborted):
            continue
        found += [record for record in batch.records if record.offset >= start]
    return found


def answer_of(
    stored: list[Stored], aborted: list[tuple[int, int, int]], offset: int, batches: int, cut_off: int
) -> tuple[bytes, FetchedPartition]:
    """What a broker sends: from the batch that holds `offset`, perhaps with half a batch at the end."""
    wanted = [batch for batch in stored if batch.next > offset][: batches + 1]
    whole, rest = wanted[:batches], wanted[batches:]
    data = b"".join(batch.data for batch in whole) + (rest[0].data[:cut_off] if rest else b"")
    upto = wanted[-1].next
    overlapping = [(producer, first) for producer, first, end in aborted if end >= offset and first < upto]
    return data, FetchedPartition("orders", 3, 0, upto, upto, 0, -1, -1, -1, -1, -1, overlapping, 0, len(data))


def contents(records: list[Rec]) -> list[tuple[object, ...]]:
    return [(record.timestamp, record.key, record.value, record.headers) for record in records]


@given(
    events=st.lists(EVENTS, min_size=1, max_size=14),
    portions=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 80)), min_size=1, max_size=8),
    begin=st.integers(0, 6),
    sequence=st.one_of(st.integers(0, 50), st.integers(WRAP - 30, WRAP - 1)),
    merge=st.sampled_from(((0, 1 << 20), (200, 1 << 20), (4096, 400))),
    guess=st.sampled_from((LIMIT, LIMIT, 350, 200, 1)),
)
def test_what_is_pushed_is_what_was_committed(
    events: list[Event],
    portions: list[tuple[int, int]],
    begin: int,
    sequence: int,
    merge: tuple[int, int],
    guess: int,
) -> None:
    """`guess` is what a refusal as too large left behind: a small one costs batches, never a record."""
    stored, aborted = write_log(events, first=1000)
    if not stored:
        return
    end = stored[-1].next
    start = min(1000 + begin, end - 1)
    run = following(entry(source_next=start, target_next=0, sequence_next=sequence), on=lane(max_batch_bytes=LIMIT))
    run.max_bytes = guess
    cutter, pool = Cutter(True, *merge), Pool()
    sent: list[Outgoing] = []
    rounds = 0
    while run.fetch_offset < end:
        batches, cut_off = portions[rounds % len(portions)]
        data, part = answer_of(stored, aborted, run.fetch_offset, batches, cut_off)
        chunk = pool.chunk(data)
        before = run.fetch_offset
        cutter.cut(run, part, chunk)
        chunk.release()
        assert run.failure is None
        assert run.fetch_offset > before, "every answer with a whole batch moves the position"
        while run.queue:
            sent.append(run.take(NOW))
            sent[-1].data = bytes(sent[-1].data)  # the buffer goes back with the answer
            run.answered(answer(sum(item.count for item in sent[:-1])), "", NOW)
        rounds += 1
    expected = committed(stored, aborted, start)
    assert contents([record for item in sent for record in read_with_aiokafka(bytes(item.data))]) == contents(expected)
    check_numbers(sent, sequence, expected)
    assert pool.out == 0
    assert run.position() == end
    assert run.counts.records == len(expected)
    assert guess <= run.max_bytes <= LIMIT


def check_numbers(sent: list[Outgoing], sequence: int, expected: list[Rec]) -> None:
    taken = 0
    for item in sent:
        header = read_header(item.data, 0)
        assert item.sequence == header.base_sequence == sequence
        assert item.count == header.count == header.last_offset_delta + 1
        assert (header.producer_id, header.producer_epoch) == (IDENTITY.producer_id, IDENTITY.producer_epoch)
        assert item.size == len(item.data) <= LIMIT
        records = expected[taken : taken + item.count]
        assert item.source_first == records[0].offset
        assert item.source_last == records[-1].offset
        neighbours = pairwise(records)
        assert item.gap_at == next((after.offset for one, after in neighbours if after.offset != one.offset + 1), -1)
        assert item.source_next > records[-1].offset
        following_record = expected[taken + item.count] if taken + item.count < len(expected) else None
        assert following_record is None or item.source_next <= following_record.offset
        taken += item.count
        sequence = (sequence + item.count) % WRAP
