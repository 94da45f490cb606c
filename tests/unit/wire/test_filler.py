"""Filler as another client's reader sees it."""

from __future__ import annotations

import pytest

from heliograph.wire.filler import MOST, RECORD_BYTES, filler_batch
from heliograph.wire.record_batch import HEADER_BYTES, crc_is_valid, read_header
from heliograph.wire.records import read_records

NOW = 1_700_000_000_000


@pytest.mark.parametrize("count", [1, 2, 127, 5_000])
def test_filler_is_so_many_empty_records_under_the_lanes_identity(count: int) -> None:
    batch = filler_batch(count, (4711, 3), 0x7FFFFFFF, NOW)
    header = read_header(batch, 0)
    assert crc_is_valid(batch, 0, header.size) and header.size == len(batch)
    assert (header.count, header.last_offset_delta, header.is_dense) == (count, count - 1, True)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4711, 3, 0x7FFFFFFF)
    assert (header.base_timestamp, header.max_timestamp, header.is_transactional) == (NOW, NOW, False)
    read = list(read_records(memoryview(batch), header))
    assert [record.offset for record in read] == list(range(count))
    assert {(record.timestamp, record.key, record.value, tuple(record.headers)) for record in read} == {
        (NOW, b"", None, ())
    }


def test_the_largest_batch_compresses_to_a_tenth_and_stays_below_kafkas_limit_unpacked() -> None:
    batch = filler_batch(MOST, (1, 0), 0, NOW)
    assert len(batch) < MOST * RECORD_BYTES / 10
    assert MOST * RECORD_BYTES + HEADER_BYTES < 1_048_588
