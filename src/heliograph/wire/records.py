"""The records inside a batch, kept as bytes.

    length varint, attributes i8, timestamp delta varlong, offset delta varint, rest: key, value, headers

Merging, splitting and closing gaps change only the three numbers in front. `rest` is copied whole and never understood,
so nothing in a key, a value or a header (nulls, order, repeated or undecodable names) can be changed by it.
`read_records` understands it, for the few records that must be compared.

A batch is verified against its CRC before it is opened. Must not know identities or size limits: `rebuild` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fastcrc import crc32

from heliograph.errors import HeliographError
from heliograph.wire.compression import MAX_BYTES, decompress
from heliograph.wire.legacy import legacy_crc_is_valid, read_messages
from heliograph.wire.record_batch import (
    APPEND_TIME_BIT,
    CODEC_BITS,
    CONTROL_BIT,
    CRC_STARTS_AT,
    HEADER_BYTES,
    BatchHeader,
)
from heliograph.wire.varint import read_zigzag, zigzag

Batch = tuple[memoryview, BatchHeader]
Headers = tuple[tuple[bytes, bytes | None], ...]

_TABLE = 8192  # numbers that fit one or two bytes
_ZIGZAG = [zigzag(number) for number in range(_TABLE)]
_NO_ATTRIBUTES = b"\x00"
_FIRST_RECORD = b"\x00\x00\x00"  # no attributes, timestamp delta 0, offset delta 0
_NOT_PLAIN = CODEC_BITS | APPEND_TIME_BIT | CONTROL_BIT

_iscsi = crc32.iscsi


class CorruptBatch(HeliographError):
    """A fetched batch does not match its own CRC: fetch it again."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"The batch at source offset {offset} does not match its CRC.")
        self.offset = offset


