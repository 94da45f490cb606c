"""Records are taken apart and put together without being understood."""

from __future__ import annotations

from heliograph.wire.record_batch import HEADER_BYTES, read_header
from heliograph.wire.records import OpenedRecords, Record, read_records
from tests.unit.wire.batches import NOW, Rec, Shape, write_batch

RECORDS = [
    Rec(20, NOW, None, b"a"),
    Rec(21, NOW + 9000, b"k", None, (("h", b"1"),)),
    Rec(22, NOW - 1, b"", b"x" * 9000),
]


def open_batch(batch: bytearray, from_offset: int = 0) -> OpenedRecords:
    opened = OpenedRecords()
    opened.add_all([(memoryview(batch), read_header(batch, 0))], from_offset)
    return opened


def test_dense_batch_is_encoded_to_its_own_bytes() -> None:
    batch = write_batch(RECORDS)
    opened = open_batch(batch)
    assert opened.encode(0, 3) == batch[HEADER_BYTES:]
    assert (opened.offsets, opened.timestamps) == ([20, 21, 22], [NOW, NOW + 9000, NOW - 1])
    assert [owner.base_offset for owner in opened.owners] == [20, 20, 20]


def test_any_stretch_is_encoded_as_if_it_stood_alone() -> None:
    opened = open_batch(write_batch(RECORDS))
    for start, end in ((0, 1), (1, 2), (1, 3), (2, 3)):
        assert opened.encode(start, end) == write_batch(RECORDS[start:end])[HEADER_BYTES:]


def test_records_below_the_wanted_offset_are_left_out() -> None:
    assert open_batch(write_batch(RECORDS), from_offset=22).offsets == [22]
    assert len(open_batch(write_batch(RECORDS), from_offset=23)) == 0


def test_records_are_understood() -> None:
    batch = write_batch(RECORDS, Shape(codec=4))
    assert list(read_records(memoryview(batch), read_header(batch, 0))) == [
        Record(20, NOW, None, b"a", ()),
        Record(21, NOW + 9000, b"k", None, ((b"h", b"1"),)),
        Record(22, NOW - 1, b"", b"x" * 9000, ()),
    ]
