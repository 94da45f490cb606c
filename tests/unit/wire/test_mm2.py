"""MirrorMaker 2's records, byte for byte."""

from __future__ import annotations

import pytest
from kafka.partitioner.default import murmur2

from heliograph.errors import HeliographError
from heliograph.wire.mm2 import (
    Checkpoint,
    Heartbeat,
    OffsetSync,
    StoredOffset,
    decode_checkpoint,
    decode_heartbeat,
    decode_offset_sync,
    decode_stored_offset,
    encode_checkpoint,
    encode_heartbeat,
    encode_offset_sync,
    encode_stored_offset,
    partition_of,
)

SYNC = OffsetSync("topic1", 2, 100, 200)
SYNC_BYTES = ("0006746f7069633100000002", "000000000000006400000000000000c8")
CHECKPOINT = Checkpoint("group1", "A.topic1", 2, 100, 201)
CHECKPOINT_BYTES = ("000667726f7570310008412e746f7069633100000002", "0000000000000000006400000000000000c90000")
HEARTBEAT = Heartbeat("A", "B", 1700000000000)
HEARTBEAT_BYTES = ("000141000142", "00000000018bcfe56800")
STORED = StoredOffset("MirrorSourceConnector", "A", "topic1", 0, 41)
STORED_KEY = b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"topic1"}]'
CHECKPOINT_KEY = b'["MirrorCheckpointConnector",{"partition":0,"topic":"A.topic1","group":"g"}]'
HEARTBEAT_KEY = b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]'


def unhex(pair: tuple[str, str]) -> tuple[bytes, bytes]:
    return bytes.fromhex(pair[0]), bytes.fromhex(pair[1])


def test_offset_sync_has_these_bytes() -> None:
    assert encode_offset_sync(SYNC) == unhex(SYNC_BYTES)
    assert decode_offset_sync(*unhex(SYNC_BYTES)) == SYNC


def test_checkpoint_has_these_bytes() -> None:
    assert encode_checkpoint(CHECKPOINT) == unhex(CHECKPOINT_BYTES)
    assert decode_checkpoint(*unhex(CHECKPOINT_BYTES)) == CHECKPOINT
    noted = Checkpoint("g", "t", 0, -1, 1 << 40, "méta")
    assert decode_checkpoint(*encode_checkpoint(noted)) == noted


def test_heartbeat_has_these_bytes() -> None:
    assert encode_heartbeat(HEARTBEAT) == unhex(HEARTBEAT_BYTES)
    assert decode_heartbeat(*unhex(HEARTBEAT_BYTES)) == HEARTBEAT


def test_stored_offset_has_these_bytes() -> None:
    assert encode_stored_offset(STORED) == (STORED_KEY, b'{"offset":41}')
    assert decode_stored_offset(STORED_KEY, b'{"offset":41}') == STORED


def test_alias_outside_ascii_is_stored_as_utf8() -> None:
    stored = StoredOffset("A->B.MirrorSourceConnector", "köln", "t", 3, 0)
    key, value = encode_stored_offset(stored)
    assert key == '["A->B.MirrorSourceConnector",{"cluster":"köln","partition":3,"topic":"t"}]'.encode()
    assert decode_stored_offset(key, value) == stored


def test_removed_stored_offset_is_a_tombstone() -> None:
    removed = StoredOffset("MirrorSourceConnector", "A", "topic1", 0, None)
    assert encode_stored_offset(removed) == (STORED_KEY, None)
    assert decode_stored_offset(STORED_KEY, None) == removed


@pytest.mark.parametrize("key", [CHECKPOINT_KEY, HEARTBEAT_KEY])
def test_stored_offsets_of_other_connectors_are_passed_over(key: bytes) -> None:
    assert decode_stored_offset(key, b'{"offset":0}') is None


@pytest.mark.parametrize("key", [b"", None, b"{}", b"[1,2,3]", b'["a",["b"]]', b"\xff", STORED_KEY[:-1]])
def test_malformed_stored_offset_is_refused(key: bytes | None) -> None:
    with pytest.raises(HeliographError, match="not a stored source offset"):
        decode_stored_offset(key, b'{"offset":0}')


@pytest.mark.parametrize("value", [b"", b"7", b"{}", b'{"offset":null}', b'{"offset":"x"}'])
def test_malformed_value_of_a_stored_offset_is_refused(value: bytes) -> None:
    with pytest.raises(HeliographError, match="not a stored source offset"):
        decode_stored_offset(STORED_KEY, value)


def test_entries_lie_in_the_partition_that_java_chooses() -> None:
    assert partition_of(STORED_KEY, 25) == 2
    assert partition_of(HEARTBEAT_KEY, 25) == 0


@pytest.mark.parametrize("length", range(14))
def test_partition_agrees_with_kafka_python(length: int) -> None:
    key = bytes(range(250 - length, 250))
    assert partition_of(key, 1_000_003) == (murmur2(key) & 0x7FFFFFFF) % 1_000_003


@pytest.mark.parametrize(
    ("decode", "pair"),
    [
        (decode_offset_sync, unhex(SYNC_BYTES)),
        (decode_checkpoint, unhex(CHECKPOINT_BYTES)),
        (decode_heartbeat, unhex(HEARTBEAT_BYTES)),
    ],
    ids=["offset sync", "checkpoint", "heartbeat"],
)
class TestEveryBinaryRecord:
    def test_bytes_after_the_last_field_are_ignored(self, decode, pair) -> None:  # type: ignore[no-untyped-def]
        key, value = pair
        assert decode(key + b"more", value + b"more") == decode(key, value)

    def test_cut_short_is_refused(self, decode, pair) -> None:  # type: ignore[no-untyped-def]
        key, value = pair
        cuts = [(key[:n], value) for n in range(len(key))] + [(key, value[:n]) for n in range(len(value))]
        for cut in [*cuts, (None, value), (key, None), (b"\xff\xff" + key, value)]:
            with pytest.raises(HeliographError, match="of MirrorMaker 2: key"):
                decode(*cut)

    def test_text_that_is_not_utf8_is_refused(self, decode, pair) -> None:  # type: ignore[no-untyped-def]
        key, value = pair
        with pytest.raises(HeliographError):
            decode(key[:2] + b"\xff" + key[3:], value)


def test_unknown_version_is_read_as_version_0() -> None:
    key, value = unhex(HEARTBEAT_BYTES)
    assert decode_heartbeat(key, b"\x00\x07" + value[2:]) == HEARTBEAT


def test_string_that_is_too_long_is_refused() -> None:
    assert encode_heartbeat(Heartbeat("a" * 32767, "b", 0))[0][:2] == b"\x7f\xff"
    with pytest.raises(HeliographError, match="32768 bytes"):
        encode_heartbeat(Heartbeat("a" * 32768, "b", 0))
