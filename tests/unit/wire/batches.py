"""Record batches for the wire tests, written and read without Heliograph's code.

Written by hand, field after field, so that gaps, markers and odd headers can be made; compressed by aiokafka; checksums
by kafka-python in pure Python. Read by aiokafka's Cython classes, and by kafka-python where it has the codec.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import aiokafka.codec
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.util import calc_crc32c

COMPRESS = (bytes, aiokafka.codec.gzip_encode, aiokafka.codec.snappy_encode, aiokafka.codec.lz4_encode)
COMPRESS += (aiokafka.codec.zstd_encode,)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
KAFKA_PYTHON_READS = ("none", "gzip", "lz4")
NOW = 1_700_000_000_000

APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40


@dataclass(frozen=True)
class Rec:
    offset: int
    timestamp: int = NOW
    key: bytes | None = b"k"
    value: bytes | None = b"v"
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Shape:
    """The header fields that a test cares about; last_offset defaults to that of the last record."""

    codec: int = 0
    attributes: int = 0
    base_offset: int | None = None
    last_offset: int | None = None
    base_timestamp: int | None = None
    max_timestamp: int | None = None
    leader_epoch: int = 4
    producer: tuple[int, int, int] = (-1, -1, -1)


PLAIN = Shape()


def varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def write_record(record: Rec, base_offset: int, base_timestamp: int) -> bytes:
    body = b"\0" + varint(record.timestamp - base_timestamp) + varint(record.offset - base_offset)
    body += sized(record.key) + sized(record.value) + varint(len(record.headers))
    for name, value in record.headers:
        body += sized(name.encode("utf-8", "surrogateescape")) + sized(value)
    return varint(len(body)) + body


def write_batch(records: Sequence[Rec], shape: Shape = PLAIN) -> bytearray:
    base = shape.base_offset if shape.base_offset is not None else records[0].offset
    last = shape.last_offset if shape.last_offset is not None else records[-1].offset
    first_ts = shape.base_timestamp if shape.base_timestamp is not None else (records[0].timestamp if records else NOW)
    max_ts = shape.max_timestamp
    if max_ts is None:
        max_ts = max((record.timestamp for record in records), default=NOW)
    section = b"".join(write_record(record, base, first_ts) for record in records)
    if shape.codec:
        section = COMPRESS[shape.codec](section)
    attributes = shape.attributes | shape.codec
    covered = (
        struct.pack(">hiqqqhii", attributes, last - base, first_ts, max_ts, *shape.producer, len(records)) + section
    )
    crc = calc_crc32c(covered)
    return bytearray(struct.pack(">qiibI", base, len(covered) + 9, shape.leader_epoch, 2, crc) + covered)


def write_marker(offset: int, producer_id: int, *, commit: bool) -> bytearray:
    marker = Rec(offset, key=struct.pack(">hh", 0, int(commit)), value=struct.pack(">hi", 0, 1))
    return write_batch([marker], Shape(attributes=TRANSACTIONAL | CONTROL, producer=(producer_id, 0, -1)))


def read_with_aiokafka(data: bytes | bytearray) -> list[Rec]:
    batch = AiokafkaBatch(bytes(data))
    assert batch.validate_crc()
    return [_rec(record) for record in batch]


def read_with_kafka_python(data: bytes | bytearray) -> list[Rec]:
    batch = KafkaPythonBatch(bytes(data))
    assert batch.validate_crc()
    return [_rec(record) for record in batch]


def _rec(record) -> Rec:  # type: ignore[no-untyped-def]  # two libraries' classes of one shape
    timestamp = -1 if record.timestamp is None else record.timestamp
    return Rec(record.offset, timestamp, record.key, record.value, tuple(record.headers))
