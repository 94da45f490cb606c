"""Variable-length integers: zigzag inside records, unsigned in the flexible protocol messages.

Seven bits a byte, lowest first, the high bit says that more follow.
"""

from __future__ import annotations

from heliograph.wire.record_batch import Buffer


def unsigned(value: int) -> bytes:
    """The encoding of a number that is not negative."""
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def zigzag(value: int) -> bytes:
    """The encoding of a signed 64-bit number: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return unsigned((value << 1) ^ (value >> 63))


def read_unsigned(buf: Buffer, at: int) -> tuple[int, int]:
    """The number at `at`, and where the next field begins."""
    byte = buf[at]
    if byte < 0x80:
        return byte, at + 1
    value = byte & 0x7F
    shift = 7
    while True:
        at += 1
        byte = buf[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7


def read_zigzag(buf: Buffer, at: int) -> tuple[int, int]:
    value, at = read_unsigned(buf, at)
    return (value >> 1) ^ -(value & 1), at
