"""Opening, merging and splitting keep every record, and other implementations read the result."""

from __future__ import annotations

import random
import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.util import calc_crc32c

from heliograph.errors import HeliographError
from heliograph.wire.rebuild import CorruptBatch, Rebuilder, Rebuilt, RecordTooLarge, last_record, record_at
from heliograph.wire.record_batch import BatchHeader, read_header, walk
from tests.unit.wire.batches import (
    APPEND_TIME,
    CODECS,
    DELETE_HORIZON,
    KAFKA_PYTHON_READS,
    NOW,
    TRANSACTIONAL,
    Rec,
    Shape,
    read_with_aiokafka,
    read_with_kafka_python,
    write_batch,
    write_marker,
)

ODD_RECORDS = [
    Rec(100, NOW, None, None),
    Rec(101, NOW + 5, b"", b""),
    Rec(102, NOW - 70_000, b"key", b"value", (("b", b"1"), ("a", b"2"), ("b", None), ("", b""), ("ünï", b"\xff"))),
    Rec(103, NOW + 10_000_000, b"\x00" * 300, b"x" * 20_000),
    Rec(104, NOW, b"k", b"v" * 70),
]


def opened(*batches: bytes | bytearray) -> list[tuple[memoryview, BatchHeader]]:
    return [(memoryview(batch), next(walk(batch, 0, len(batch)))[1]) for batch in batches]


def rebuild(
    *batches: bytes | bytearray, limit: int = 1 << 20, from_offset: int = 0, aim: int = 1 << 20
) -> list[Rebuilt]:
    return Rebuilder(77, 3, limit, aim).rebuild(opened(*batches), from_offset, 10)


def renumbered(records: list[Rec]) -> list[Rec]:
    return [Rec(i, r.timestamp, r.key, r.value, r.headers) for i, r in enumerate(records)]


def singles(first: int, count: int) -> list[bytearray]:
    return [write_batch([Rec(first + i, NOW + i, b"k%d" % i, b"v%d" % i)]) for i in range(count)]


@pytest.mark.parametrize("codec", range(5), ids=CODECS)
def test_rebuilt_records_are_those_of_the_source(codec: int) -> None:
    [rebuilt] = rebuild(write_batch(ODD_RECORDS, Shape(codec=codec, last_offset=110, leader_epoch=8)))
    assert read_with_aiokafka(rebuilt.data) == renumbered(ODD_RECORDS)
    if CODECS[codec] in KAFKA_PYTHON_READS:
        assert read_with_kafka_python(rebuilt.data) == renumbered(ODD_RECORDS)
    assert (rebuilt.count, rebuilt.first_offset, rebuilt.source_next, rebuilt.source_epoch) == (5, 100, 111, 8)
    assert rebuilt.max_timestamp == NOW + 10_000_000


@pytest.mark.parametrize("codec", range(5), ids=CODECS)
def test_batches_that_aiokafka_wrote_are_merged(codec: int) -> None:
    source = []
    for base in (0, 3):
        builder = AiokafkaBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
        for i in range(3):
            builder.append(i, NOW + base + i, b"k%d" % (base + i), b"v" * 10, [("h", b"%d" % i)])
        batch = bytearray(builder.build())
        struct.pack_into(">q", batch, 0, base)
        source.append(batch)
    [rebuilt] = rebuild(*source)
    expected = [Rec(i, NOW + i, b"k%d" % i, b"v" * 10, (("h", b"%d" % (i % 3)),)) for i in range(6)]
    assert read_with_aiokafka(rebuilt.data) == expected


def test_result_is_what_a_producer_would_have_written() -> None:
    everything = TRANSACTIONAL | DELETE_HORIZON
    [rebuilt] = rebuild(write_batch([Rec(5, NOW + 3), Rec(9, NOW)], Shape(attributes=everything, producer=(1, 2, 3))))
    header = read_header(rebuilt.data, 0)
    assert header == BatchHeader(
        base_offset=0,
        size=len(rebuilt.data),
        leader_epoch=-1,
        magic=2,
        crc=header.crc,
        attributes=0,
        last_offset_delta=1,
        base_timestamp=NOW + 3,
        max_timestamp=NOW + 3,
        producer_id=77,
        producer_epoch=3,
        base_sequence=10,
        count=2,
    )
    assert header.is_dense


