"""A record batch as a view: read its header, walk a fetched range, restamp a batch in place.

    at  0  base offset i64            at 27  base timestamp i64
    at  8  length after this i32      at 35  max timestamp i64
    at 12  leader epoch i32           at 43  producer id i64
    at 16  magic i8                   at 51  producer epoch i16
    at 17  CRC-32C of 21..end u32     at 53  base sequence i32
    at 21  attributes i16             at 57  record count i32
    at 23  last offset delta i32      at 61  records

Must not know what is in the records (`records` does), nor which batches may be forwarded: the caller decides that.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple, TypeAlias

from fastcrc import crc32

from heliograph.wire.carried_crc import carry, carry_crc

__all__ = ["HEADER_BYTES", "BatchHeader", "Buffer", "carry_crc", "crc_is_valid", "read_header", "restamp", "walk"]

Buffer: TypeAlias = bytes | bytearray | memoryview

HEADER_BYTES = 61
CRC_STARTS_AT = 21
CODEC_BITS = 0x07
APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
UNKNOWN_COUNT = -1

_BEFORE_LENGTH_ENDS = 12
_LEGACY_HEADER_BYTES = 18  # up to and including the attributes of magic 0
_LEGACY_SMALLEST = 26  # offset, length, crc, magic, attributes, null key, null value
_LEGACY_ATTRIBUTES = 0x0F
_MAGIC_AT = 16
_NO_EPOCH = -1

_HEADER = Struct(">qiibIhiqqqhii")
_LEGACY_HEADER = Struct(">qiIbb")
_LEGACY_TIMESTAMP = Struct(">q")
_STAMP = Struct(">qiibIh")
_IDENTITY = Struct(">qhi")
_CHANGED_BITS = Struct(">H20xQHI4x")
_CRC = Struct(">I")


class BatchHeader(NamedTuple):
    """The header of one batch; `size` is that of the whole batch, its first 12 bytes included.

    A message of magic 0 or 1 has no such header: it is given as one batch without producer, with its own offset as base
    and an unknown count (-1), so it is never dense. A compressed one carries the offset of its last inner message, so
    `next_offset` is right for both.
    """

    base_offset: int
    size: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody wants of a header

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_BITS

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_append_time(self) -> bool:
        return self.attributes & APPEND_TIME_BIT != 0

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def is_dense(self) -> bool:
        """Offset deltas strictly increase, so as many records as offsets proves that there is no gap."""
        return self.count == self.last_offset_delta + 1 and self.count > 0


# tuple.__new__ skips the generated __new__ of the named tuple, which costs as much as unpacking the header.
_new = tuple.__new__
_unpack = _HEADER.unpack_from


def read_header(buf: Buffer, at: int) -> BatchHeader:
    base, length, epoch, magic, crc, bits, delta, first, last, pid, pid_epoch, sequence, count = _unpack(buf, at)
    if magic < 2:
        return _read_legacy_header(buf, at)
    fields = (base, length + 12, epoch, magic, crc, bits, delta, first, last, pid, pid_epoch, sequence, count)
    return _new(BatchHeader, fields)


def _read_legacy_header(buf: Buffer, at: int) -> BatchHeader:
    offset, length, crc, magic, attributes = _LEGACY_HEADER.unpack_from(buf, at)
    timestamp = _LEGACY_TIMESTAMP.unpack_from(buf, at + _LEGACY_HEADER_BYTES)[0] if magic == 1 else -1
    return BatchHeader(
        base_offset=offset,
        size=length + _BEFORE_LENGTH_ENDS,
        leader_epoch=_NO_EPOCH,
        magic=magic,
        crc=crc,
        attributes=attributes & _LEGACY_ATTRIBUTES,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=UNKNOWN_COUNT,
    )


def walk(buf: Buffer, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Every whole batch between start and end, with its place in the buffer.

    Brokers cut a fetch by bytes, so the last batch is often incomplete: the walk ends before it, and before bytes whose
    length field cannot be one. Batches of other magics are given too, for the caller to judge.
    """
    at = start
    last_header = end - HEADER_BYTES
    while at + _LEGACY_SMALLEST <= end:
        if at <= last_header:
            # read_header, written out: the call would be a fifth of the walk.
            base, length, epoch, magic, crc, bits, delta, first, last, pid, pid_epoch, sequence, count = _unpack(
                buf, at
            )
            if magic >= 2:
                size = length + 12
                if size < HEADER_BYTES or at + size > end:
                    return
                fields = (base, size, epoch, magic, crc, bits, delta, first, last, pid, pid_epoch, sequence, count)
                yield at, _new(BatchHeader, fields)
                at += size
                continue
        legacy = _legacy_message(buf, at, end)
        if legacy is None:
            return
        yield at, legacy
        at += legacy.size


def _legacy_message(buf: Buffer, at: int, end: int) -> BatchHeader | None:
    """The whole message of magic 0 or 1 at `at`, which may be smaller than a batch header; None if there is none."""
    if buf[at + _MAGIC_AT] >= 2:
        return None
    header = _read_legacy_header(buf, at)
    if header.size < _LEGACY_SMALLEST or at + header.size > end:
        return None
    return header


def restamp(
    buf: bytearray | memoryview, at: int, header: BatchHeader, producer_id: int, producer_epoch: int, sequence: int
) -> None:
    """Make the batch at `at` ours, in place: base offset 0, no leader epoch, only the codec bits, the given identity.

    The CRC is carried, never recomputed. The last offset delta is never touched: with a patched one an unmodified
    broker accepts a batch with gaps, and its log is corrupt.
    """
    _, size, _, magic, crc, attributes, _, _, _, old_id, old_epoch, old_sequence, _ = header
    codec = attributes & CODEC_BITS
    changed = _CHANGED_BITS.pack(
        (attributes ^ codec) & 0xFFFF,
        (old_id ^ producer_id) & 0xFFFFFFFFFFFFFFFF,
        (old_epoch ^ producer_epoch) & 0xFFFF,
        (old_sequence ^ sequence) & 0xFFFFFFFF,
    )
    _STAMP.pack_into(buf, at, 0, size - 12, _NO_EPOCH, magic, carry(crc, changed, size - HEADER_BYTES), codec)
    _IDENTITY.pack_into(buf, at + 43, producer_id, producer_epoch, sequence)


def crc_is_valid(buf: Buffer, at: int, size: int) -> bool:
    stored: int = _CRC.unpack_from(buf, at + 17)[0]
    computed: int = crc32.iscsi(memoryview(buf)[at + CRC_STARTS_AT : at + size])
    return stored == computed
