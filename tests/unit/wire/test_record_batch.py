"""Headers are read, walked and restamped; the checksum is carried and never hides damage."""

from __future__ import annotations

import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.util import calc_crc32c

from heliograph.wire.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    crc_is_valid,
    read_header,
    restamp,
    walk,
)
from tests.unit.wire.batches import (
    APPEND_TIME,
    CODECS,
    CONTROL,
    DELETE_HORIZON,
    NOW,
    TRANSACTIONAL,
    Rec,
    Shape,
    read_with_aiokafka,
    write_batch,
    write_marker,
)

GOLDEN = bytes.fromhex(
    "000000000000002a"  # base offset 42
    "0000003c"  # 60 bytes follow
    "00000007"  # leader epoch
    "02"  # magic
    "23edda52"  # crc
    "0010"  # transactional
    "00000000"  # last offset delta
    "0000018bcfe56800"  # base timestamp
    "0000018bcfe56800"  # max timestamp
    "0000000000000309"  # producer id 777
    "0002"  # producer epoch
    "00000005"  # base sequence
    "00000001"  # count
    "14000000026b0676616c00"  # one record: key k, value val
)


def legacy(magic: int, records: list[tuple[int, bytes]], codec: int = 0) -> bytes:
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for offset, value in records:
        builder.append(offset, NOW, None, value)
    return bytes(builder.build())


def test_header_of_a_golden_batch_is_read_field_by_field() -> None:
    header = read_header(GOLDEN, 0)
    assert header == BatchHeader(
        base_offset=42,
        size=72,
        leader_epoch=7,
        magic=2,
        crc=0x23EDDA52,
        attributes=0x10,
        last_offset_delta=0,
        base_timestamp=NOW,
        max_timestamp=NOW,
        producer_id=777,
        producer_epoch=2,
        base_sequence=5,
        count=1,
    )
    assert header.next_offset == 43


def test_restamped_golden_batch_has_these_bytes() -> None:
    batch = bytearray(GOLDEN)
    restamp(batch, 0, read_header(batch, 0), 0x0102030405060708, 9, 0x0A0B0C0D)
    assert batch == bytes.fromhex(
        "0000000000000000"  # base offset
        "0000003c"
        "ffffffff"  # leader epoch
        "02"
        "41b55c0e"  # crc, computed by another program
        "0000"  # no attributes
        "00000000"
        "0000018bcfe56800"
        "0000018bcfe56800"
        "0102030405060708"  # producer id
        "0009"  # producer epoch
        "0a0b0c0d"  # base sequence
        "00000001"
        "14000000026b0676616c00"
    )


@pytest.mark.parametrize("codec", range(5), ids=CODECS)
def test_header_agrees_with_two_other_implementations(codec: int) -> None:
    shape = Shape(codec=codec, attributes=TRANSACTIONAL | APPEND_TIME, producer=(1 << 40, 3, 99), max_timestamp=NOW + 9)
    batch = bytes(write_batch([Rec(70), Rec(71), Rec(75)], shape))
    header = read_header(b"xyz" + batch, 3)
    for other in (AiokafkaBatch(batch), KafkaPythonBatch(batch)):
        assert header.base_offset == other.base_offset
        assert header.next_offset == other.next_offset
        assert header.crc == other.crc
        assert header.codec == other.compression_type == codec
        assert header.attributes == other.attributes
        assert header.last_offset_delta == other.last_offset_delta
        assert (header.base_timestamp, header.max_timestamp) == (other.first_timestamp, other.max_timestamp)
        assert (header.producer_id, header.producer_epoch) == (other.producer_id, other.producer_epoch)
        assert header.base_sequence == other.base_sequence
        assert header.is_transactional and other.is_transactional
        assert not header.is_control and not other.is_control_batch
        assert header.is_append_time
    assert header.size == len(batch)
    assert header.leader_epoch == KafkaPythonBatch(batch).leader_epoch == 4
    assert header.count == KafkaPythonBatch(batch).records_count == 3


def test_only_as_many_records_as_offsets_is_dense() -> None:
    assert read_header(write_batch([Rec(5), Rec(6)]), 0).is_dense
    assert not read_header(write_batch([Rec(5), Rec(7)]), 0).is_dense
    assert not read_header(write_batch([Rec(5), Rec(6)], Shape(last_offset=8)), 0).is_dense
    assert not read_header(write_batch([], Shape(base_offset=5, last_offset=4)), 0).is_dense


def test_marker_is_a_control_batch() -> None:
    assert read_header(write_marker(9, 1, commit=True), 0).is_control


