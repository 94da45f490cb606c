"""Fetch, versions 12 (topics by name) and 13 (topics by id): the request, and the response without its records.

Not implemented: follower fields, versions with replica state or node endpoints (15, 16).
Decoding copies no record bytes: each partition says where in the buffer its batches lie. Counterpart: `produce_codec`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct

from heliograph.wire.compact import (
    NO_TAGS,
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

API_KEY = 1
VERSIONS = range(12, 14)

_BY_TOPIC_ID = 13
_CONSUMER = -1
NO_SESSION = (0, -1)
_NO_LOG_START = -1
_DIVERGING_TAG = 0
_LEADER_TAG = 1

_FRAME = Struct(">i")
_REQUEST = Struct(">iiiibii")
_PARTITION = Struct(">iiqiqi")
_RESPONSE = Struct(">ihi")
_PARTITION_HEAD = Struct(">ihqqq")
_ABORTED = Struct(">qq")
_NUMBER = Struct(">i")
_DIVERGING = Struct(">iq")
_LEADER = Struct(">ii")


@dataclass(frozen=True, slots=True)
class FetchPartition:
    """What to read of one partition; epochs are -1 where unknown."""

    partition: int
    current_leader_epoch: int
    offset: int
    last_fetched_epoch: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class FetchTopic:
    """A topic by name and by id: the version decides which of them is sent."""

    name: str
    topic_id: bytes
    partitions: Sequence[FetchPartition]


@dataclass(frozen=True, slots=True)
class FetchSettings:
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    read_committed: bool
    rack: str = ""
    session: tuple[int, int] = NO_SESSION
    """Id and epoch (fetch_session.py)."""
    forgotten: Sequence[FetchTopic] = ()
    """Partitions that the session is to leave out from now on."""


@dataclass(slots=True)
class FetchedPartition:
    """One partition's answer. Its batches are the bytes start to end of the buffer that was decoded."""

    topic: str | bytes
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging_epoch: int
    diverging_end: int
    leader_id: int
    leader_epoch: int
    preferred_replica: int
    aborted: list[tuple[int, int]]
    start: int
    end: int


@dataclass(slots=True)
class FetchResult:
    correlation_id: int
    throttle_ms: int
    error_code: int
    partitions: list[FetchedPartition]
    session_id: int = 0
    """0: the broker remembers nothing of it."""


def encode_fetch(
    version: int, correlation_id: int, client_id: str, settings: FetchSettings, topics: Sequence[FetchTopic]
) -> bytes:
    """The request with its frame size in front."""
    check_version("Fetch", version, VERSIONS)
    parts = [
        request_header(API_KEY, version, correlation_id, client_id),
        _REQUEST.pack(
            _CONSUMER,
            settings.max_wait_ms,
            settings.min_bytes,
            settings.max_bytes,
            int(settings.read_committed),
            *settings.session,
        ),
        compact_length(topics),
    ]
    for topic in topics:
        parts += (
            topic.topic_id if version >= _BY_TOPIC_ID else compact_string(topic.name),
            compact_length(topic.partitions),
        )
        for wanted in topic.partitions:
            parts += (_encode_partition(wanted), NO_TAGS)
        parts.append(NO_TAGS)
    parts += (*_encode_forgotten(version, settings.forgotten), compact_string(settings.rack), NO_TAGS)
    body = b"".join(parts)
    return _FRAME.pack(len(body)) + body


def _encode_forgotten(version: int, topics: Sequence[FetchTopic]) -> Iterator[bytes]:
    yield compact_length(topics)
    for topic in topics:
        yield topic.topic_id if version >= _BY_TOPIC_ID else compact_string(topic.name)
        yield compact_length(topic.partitions)
        yield b"".join(_NUMBER.pack(part.partition) for part in topic.partitions)
        yield NO_TAGS


def _encode_partition(wanted: FetchPartition) -> bytes:
    return _PARTITION.pack(
        wanted.partition,
        wanted.current_leader_epoch,
        wanted.offset,
        wanted.last_fetched_epoch,
        _NO_LOG_START,
        wanted.max_bytes,
    )


def decode_fetch(version: int, buf: Buffer) -> FetchResult:
    """The response that begins with its correlation id at byte 0."""
    check_version("Fetch", version, VERSIONS)
    with whole_answer(f"Fetch {version}"):
        correlation_id: int = _FRAME.unpack_from(buf, 0)[0]
        at = skip_tags(buf, 4)
        throttle_ms, error_code, session_id = _RESPONSE.unpack_from(buf, at)
        topics, at = read_compact_length(buf, at + _RESPONSE.size)
        partitions: list[FetchedPartition] = []
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
        skip_tags(buf, at)
    return FetchResult(correlation_id, throttle_ms, error_code, partitions, session_id)


def _decode_partition(buf: Buffer, at: int, topic: str | bytes, partitions: list[FetchedPartition]) -> int:
    """Append the partition at `at`; give the place after it."""
    index, error_code, high_watermark, last_stable_offset, log_start_offset = _PARTITION_HEAD.unpack_from(buf, at)
    count, at = read_compact_length(buf, at + _PARTITION_HEAD.size)
    aborted = []
    for _ in range(count):
        aborted.append(_ABORTED.unpack_from(buf, at))
        at = skip_tags(buf, at + _ABORTED.size)
    preferred_replica = _NUMBER.unpack_from(buf, at)[0]
    length, start = read_compact_length(buf, at + _NUMBER.size)
    end = start + length
    tags, at = read_tags(buf, end)
    diverging, leader = (-1, -1), (-1, -1)
    for tag, content in tags:
        if tag == _DIVERGING_TAG:
            diverging = _DIVERGING.unpack_from(buf, content)
        elif tag == _LEADER_TAG:
            leader = _LEADER.unpack_from(buf, content)
    partitions.append(
        FetchedPartition(
            topic=topic,
            partition=index,
            error_code=error_code,
            high_watermark=high_watermark,
            last_stable_offset=last_stable_offset,
            log_start_offset=log_start_offset,
            diverging_epoch=diverging[0],
            diverging_end=diverging[1],
            leader_id=leader[0],
            leader_epoch=leader[1],
            preferred_replica=preferred_replica,
            aborted=aborted,
            start=start,
            end=end,
        )
    )
    return at
