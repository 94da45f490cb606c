"""MirrorMaker 2's own records, to the byte: offset syncs, checkpoints, heartbeats, stored source offsets.

Big-endian, strings with an int16 length, no tags. Java readers fail on a null value in the first three topics, so no
function here writes one. Unknown versions are read as version 0 and trailing bytes ignored, as MirrorMaker 2 does.

Stored source offsets are JSON, looked up by the exact bytes of the key: member order is that of Java's HashMap.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from struct import Struct, error

from heliograph.errors import HeliographError

_SHORT = Struct(">h")
_INT = Struct(">i")
_OFFSET_SYNC_VALUE = Struct(">qq")
_CHECKPOINT_VALUE = Struct(">hqq")
_HEARTBEAT_VALUE = Struct(">hq")
_VERSION = 0
_LONGEST_STRING = 0x7FFF


@dataclass(frozen=True)
class OffsetSync:
    """One record's offset on both sides; the topic is the source's."""

    topic: str
    partition: int
    upstream: int
    downstream: int


@dataclass(frozen=True)
class Checkpoint:
    """A group's committed offset on both sides; the topic is the remote one."""

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""


@dataclass(frozen=True)
class Heartbeat:
    source: str
    target: str
    timestamp_ms: int


@dataclass(frozen=True)
class StoredOffset:
    """A source connector's progress: the offset of the LAST copied source record; None: the entry was removed."""

    connector: str
    cluster: str
    topic: str
    partition: int
    offset: int | None


def encode_offset_sync(sync: OffsetSync) -> tuple[bytes, bytes]:
    """Key and value."""
    key = _string(sync.topic) + _INT.pack(sync.partition)
    return key, _OFFSET_SYNC_VALUE.pack(sync.upstream, sync.downstream)


def decode_offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync:
    try:
        topic, at = _read_string(key or b"", 0)
        (partition,) = _INT.unpack_from(key or b"", at)
        upstream, downstream = _OFFSET_SYNC_VALUE.unpack_from(value or b"")
    except (error, UnicodeDecodeError) as fault:
        raise _malformed("an offset sync", key, value) from fault
    return OffsetSync(topic, partition, upstream, downstream)


def encode_checkpoint(checkpoint: Checkpoint) -> tuple[bytes, bytes]:
    """Key and value."""
    key = _string(checkpoint.group) + _string(checkpoint.topic) + _INT.pack(checkpoint.partition)
    value = _CHECKPOINT_VALUE.pack(_VERSION, checkpoint.upstream, checkpoint.downstream)
    return key, value + _string(checkpoint.metadata)


def decode_checkpoint(key: bytes | None, value: bytes | None) -> Checkpoint:
    try:
        group, at = _read_string(key or b"", 0)
        topic, at = _read_string(key or b"", at)
        (partition,) = _INT.unpack_from(key or b"", at)
        _, upstream, downstream = _CHECKPOINT_VALUE.unpack_from(value or b"")
        metadata, _ = _read_string(value or b"", _CHECKPOINT_VALUE.size)
    except (error, UnicodeDecodeError) as fault:
        raise _malformed("a checkpoint", key, value) from fault
    return Checkpoint(group, topic, partition, upstream, downstream, metadata)


def encode_heartbeat(heartbeat: Heartbeat) -> tuple[bytes, bytes]:
    """Key and value."""
    key = _string(heartbeat.source) + _string(heartbeat.target)
    return key, _HEARTBEAT_VALUE.pack(_VERSION, heartbeat.timestamp_ms)


def decode_heartbeat(key: bytes | None, value: bytes | None) -> Heartbeat:
    try:
        source, at = _read_string(key or b"", 0)
        target, _ = _read_string(key or b"", at)
        _, timestamp_ms = _HEARTBEAT_VALUE.unpack_from(value or b"")
    except (error, UnicodeDecodeError) as fault:
        raise _malformed("a heartbeat", key, value) from fault
    return Heartbeat(source, target, timestamp_ms)


def encode_stored_offset(stored: StoredOffset) -> tuple[bytes, bytes | None]:
    """Key and value; a removed entry is a tombstone, which this topic allows."""
    place = {"cluster": stored.cluster, "partition": stored.partition, "topic": stored.topic}
    value = None if stored.offset is None else _json({"offset": stored.offset})
    return _json([stored.connector, place]), value


def decode_stored_offset(key: bytes | None, value: bytes | None) -> StoredOffset | None:
    """None for the entries of other connectors (checkpoint, heartbeat), whose offsets mean nothing."""
    try:
        connector, place = json.loads(key or b"")
        if not {"cluster", "topic", "partition"} <= place.keys():
            return None
        offset = None if value is None else json.loads(value)
        if offset is not None:
            offset = int(offset["offset"])
        return StoredOffset(connector, place["cluster"], place["topic"], int(place["partition"]), offset)
    except (ValueError, TypeError, KeyError, AttributeError) as fault:
        raise _malformed("a stored source offset", key, value) from fault


def partition_of(key: bytes, partitions: int) -> int:
    """The partition that Java's default partitioner gives a key: compaction needs old and new entry in the same one."""
    return (_murmur2(key) & 0x7FFFFFFF) % partitions


def _murmur2(data: bytes) -> int:
    factor, mask = 0x5BD1E995, 0xFFFFFFFF
    hashed = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * factor & mask
        word = (word ^ word >> 24) * factor & mask
        hashed = hashed * factor & mask ^ word
    if whole < len(data):
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * factor & mask
    hashed = (hashed ^ hashed >> 13) * factor & mask
    return hashed ^ hashed >> 15


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _string(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > _LONGEST_STRING:
        raise HeliographError(
            f"{text[:40]!r}… has {len(encoded)} bytes; MirrorMaker 2's records allow strings of {_LONGEST_STRING}."
        )
    return _SHORT.pack(len(encoded)) + encoded


def _read_string(buf: bytes, at: int) -> tuple[str, int]:
    (length,) = _SHORT.unpack_from(buf, at)
    at += _SHORT.size
    if length < 0 or at + length > len(buf):
        raise error("string is longer than the record")
    return buf[at : at + length].decode(), at + length


def _malformed(what: str, key: bytes | None, value: bytes | None) -> HeliographError:
    shown = [part if part is None else part.hex() for part in (key, value)]
    return HeliographError(f"This record is not {what} of MirrorMaker 2: key {shown[0]}, value {shown[1]}.")
