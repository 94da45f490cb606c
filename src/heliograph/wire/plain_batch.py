"""A batch of our own making: a few uncompressed records without producer identity, for the ledger and telemetry topics.

What lanes carry is never made here: forwarded batches keep their bytes, rebuilt ones come from `rebuild`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from fastcrc import crc32

from heliograph.wire.varint import zigzag

_BODY = struct.Struct(">hiqqqhii")
_HEAD = struct.Struct(">qiibI")
_NO_LEADER_EPOCH = -1
_MAGIC = 2
_UNCOUNTED_BYTES = 12  # base offset and length

KeyedValue = tuple[bytes, bytes | None]
Headers = Sequence[tuple[bytes, bytes | None]]


def plain_batch(rows: Sequence[KeyedValue], timestamp_ms: int) -> bytes:
    """All rows in one batch, with one timestamp; a null value is a tombstone."""
    records = b"".join(_record(index, key, value, ()) for index, (key, value) in enumerate(rows))
    return _batch(records, len(rows), timestamp_ms)


def plain_record_batch(key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int) -> bytes:
    """One record with headers."""
    return _batch(_record(0, key, value, headers), 1, timestamp_ms)


def _batch(records: bytes, count: int, timestamp_ms: int) -> bytes:
    body = _BODY.pack(0, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count) + records
    length = _HEAD.size - _UNCOUNTED_BYTES + len(body)
    return _HEAD.pack(0, length, _NO_LEADER_EPOCH, _MAGIC, crc32.iscsi(body)) + body


def _record(index: int, key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    parts = [b"\x00", zigzag(0), zigzag(index), _sized(key), _sized(value), zigzag(len(headers))]
    parts += (part for name, content in headers for part in (_sized(name), _sized(content)))
    body = b"".join(parts)
    return zigzag(len(body)) + body


def _sized(value: bytes | None) -> bytes:
    return zigzag(-1) if value is None else zigzag(len(value)) + value
