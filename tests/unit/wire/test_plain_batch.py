"""Batches of our own making are read by an implementation that is not ours."""

from __future__ import annotations

from aiokafka.record.default_records import DefaultRecordBatch

from heliograph.wire.plain_batch import plain_batch


def test_an_independent_reader_finds_every_key_value_and_tombstone() -> None:
    rows = [(b"a/1", b"{}"), (b"gone", None), (b"long", b"x" * 5000)]
    batch = DefaultRecordBatch(plain_batch(rows, 1_700_000_000_000))
    assert batch.validate_crc()
    found = [(record.key, record.value, record.offset, record.timestamp) for record in batch]
    assert found == [(key, value, index, 1_700_000_000_000) for index, (key, value) in enumerate(rows)]


def test_it_carries_no_producer_identity() -> None:
    batch = DefaultRecordBatch(plain_batch([(b"k", b"v")], 1))
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
