"""Where share groups begin to read (KIP-932): DescribeShareGroupOffsets 0 and AlterShareGroupOffsets 0, which the library lacks.

A share group has no committed offsets but, for each partition, a start offset: everything before it is settled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct

from heliograph.wire.compact import (
    NO_TAGS,
    NULL,
    UUID_BYTES,
    compact_length,
    compact_string,
    read_compact_length,
    read_compact_string,
    request_header,
    skip_tags,
    whole_answer,
)
from heliograph.wire.record_batch import Buffer

DESCRIBE_API, ALTER_API = 90, 91
VERSION = 0

Partition = tuple[str, int]

_FRAME = Struct(">i")
_CODE = Struct(">h")
_START = Struct(">iq")
_DESCRIBED = Struct(">iqih")
"""Partition, start offset, leader epoch, error code."""
_ALTERED = Struct(">ih")


@dataclass
class ShareGroupStarts:
    """A group's answer: an error code, and the start offsets that it has."""

    group: str
    error_code: int = 0
    starts: dict[Partition, int] = field(default_factory=dict)


@dataclass
class Altered:
    """An error code for all, or codes by partition."""

    error_code: int
    partitions: dict[Partition, int] = field(default_factory=dict)


def encode_describe(correlation_id: int, client_id: str, groups: Sequence[str]) -> bytes:
    """All partitions of these groups; the request with its frame size in front."""
    parts = [request_header(DESCRIBE_API, VERSION, correlation_id, client_id), compact_length(groups)]
    for group in groups:
        parts += (compact_string(group), NULL, NO_TAGS)
    return _framed([*parts, NO_TAGS])


def decode_describe(buf: Buffer) -> list[ShareGroupStarts]:
    """The response that begins with its correlation id at byte 0."""
    with whole_answer("DescribeShareGroupOffsets"):
        at = skip_tags(buf, _FRAME.size) + _FRAME.size
        count, at = read_compact_length(buf, at)
        found = []
        for _ in range(count):
            group, at = _group(buf, at)
            found.append(group)
        return found


def _group(buf: Buffer, at: int) -> tuple[ShareGroupStarts, int]:
    name, at = read_compact_string(buf, at)
    group = ShareGroupStarts(name)
    topics, at = read_compact_length(buf, at)
    for _ in range(topics):
        topic, at = read_compact_string(buf, at)
        count, at = read_compact_length(buf, at + UUID_BYTES)
        for _ in range(count):
            partition, start, _, code = _DESCRIBED.unpack_from(buf, at)
            _, at = read_compact_string(buf, at + _DESCRIBED.size)
            at = skip_tags(buf, at)
            if code == 0 and start >= 0:
                group.starts[topic, partition] = start
        at = skip_tags(buf, at)
    (group.error_code,) = _CODE.unpack_from(buf, at)
    _, at = read_compact_string(buf, at + _CODE.size)
    return group, skip_tags(buf, at)


def encode_alter(correlation_id: int, client_id: str, group: str, starts: Mapping[Partition, int]) -> bytes:
    """The request with its frame size in front."""
    topics: dict[str, list[bytes]] = {}
    for (topic, partition), start in sorted(starts.items()):
        topics.setdefault(topic, []).append(_START.pack(partition, start) + NO_TAGS)
    parts = [
        request_header(ALTER_API, VERSION, correlation_id, client_id),
        compact_string(group),
        compact_length(topics),
    ]
    for topic, rows in topics.items():
        parts += (compact_string(topic), compact_length(rows), *rows, NO_TAGS)
    return _framed([*parts, NO_TAGS])


def decode_alter(buf: Buffer) -> Altered:
    """The response that begins with its correlation id at byte 0."""
    with whole_answer("AlterShareGroupOffsets"):
        at = skip_tags(buf, _FRAME.size) + _FRAME.size
        (code,) = _CODE.unpack_from(buf, at)
        answer = Altered(code)
        _, at = read_compact_string(buf, at + _CODE.size)
        topics, at = read_compact_length(buf, at)
        for _ in range(topics):
            topic, at = read_compact_string(buf, at)
            count, at = read_compact_length(buf, at + UUID_BYTES)
            for _ in range(count):
                partition, refused = _ALTERED.unpack_from(buf, at)
                _, at = read_compact_string(buf, at + _ALTERED.size)
                at = skip_tags(buf, at)
                answer.partitions[topic, partition] = refused
            at = skip_tags(buf, at)
        return answer


def _framed(parts: Sequence[bytes]) -> bytes:
    body = b"".join(parts)
    return _FRAME.pack(len(body)) + body
