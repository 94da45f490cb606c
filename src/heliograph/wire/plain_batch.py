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


def plain_batch(rows: Sequence[KeyedValue], timestamp_ms: int) -> bytes:
    """All rows in one batch, with one timestamp; a null value is a tombstone."""
    records = b"".join(_record(index, key, value) for index, (key, value) in enumerate(rows))
    body = _BODY.pack(0, len(rows) - 1, timestamp_ms, timestamp_ms, -1, -1, -1, len(rows)) + records
    length = _HEAD.size - _UNCOUNTED_BYTES + len(body)
    return _HEAD.pack(0, length, _NO_LEADER_EPOCH, _MAGIC, crc32.iscsi(body)) + body


def _record(index: int, key: bytes, value: bytes | None) -> bytes:
    text = zigzag(-1) if value is None else zigzag(len(value)) + value
    body = b"\x00" + zigzag(0) + zigzag(index) + zigzag(len(key)) + key + text + zigzag(0)
    return zigzag(len(body)) + body