class Record(NamedTuple):
    """One record as a consumer sees it; header names stay bytes, because not every producer writes UTF-8."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class OpenedRecords:
    """The records of some neighbouring batches, in order: four lists of one length."""

    __slots__ = ("_left", "offsets", "owners", "rests", "timestamps")

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.timestamps: list[int] = []
        self.rests: list[bytes] = []
        self.owners: list[BatchHeader] = []
        self._left = MAX_BYTES
        """So much more may be opened."""

    def __len__(self) -> int:
        return len(self.rests)

    def add_all(self, batches: Iterable[Batch], from_offset: int) -> None:
        """Verify and open batches; records below from_offset are left out."""
        rests, timestamps, offsets, owners = self.rests, self.timestamps, self.offsets, self.owners
        for batch, header in batches:
            # One small uncompressed record whose deltas are 0 is what a producer without linger writes, by the hundred
            # thousand: fields by index, one copy, no calls.
            if header[12] == 1 and header[1] < _TABLE and header[0] >= from_offset and not header[5] & _NOT_PLAIN:
                raw = bytes(batch)
                rest_at = 65 if raw[61] < 0x80 else 66
                if raw[rest_at - 3 : rest_at] == _FIRST_RECORD:
                    if _iscsi(raw[CRC_STARTS_AT:]) != header[4]:
                        raise CorruptBatch(header[0])
                    rests.append(raw[rest_at:])
                    timestamps.append(header[7])
                    offsets.append(header[0])
                    owners.append(header)
                    continue
            self._add(batch, header, from_offset)

    def _add(self, batch: memoryview, header: BatchHeader, from_offset: int) -> None:
        _verify(batch, header)
        if header.is_control:
            raise HeliographError(f"The batch at offset {header.base_offset} holds a transaction marker: not data.")
        if header.magic < 2:
            self._add_legacy(batch, header, from_offset)
        elif header.count > 0:
            section = decompress(header.codec, batch[HEADER_BYTES:], self._left)
            self._left -= len(section)
            self._add_section(section, header, from_offset)

    def _add_section(self, section: bytes, header: BatchHeader, from_offset: int) -> None:
        offsets, timestamps, rests = _split(section, header)
        if header.attributes & APPEND_TIME_BIT:
            timestamps = [header.max_timestamp] * len(offsets)
        if offsets[0] < from_offset:
            skipped = sum(offset < from_offset for offset in offsets)
            del offsets[:skipped], timestamps[:skipped], rests[:skipped]
        self.offsets += offsets
        self.timestamps += timestamps
        self.rests += rests
        self.owners += [header] * len(offsets)

    def _add_legacy(self, message: memoryview, header: BatchHeader, from_offset: int) -> None:
        for inner in read_messages(message, header):
            if inner.offset >= from_offset:
                self.offsets.append(inner.offset)
                self.timestamps.append(inner.timestamp)
                self.rests.append(_sized(inner.key) + _sized(inner.value) + _ZIGZAG[0])
                self.owners.append(header)

    def encode(self, start: int, end: int) -> bytes:
        """The records section that holds records start to end with dense offset deltas from 0, uncompressed."""
        base = previous = self.timestamps[start]
        timestamp_part = _NO_ATTRIBUTES + _ZIGZAG[0]
        parts: list[bytes] = []
        records = zip(self.timestamps[start:end], self.rests[start:end], strict=True)
        for delta, (timestamp, rest) in enumerate(records):
            if timestamp != previous:
                previous = timestamp
                timestamp_part = _NO_ATTRIBUTES + _zigzag_of(timestamp - base)
            offset_part = _ZIGZAG[delta] if delta < _TABLE else zigzag(delta)
            length = len(timestamp_part) + len(offset_part) + len(rest)
            parts += (_ZIGZAG[length] if length < _TABLE else zigzag(length), timestamp_part, offset_part, rest)
        return b"".join(parts)


def _zigzag_of(number: int) -> bytes:
    return _ZIGZAG[number] if 0 <= number < _TABLE else zigzag(number)


def _verify(batch: memoryview, header: BatchHeader) -> None:
    is_legacy = header.magic < 2
    if not (legacy_crc_is_valid(batch, header) if is_legacy else _iscsi(batch[CRC_STARTS_AT:]) == header.crc):
        raise CorruptBatch(header.base_offset)


def _split(section: bytes, header: BatchHeader) -> tuple[list[int], list[int], list[bytes]]:
    """Offsets, timestamps and rests of a decompressed records section."""
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    offsets: list[int] = []
    timestamps: list[int] = []
    rests: list[bytes] = []
    at = 0
    try:
        for _ in range(header.count):
            # Numbers of one or two bytes are read in place: a call costs more than the rest of the loop.
            low, high = section[at], section[at + 1]
            if low < 0x80:
                length, at = low >> 1, at + 1
            elif high < 0x80:
                length, at = (low & 0x7E | high << 7) >> 1, at + 2
            else:
                length, at = read_zigzag(section, at)
            end = at + length
            low = section[at + 1]
            if low < 0x80:
                timestamps.append(base_timestamp + ((low >> 1) ^ -(low & 1)))
                at += 2
            else:
                delta, at = read_zigzag(section, at + 1)
                timestamps.append(base_timestamp + delta)
            low, high = section[at], section[at + 1]
            if low < 0x80:
                offsets.append(base_offset + (low >> 1))
                rests.append(section[at + 1 : end])
            elif high < 0x80:
                offsets.append(base_offset + ((low & 0x7E | high << 7) >> 1))
                rests.append(section[at + 2 : end])
            else:
                delta, at = read_zigzag(section, at)
                offsets.append(base_offset + delta)
                rests.append(section[at:end])
            at = end
    except IndexError:
        at = -1
    if at != len(section):
        raise HeliographError(
            f"The records of the batch at offset {base_offset} do not fill it: it was written wrongly."
        )
    return offsets, timestamps, rests


def read_records(batch: memoryview, header: BatchHeader) -> Iterator[Record]:
    """The records of one batch, understood."""
    opened = OpenedRecords()
    opened.add_all([(batch, header)], from_offset=0)
    for offset, timestamp, rest in zip(opened.offsets, opened.timestamps, opened.rests, strict=True):
        try:
            yield _understand(offset, timestamp, rest)
        except IndexError as fault:
            raise HeliographError(
                f"The record at offset {offset} ends before its fields: it was written wrongly."
            ) from fault


def _understand(offset: int, timestamp: int, rest: bytes) -> Record:
    key, at = _read_sized(rest, 0)
    value, at = _read_sized(rest, at)
    count, at = read_zigzag(rest, at)
    headers = []
    for _ in range(count):
        name, at = _read_sized(rest, at)
        header_value, at = _read_sized(rest, at)
        headers.append((name or b"", header_value))
    return Record(offset, timestamp, key, value, tuple(headers))


def _sized(value: bytes | None) -> bytes:
    return zigzag(-1) if value is None else zigzag(len(value)) + value


def _read_sized(buf: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = read_zigzag(buf, at)
    if length < 0:
        return None, at
    return buf[at : at + length], at + length