def test_walk_gives_whole_batches_and_stops_at_the_cut_tail() -> None:
    batches = [write_batch([Rec(0), Rec(1)]), write_batch([Rec(2)]), write_batch([Rec(3, value=b"x" * 500)])]
    buffer = b"head" + b"".join(batches)
    end = len(buffer)
    assert [(at, header.base_offset) for at, header in walk(buffer, 4, end)] == [
        (4, 0),
        (4 + len(batches[0]), 2),
        (4 + len(batches[0]) + len(batches[1]), 3),
    ]
    whole = end - len(batches[2])
    for cut in range(whole, end):
        assert [header.base_offset for _, header in walk(memoryview(buffer), 4, cut)] == [0, 2]


def test_walk_of_nothing_gives_nothing() -> None:
    assert list(walk(b"", 0, 0)) == []
    assert list(walk(bytes(60), 0, 60)) == []


@pytest.mark.parametrize("length", [-13, -12, 0, 48, 1 << 30])
def test_walk_ends_where_a_length_cannot_be_one(length: int) -> None:
    batch = write_batch([Rec(0)])
    broken = bytearray(batch)
    struct.pack_into(">i", broken, 8, length)
    assert [header.base_offset for _, header in walk(batch + broken, 0, len(batch) * 2)] == [0]


@pytest.mark.parametrize("magic", [3, 127, -1, -128])
def test_walk_over_an_unknown_magic_does_not_raise(magic: int) -> None:
    batch = write_batch([Rec(0)])
    struct.pack_into(">b", batch, 16, magic)
    headers = [header for _, header in walk(batch, 0, len(batch))]
    assert [header.magic for header in headers] == ([magic] if magic > 0 else [])


@pytest.mark.parametrize("magic", [0, 1])
def test_small_messages_of_old_formats_are_walked_too(magic: int) -> None:
    messages = legacy(magic, [(10, b"a"), (11, b"b" * 200), (12, b"c")])
    buffer = messages + write_batch([Rec(13)]) + legacy(magic, [(14, b"")])
    headers = [header for _, header in walk(buffer, 0, len(buffer))]
    assert [(header.base_offset, header.next_offset, header.magic) for header in headers] == [
        (10, 11, magic),
        (11, 12, magic),
        (12, 13, magic),
        (13, 14, 2),
        (14, 15, magic),
    ]
    old = headers[0]
    assert not old.is_dense and not old.is_control and not old.is_transactional
    assert (old.producer_id, old.count, old.leader_epoch) == (-1, -1, -1)
    assert old.max_timestamp == (NOW if magic else -1)
    assert list(walk(messages, 0, len(messages) - 1))[-1][1].base_offset == 11
    assert read_header(messages + bytes(61), 0) == old


@pytest.mark.parametrize("codec", range(5), ids=CODECS)
def test_restamped_batch_keeps_its_records_and_has_a_valid_checksum(codec: int) -> None:
    records = [Rec(70 + i, NOW + i, b"k%d" % i, b"v" * 50 * i, (("h", None), ("", b"x"))) for i in range(20)]
    everything = TRANSACTIONAL | APPEND_TIME | CONTROL | DELETE_HORIZON | 0x7F80
    original = write_batch(records, Shape(codec=codec, attributes=everything, producer=(1234, 5, 6), max_timestamp=NOW))
    buffer = bytearray(b"..." + original + b"...")
    restamp(buffer, 3, read_header(buffer, 3), (1 << 63) - 1, 32767, 2147483647)
    batch = buffer[3:-3]
    assert buffer[:3] == buffer[-3:] == b"..."
    assert crc_is_valid(buffer, 3, len(batch))
    header = read_header(batch, 0)
    assert header.crc == calc_crc32c(bytes(batch[21:]))
    assert (header.base_offset, header.leader_epoch, header.attributes) == (0, -1, codec)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == ((1 << 63) - 1, 32767, 2147483647)
    before = read_header(original, 0)
    kept = ("size", "magic", "last_offset_delta", "base_timestamp", "max_timestamp", "count")
    assert all(getattr(header, field) == getattr(before, field) for field in kept)
    assert batch[HEADER_BYTES:] == original[HEADER_BYTES:]
    assert [record.value for record in read_with_aiokafka(batch)] == [record.value for record in records]


def test_every_flipped_bit_stays_visible_after_restamping() -> None:
    original = write_batch([Rec(7, value=b"payload")], Shape(producer=(5, 0, 1), attributes=TRANSACTIONAL))
    header = read_header(original, 0)
    rewritten = {*range(8), *range(12, 16), *range(17, 23), *range(43, 57)}
    for at in range(21, len(original)):
        for bit in range(8):
            batch = bytearray(original)
            batch[at] ^= 1 << bit
            restamp(batch, 0, read_header(batch, 0), 99, 0, 3)
            assert not crc_is_valid(batch, 0, len(batch)), "damage before the header was read"
            batch = bytearray(original)
            batch[at] ^= 1 << bit
            restamp(batch, 0, header, 99, 0, 3)
            assert crc_is_valid(batch, 0, len(batch)) == (at in rewritten), "damage after the header was read"
