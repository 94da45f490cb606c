"""Batches of our own making are read by an implementation that is not ours."""

from __future__ import annotations

from aiokafka.record.default_records import DefaultRecordBatch

from heliograph.wire.plain_batch import plain_batch, plain_record_batch


def test_an_independent_reader_finds_every_key_value_and_tombstone() -> None:
    rows = [(b"a/1", b"{}"), (b"gone", None), (b"long", b"x" * 5000)]
    batch = DefaultRecordBatch(plain_batch(rows, 1_700_000_000_000))
    assert batch.validate_crc()
    found = [(record.key, record.value, record.offset, record.timestamp) for record in batch]
    assert found == [(key, value, index, 1_700_000_000_000) for index, (key, value) in enumerate(rows)]


def test_it_carries_no_producer_identity() -> None:
    batch = DefaultRecordBatch(plain_batch([(b"k", b"v")], 1))
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)


def test_a_record_with_headers_and_without_key_or_value_is_read_as_it_was_written() -> None:
    headers = [(b"a", b"1"), (b"b", None), (b"a", b"")]
    batch = DefaultRecordBatch(plain_record_batch(None, None, headers, 7))
    assert batch.validate_crc()
    [record] = list(batch)
    assert (record.key, record.value, record.timestamp) == (None, None, 7)
    assert list(record.headers) == [("a", b"1"), ("b", None), ("a", b"")]
