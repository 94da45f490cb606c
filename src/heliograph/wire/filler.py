"""Filler: batches of many empty records that compress to almost nothing, for offsets that a remote partition must pass over.

Every record has an empty key and no value: a compacted topic takes it too. Only the header differs from batch to batch.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from fastcrc import crc32

from heliograph.wire.compression import ZSTD, compress
from heliograph.wire.varint import zigzag

MOST = 100_000
"""Records in one batch: unpacked, as a topic of another codec would have it, it stays below Kafka's default limit of 1 MB."""
RECORD_BYTES = 10
"""More than any of them needs unpacked."""
_COVERED = struct.Struct(">hiqqqhii")
_HEAD = struct.Struct(">qiibI")
_MAGIC = 2
_UNCOUNTED_BYTES = 12
_BETWEEN = b"\x00\x00"  # no attributes, no later than the first
_AFTER = zigzag(0) + zigzag(-1) + zigzag(0)  # an empty key, no value, no headers


@lru_cache(maxsize=4)
def _records(count: int) -> bytes:
    bodies = (_BETWEEN + zigzag(number) + _AFTER for number in range(count))
    return compress(ZSTD, b"".join(zigzag(len(body)) + body for body in bodies))


def filler_batch(count: int, identity: tuple[int, int], sequence: int, timestamp_ms: int) -> bytes:
    """`count` empty records under a producer id and epoch, numbered from `sequence`."""
    records = _records(count)
    covered = _COVERED.pack(ZSTD, count - 1, timestamp_ms, timestamp_ms, *identity, sequence, count)
    length = _HEAD.size - _UNCOUNTED_BYTES + len(covered) + len(records)
    return _HEAD.pack(0, length, -1, _MAGIC, crc32.iscsi(records, crc32.iscsi(covered))) + covered + records