def test_golden_merge_of_two_batches() -> None:
    [rebuilt] = rebuild(write_batch([Rec(5, NOW, b"a", b"1")]), write_batch([Rec(9, NOW + 1, None, None)]))
    assert (
        rebuilt.data[61:].hex()
        == "10" + "00" + "00" + "00" + "0261" + "0231" + "00" + "0c" + "00" + "02" + "02" + "010100"
    )


def test_single_records_are_merged_into_one_batch() -> None:
    [rebuilt] = rebuild(*singles(40, 300))
    assert [record.key for record in read_with_aiokafka(rebuilt.data)] == [b"k%d" % i for i in range(300)]
    assert (rebuilt.count, rebuilt.first_offset, rebuilt.source_next) == (300, 40, 340)


def test_ten_thousand_single_records_are_merged() -> None:
    batches = singles(0, 10_000)
    [rebuilt] = rebuild(*batches)
    assert read_with_aiokafka(rebuilt.data) == [
        record for i, batch in enumerate(batches) for record in [Rec(i, NOW + i, b"k%d" % i, b"v%d" % i)]
    ]


def test_single_record_after_removed_ones_keeps_its_fields() -> None:
    """Its deltas are not 0: compaction took the records before it."""
    left = Rec(107, NOW + 40, b"k", b"v")
    [rebuilt] = rebuild(write_batch([left], Shape(base_offset=100, last_offset=120, base_timestamp=NOW)))
    assert read_with_aiokafka(rebuilt.data) == renumbered([left])
    assert (rebuilt.first_offset, rebuilt.source_next) == (107, 121)


def test_wide_gaps_are_closed() -> None:
    records = [Rec(offset) for offset in (0, 70, 9_000, 2_000_000)]
    [rebuilt] = rebuild(write_batch(records))
    assert read_with_aiokafka(rebuilt.data) == renumbered(records)
    assert rebuilt.source_next == 2_000_001


@pytest.mark.parametrize("value_bytes", [0, 10, 50, 60, 8000, 8100, 8192, 20_000, 1 << 20])
def test_single_record_of_any_size_is_copied(value_bytes: int) -> None:
    record = Rec(3, NOW, b"k", b"x" * value_bytes)
    [rebuilt] = rebuild(write_batch([record]), limit=2 << 20)
    assert read_with_aiokafka(rebuilt.data) == renumbered([record])


def test_neighbours_of_another_codec_are_not_merged() -> None:
    parts = rebuild(*(write_batch([Rec(i)], Shape(codec=codec)) for i, codec in enumerate((0, 0, 3, 3, 0))))
    assert [(read_header(part.data, 0).codec, part.count) for part in parts] == [(0, 2), (3, 2), (0, 1)]
    assert [read_header(part.data, 0).base_sequence for part in parts] == [10, 12, 14]


def test_merging_stops_at_the_aim() -> None:
    source = [write_batch([Rec(i, value=b"x" * 900)]) for i in range(10)]
    parts = rebuild(*source, aim=3000)
    assert [part.count for part in parts] == [3, 3, 3, 1]
    assert all(len(part.data) <= 3000 for part in parts)
    assert [part.source_next for part in parts] == [3, 6, 9, 10]


def test_batch_over_the_aim_but_within_the_limit_is_not_split() -> None:
    assert len(rebuild(write_batch([Rec(i, value=b"x" * 900) for i in range(10)]), aim=3000)) == 1


