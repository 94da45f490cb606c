"""The two messages of share groups, against bytes that were put together by hand from Kafka's own message definitions."""

from __future__ import annotations

import pytest

from heliograph.errors import HeliographError
from heliograph.wire.share_offsets import (
    Altered,
    ShareGroupStarts,
    decode_alter,
    decode_describe,
    encode_alter,
    encode_describe,
)

TOPIC_ID = bytes(range(16))


def test_describe_asks_for_all_partitions_of_each_group() -> None:
    header = bytes.fromhex("005a 0000 00000007 0001") + b"x" + b"\0"
    body = header + b"\x03" + b"\x02g" + b"\0\0" + b"\x02h" + b"\0\0" + b"\0"
    assert encode_describe(7, "x", ["g", "h"]) == len(body).to_bytes(4, "big") + body


def test_described_groups_have_starts_where_there_is_one() -> None:
    known = bytes.fromhex("00000000 0000000000000005 00000001 0000 00 00")
    unset = bytes.fromhex("00000001 ffffffffffffffff ffffffff 0000 00 00")
    refused = bytes.fromhex("00000002 0000000000000009 00000001 001d") + b"\x03no" + b"\0"
    topic = b"\x02t" + TOPIC_ID + b"\x04" + known + unset + refused + b"\0"
    first = b"\x02g" + b"\x02" + topic + b"\0\0" + b"\0" + b"\0"
    second = b"\x02h" + b"\x01" + (69).to_bytes(2, "big") + b"\x03no" + b"\0"
    answer = bytes.fromhex("00000007 00 00000000") + b"\x03" + first + second + b"\0"
    assert decode_describe(answer) == [ShareGroupStarts("g", 0, {("t", 0): 5}), ShareGroupStarts("h", 69)]


def test_alter_names_every_partition_with_its_start() -> None:
    header = bytes.fromhex("005b 0000 00000007 0001") + b"x" + b"\0"
    row = bytes.fromhex("00000001 0000000000000005 00")
    body = header + b"\x02g" + b"\x03" + b"\x02a\x02" + row + b"\0" + b"\x02b\x02" + row + b"\0" + b"\0"
    assert encode_alter(7, "x", "g", {("b", 1): 5, ("a", 1): 5}) == len(body).to_bytes(4, "big") + body


def test_altered_partitions_have_their_codes() -> None:
    rows = bytes.fromhex("00000000 0000 00 00") + bytes.fromhex("00000001 001d") + b"\x03no" + b"\0"
    topic = b"\x02t" + TOPIC_ID + b"\x03" + rows + b"\0"
    answer = bytes.fromhex("00000007 00 00000000 0000 00") + b"\x02" + topic + b"\0"
    assert decode_alter(answer) == Altered(0, {("t", 0): 0, ("t", 1): 29})
    refused = bytes.fromhex("00000007 00 00000000 0044") + b"\x03no" + b"\x01" + b"\0"
    assert decode_alter(refused) == Altered(68)


@pytest.mark.parametrize("decode", [decode_describe, decode_alter])
def test_an_answer_that_ends_too_soon_is_one_sentence(decode: object) -> None:
    with pytest.raises(HeliographError, match="ends before its last field"):
        decode(bytes.fromhex("00000007 00 00000000"))  # type: ignore[operator]
