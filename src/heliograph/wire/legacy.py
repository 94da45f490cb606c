"""Messages of magic 0 and 1, as brokers before 0.11 wrote them and 4.x still serves them.

    offset i64, length i32, crc-32 u32 (of all that follows), magic i8, attributes i8, [timestamp i64 in magic 1],
    key bytes, value bytes (each with an i32 length, -1 for null)

A compressed message holds a set of messages in its value. In magic 1 the inner offsets count from 0 and the outer one
is the last; in magic 0 they are absolute. There are no headers. Only read here: nothing writes this format any more.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from heliograph.wire.compression import decompress
from heliograph.wire.record_batch import APPEND_TIME_BIT, CODEC_BITS, BatchHeader, Buffer, walk

_LENGTH = Struct(">i")
_CRC_STARTS_AT = 16
_KEY_STARTS_AT = (18, 26)


class LegacyMessage(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def legacy_crc_is_valid(message: Buffer, header: BatchHeader) -> bool:
    return zlib.crc32(memoryview(message)[_CRC_STARTS_AT : header.size]) == header.crc


def read_messages(message: Buffer, header: BatchHeader) -> Iterator[LegacyMessage]:
    """The message itself, or those inside it."""
    key, value = _key_and_value(message, header)
    if not header.attributes & CODEC_BITS:
        yield LegacyMessage(header.base_offset, header.base_timestamp, key, value)
        return
    inner_set = decompress(header.codec, value or b"")
    inner = list(walk(inner_set, 0, len(inner_set)))
    first = header.base_offset - inner[-1][1].base_offset if inner and header.magic == 1 else 0
    for at, inner_header in inner:
        append_time = header.attributes & APPEND_TIME_BIT
        timestamp = header.base_timestamp if append_time else inner_header.base_timestamp
        pair = _key_and_value(memoryview(inner_set)[at : at + inner_header.size], inner_header)
        yield LegacyMessage(first + inner_header.base_offset, timestamp, *pair)


def _key_and_value(message: Buffer, header: BatchHeader) -> tuple[bytes | None, bytes | None]:
    key, at = _read_bytes(message, _KEY_STARTS_AT[header.magic])
    value, _ = _read_bytes(message, at)
    return key, value


def _read_bytes(buf: Buffer, at: int) -> tuple[bytes | None, int]:
    length: int = _LENGTH.unpack_from(buf, at)[0]
    if length < 0:
        return None, at + 4
    return bytes(buf[at + 4 : at + 4 + length]), at + 4 + length