@pytest.mark.parametrize("codec", range(5), ids=CODECS)
def test_no_result_is_over_the_limit(codec: int) -> None:
    noise = random.Random(5).randbytes(100_000)
    records = [Rec(i, NOW + i, b"%d" % i, noise[i * 997 : i * 997 + 900]) for i in range(100)]
    parts = rebuild(write_batch(records, Shape(codec=codec, last_offset=120, leader_epoch=2)), limit=5_000)
    assert len(parts) > 1
    assert all(len(part.data) <= 5_000 for part in parts)
    assert [record.value for part in parts for record in read_with_aiokafka(part.data)] == [r.value for r in records]
    assert [part.first_offset for part in parts] == [0] + [part.source_next for part in parts[:-1]]
    assert parts[-1].source_next == 121
    sequences = [read_header(part.data, 0).base_sequence for part in parts]
    assert sequences == [10 + part.first_offset for part in parts]


def test_merge_that_grows_over_the_limit_is_split_again() -> None:
    """Far apart timestamps need longer numbers than they had, each in its own batch."""
    source = [write_batch([Rec(j * 50 + i, NOW + j * 10**12, None, None) for i in range(50)]) for j in range(4)]
    aim = sum(map(len, source)) - 61 * 3
    parts = rebuild(*source, limit=aim)
    assert all(len(part.data) <= aim for part in parts)
    assert sum(part.count for part in parts) == 200


def test_limit_is_exact() -> None:
    batch = write_batch([Rec(0, value=b"x" * 500)])
    assert len(rebuild(batch, limit=len(batch))) == 1
    with pytest.raises(RecordTooLarge) as caught:
        rebuild(write_batch([Rec(0)]), batch[:0] + write_batch([Rec(1, value=b"x" * 500)]), limit=len(batch) - 1)
    assert (caught.value.offset, caught.value.size, caught.value.limit) == (1, len(batch), len(batch) - 1)
    assert "offset 1" in str(caught.value) and "max.message.bytes" in str(caught.value)


def test_sequence_wraps_inside_the_results() -> None:
    batches = opened(*(write_batch([Rec(i * 3 + j) for j in range(3)], Shape(codec=i % 2)) for i in range(3)))
    parts = Rebuilder(1, 0, 1 << 20).rebuild(batches, 0, 2147483646)
    assert [read_header(part.data, 0).base_sequence for part in parts] == [2147483646, 1, 4]


def test_records_below_the_wanted_offset_are_left_out() -> None:
    first = write_batch([Rec(10), Rec(11), Rec(14), Rec(15)], Shape(last_offset=19))
    [rebuilt] = rebuild(first, write_batch([Rec(20)]), from_offset=12)
    assert (rebuilt.count, rebuilt.first_offset, rebuilt.source_next) == (3, 14, 21)


def test_single_record_below_the_wanted_offset_is_left_out() -> None:
    [rebuilt] = rebuild(write_batch([Rec(10)]), write_batch([Rec(11)]), from_offset=11)
    assert (rebuilt.count, rebuilt.first_offset) == (1, 11)


def test_nothing_is_built_from_batches_without_wanted_records() -> None:
    assert rebuild(write_batch([Rec(10)], Shape(last_offset=19)), from_offset=15) == []
    assert rebuild(write_batch([], Shape(base_offset=3, last_offset=8))) == []
    assert Rebuilder(1, 0, 1000).rebuild([], 0, 0) == []


def test_offsets_without_records_at_the_end_are_passed_over() -> None:
    empty = write_batch([], Shape(base_offset=11, last_offset=30, codec=1))
    [rebuilt] = rebuild(write_batch([Rec(10)]), empty)
    assert (rebuilt.count, rebuilt.source_next) == (1, 31)


