"""Variable-length integers agree with kafka-python's."""

from __future__ import annotations

import pytest
from kafka.protocol.schemas.fields.codecs import UnsignedVarInt32
from kafka.record.util import decode_varint, encode_varint

from heliograph.wire.varint import read_unsigned, read_zigzag, unsigned, zigzag

NUMBERS = [0, 1, 63, 64, 127, 128, 8191, 8192, 16383, 16384, 2**21, 2**28, 2**31 - 1]


@pytest.mark.parametrize("number", [*NUMBERS, *(-n for n in NUMBERS), 2**62, -(2**62), 2**63 - 1, -(2**63)])
def test_zigzag_agrees_with_kafka_python(number: int) -> None:
    theirs = bytearray()
    encode_varint(number, theirs.append)
    assert zigzag(number) == theirs
    assert read_zigzag(b"." + theirs, 1) == (number, 1 + len(theirs)) == decode_varint(b"." + theirs, 1)


@pytest.mark.parametrize("number", NUMBERS)
def test_unsigned_agrees_with_kafka_python(number: int) -> None:
    encoded = unsigned(number)
    assert encoded == UnsignedVarInt32.encode(number)
    assert read_unsigned(memoryview(b"." + encoded), 1) == (number, 1 + len(encoded))
