"""Produce, versions 9 to 12 (topics by name) and 13 (topics by id): the request as buffers, and the response.

acks is always -1 and there is no transactional id: exactly once does not rest on transactions here. A broker takes
exactly one batch per partition of a request; the caller sees to that. Record bytes are not copied: they are handed on
as the buffers that came in. Counterpart: `fetch_codec`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

from heliograph.wire.compact import (
    NO_TAGS,
    NULL,
    UUID_BYTES,
    check_version,
    compact_length,
    compact_string,
    read_compact_length,
    read_compact_string,
    read_tags,
    request_header,
    skip_tags,
    whole_answer,
)
from heliograph.wire.record_batch import Buffer
from heliograph.wire.varint import unsigned

API_KEY = 0
VERSIONS = range(9, 14)

_BY_TOPIC_ID = 13
_ALL_IN_SYNC_REPLICAS = -1
_LEADER_TAG = 0

_FRAME = Struct(">i")
_REQUEST = Struct(">hi")
_INDEX = Struct(">i")
_PARTITION_HEAD = Struct(">ihqqq")
_LEADER = Struct(">ii")


@dataclass(frozen=True, slots=True)
class ProduceTopic:
    """A topic by name and by id (the version decides which is sent), with one batch for each partition."""

    name: str
    topic_id: bytes
    partitions: Sequence[tuple[int, Buffer]]


@dataclass(slots=True)
class ProducedPartition:
    """One partition's answer; leader_id and leader_epoch are -1 unless the broker names a new leader."""

    topic: str | bytes
    partition: int
    error_code: int
    base_offset: int
    log_append_time: int
    log_start_offset: int
    error_message: str
    leader_id: int
    leader_epoch: int


@dataclass(slots=True)
class ProduceResult:
    correlation_id: int
    throttle_ms: int
    partitions: list[ProducedPartition]


def encode_produce(
    version: int, correlation_id: int, client_id: str, timeout_ms: int, topics: Sequence[ProduceTopic]
) -> list[Buffer]:
    """Buffers to send one after the other; the first begins with the frame size."""
    check_version("Produce", version, VERSIONS)
    between = bytearray(request_header(API_KEY, version, correlation_id, client_id))
    between += NULL + _REQUEST.pack(_ALL_IN_SYNC_REPLICAS, timeout_ms) + compact_length(topics)
    buffers: list[Buffer] = []
    for topic in topics:
        between += topic.topic_id if version >= _BY_TOPIC_ID else compact_string(topic.name)
        between += compact_length(topic.partitions)
        for index, records in topic.partitions:
            between += _INDEX.pack(index) + unsigned(len(records) + 1)
            buffers += (between, records)
            between = bytearray(NO_TAGS)
        between += NO_TAGS
    between += NO_TAGS
    buffers.append(between)
    buffers[0] = _FRAME.pack(sum(map(len, buffers))) + buffers[0]
    return buffers


def decode_produce(version: int, buf: Buffer) -> ProduceResult:
    """The response that begins with its correlation id at byte 0."""
    check_version("Produce", version, VERSIONS)
    with whole_answer(f"Produce {version}"):
        correlation_id: int = _FRAME.unpack_from(buf, 0)[0]
        topics, at = read_compact_length(buf, skip_tags(buf, 4))
        partitions: list[ProducedPartition] = []
        for _ in range(topics):
            topic: str | bytes
            if version >= _BY_TOPIC_ID:
                topic, at = bytes(buf[at : at + UUID_BYTES]), at + UUID_BYTES
            else:
                topic, at = read_compact_string(buf, at)
            count, at = read_compact_length(buf, at)
            for _ in range(count):
                at = _decode_partition(buf, at, topic, partitions)
            at = skip_tags(buf, at)
        throttle_ms: int = _FRAME.unpack_from(buf, at)[0]
        skip_tags(buf, at + _FRAME.size)
    return ProduceResult(correlation_id, throttle_ms, partitions)


def _decode_partition(buf: Buffer, at: int, topic: str | bytes, partitions: list[ProducedPartition]) -> int:
    """Append the partition at `at`; give the place after it."""
    index, error_code, base_offset, log_append_time, log_start_offset = _PARTITION_HEAD.unpack_from(buf, at)
    record_errors, at = _decode_record_errors(buf, at + _PARTITION_HEAD.size)
    message, at = read_compact_string(buf, at)
    tags, at = read_tags(buf, at)
    leader_id, leader_epoch = -1, -1
    for tag, content in tags:
        if tag == _LEADER_TAG:
            leader_id, leader_epoch = _LEADER.unpack_from(buf, content)
    partitions.append(
        ProducedPartition(
            topic=topic,
            partition=index,
            error_code=error_code,
            base_offset=base_offset,
            log_append_time=log_append_time,
            log_start_offset=log_start_offset,
            error_message=" ".join([message, *record_errors]).strip(),
            leader_id=leader_id,
            leader_epoch=leader_epoch,
        )
    )
    return at


def _decode_record_errors(buf: Buffer, at: int) -> tuple[list[str], int]:
    """Which records of the batch the broker refused, and why, in words."""
    count, at = read_compact_length(buf, at)
    errors = []
    for _ in range(count):
        index: int = _INDEX.unpack_from(buf, at)[0]
        message, at = read_compact_string(buf, at + _INDEX.size)
        errors.append(f"Record {index}: {message}")
        at = skip_tags(buf, at)
    return errors, at