@pytest.mark.parametrize(("count", "counts"), [(1, [1] * 7), (3, [3, 3, 1]), (7, [7]), (9, [7])])
def test_pieces_have_no_more_records_than_asked_for(count: int, counts: list[int]) -> None:
    batch = write_batch([Rec(100 + i, NOW) for i in range(7)], Shape(last_offset=109))
    pieces = Rebuilder(77, 3, 1 << 20, max_count=count).rebuild(opened(batch), 0, 10)
    assert [piece.count for piece in pieces] == counts
    assert pieces[-1].source_next == 110
    firsts = [read_header(piece.data, 0).base_sequence for piece in pieces]
    assert firsts == [10 + sum(counts[:place]) for place in range(len(counts))]


@pytest.mark.parametrize(("until", "counts"), [(100, []), (101, [1]), (103, [3]), (104, [3, 1]), (107, [3, 4])])
def test_records_from_an_end_on_are_left_out(until: int, counts: list[int]) -> None:
    batches = [write_batch([Rec(100 + i) for i in range(3)]), write_batch([Rec(103 + i) for i in range(4)])]
    pieces = Rebuilder(77, 3, 1 << 20, 1).rebuild(opened(*batches), 0, 10, until)
    assert [piece.count for piece in pieces] == counts
    assert not pieces or pieces[-1].source_next == until


def test_append_time_becomes_the_create_time_of_every_record() -> None:
    shape = Shape(attributes=APPEND_TIME, max_timestamp=NOW + 500)
    [rebuilt] = rebuild(write_batch([Rec(0, NOW), Rec(1, NOW + 3)], shape), write_batch([Rec(2, NOW + 7)], shape))
    assert [record.timestamp for record in read_with_kafka_python(rebuilt.data)] == [NOW + 500] * 3
    assert not read_header(rebuilt.data, 0).is_append_time


def test_missing_timestamps_stay_missing() -> None:
    [rebuilt] = rebuild(write_batch([Rec(0, -1), Rec(1, -1)]), write_batch([Rec(2, -1)]))
    assert [record.timestamp for record in read_with_kafka_python(rebuilt.data)] == [-1, -1, -1]


def test_header_names_that_are_not_utf8_are_copied() -> None:
    batch = write_batch([Rec(0, headers=(("\udcff\udc80", b"v"),)), Rec(1)])
    [rebuilt] = rebuild(batch)
    assert rebuilt.data[61:] == batch[61:]
    assert record_at(memoryview(batch), 0)[3] == ((b"\xff\x80", b"v"),)


@pytest.mark.parametrize("records", [1, 3])
@pytest.mark.parametrize("codec", [0, 3])
def test_damaged_batch_is_not_opened(records: int, codec: int) -> None:
    good = write_batch([Rec(i) for i in range(records)], Shape(codec=codec))
    for at in range(21, len(good)):
        bad = bytearray(good)
        bad[at] ^= 4
        with pytest.raises(CorruptBatch) as caught:
            rebuild(write_batch([Rec(0)]), bad)
        assert caught.value.offset == 0
        with pytest.raises(CorruptBatch):
            last_record(memoryview(bad))


def test_transaction_marker_is_refused() -> None:
    with pytest.raises(HeliographError, match="offset 6 holds a transaction marker"):
        rebuild(write_marker(6, 1, commit=True))


def test_records_that_do_not_fill_their_batch_are_refused() -> None:
    for change in (b"\x00", b"\x80\x80"):
        batch = write_batch([Rec(8), Rec(9)]) + change
        struct.pack_into(">i", batch, 8, len(batch) - 12)
        struct.pack_into(">i", batch, 57, 3 if change != b"\x00" else 2)
        struct.pack_into(">I", batch, 17, calc_crc32c(bytes(batch[21:])))
        with pytest.raises(HeliographError, match="batch at offset 8 do not fill it"):
            rebuild(batch)


@pytest.mark.parametrize(("magic", "codec"), [(0, 0), (0, 1), (1, 0), (1, 1), (1, 3)])
def test_messages_of_old_formats_become_records(magic: int, codec: int) -> None:
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for i, (key, value) in enumerate([(None, b"a"), (b"k", None), (b"", b"x" * 300)]):
        builder.append(i if codec else 50 + i, NOW + i, key, value)
    raw = bytearray(builder.build())
    if codec and magic:
        struct.pack_into(">q", raw, 0, 52)  # a broker gives a compressed message the offset of its last one
    batches = [(memoryview(raw)[at : at + header.size], header) for at, header in walk(raw, 0, len(raw))]
    [rebuilt] = Rebuilder(1, 0, 1 << 20).rebuild(batches, 51 if magic or not codec else 1, 0)
    stamps = [NOW + 1, NOW + 2] if magic else [-1, -1]
    expected = [Rec(0, stamps[0], b"k", None), Rec(1, stamps[1], b"", b"x" * 300)]
    assert read_with_kafka_python(rebuilt.data) == expected
    assert read_header(rebuilt.data, 0).codec == codec
    raw[-1] ^= 1
    with pytest.raises(CorruptBatch):
        Rebuilder(1, 0, 1 << 20).rebuild(batches, 0, 0)


@pytest.mark.parametrize("codec", range(5), ids=CODECS)
def test_last_record_and_record_at_an_offset_are_found(codec: int) -> None:
    batch = memoryview(write_batch(ODD_RECORDS, Shape(codec=codec, last_offset=110)))
    assert last_record(batch) == (NOW, b"k", b"v" * 70)
    timestamp, key, value, headers = record_at(batch, 102)
    assert (timestamp, key, value) == (NOW - 70_000, b"key", b"value")
    assert headers == ((b"b", b"1"), (b"a", b"2"), (b"b", None), (b"", b""), ("ünï".encode(), b"\xff"))
    with pytest.raises(HeliographError, match="offset 100 holds no record with offset 105"):
        record_at(batch, 105)


def test_last_record_of_a_batch_with_append_time_has_that_time() -> None:
    batch = write_batch([Rec(0, NOW)], Shape(attributes=APPEND_TIME, max_timestamp=NOW + 9))
    assert last_record(memoryview(batch)) == (NOW + 9, b"k", b"v")


def test_record_that_ends_before_its_fields_is_refused() -> None:
    """Its batch is valid; only who wants to understand the record can notice."""
    batch = write_batch([Rec(4, key=b"", value=b"")])
    batch[-2] = 100  # a value of 50 bytes that are not there
    struct.pack_into(">I", batch, 17, calc_crc32c(bytes(batch[21:])))
    with pytest.raises(HeliographError, match="record at offset 4 ends before its fields"):
        last_record(memoryview(batch))


def test_last_record_of_nothing_is_refused() -> None:
    with pytest.raises(HeliographError, match="offset 3 holds no record"):
        last_record(memoryview(write_batch([], Shape(base_offset=3, last_offset=4))))
    with pytest.raises(HeliographError, match="30 bytes was cut short"):
        last_record(memoryview(write_batch([Rec(0)])[:30]))


@pytest.mark.parametrize("wanted", range(5), ids=CODECS)
@pytest.mark.parametrize("codec", range(5), ids=CODECS)
def test_records_survive_from_every_codec_into_every_other(codec: int, wanted: int) -> None:
    source = write_batch(ODD_RECORDS, Shape(codec=codec))
    [rebuilt] = Rebuilder(77, 3, 1 << 20, codec=wanted).rebuild(opened(source), 0, 10)
    assert read_header(rebuilt.data, 0).codec == wanted
    assert read_with_aiokafka(rebuilt.data) == renumbered(ODD_RECORDS)


def test_a_batch_that_grows_when_it_is_unpacked_is_split() -> None:
    zstd, none = 4, 0
    source = write_batch([Rec(i, NOW, b"k", b"v" * 500) for i in range(40)], Shape(codec=zstd))
    pieces = Rebuilder(77, 3, 4096, codec=none).rebuild(opened(source), 0, 10)
    assert len(source) < 4096
    assert len(pieces) > 1
    assert all(len(piece.data) <= 4096 for piece in pieces)
    assert sum(piece.count for piece in pieces) == 40
