"""CRC-32C of changed bytes, by arithmetic on the old CRC.

CRC is linear over GF(2): when two messages of one length differ only in their first 40 bytes, their CRCs differ by the
raw CRC of that difference, moved past the bytes that follow. So the checksum that the producer computed is carried
forward without looking at the payload: a bit that flipped on the way still disagrees with it, and the target broker
refuses the batch. A CRC recomputed here would make the damage valid.

Knows polynomials; knows nothing of record batches but that 40 bytes of header are covered.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from fastcrc import crc32

COVERED_HEADER_BYTES = 40

_POLYNOMIAL = 0x82F63B78  # Castagnoli, bit-reflected
_LENGTH_BITS = 31  # a batch length is a positive int32
_SHORT_BITS = 13  # up to here, feeding zero bytes to the CRC instruction is faster than matrices
_ZEROS = memoryview(bytes(1 << _SHORT_BITS))

_Operator = tuple[list[int], list[int], list[int], list[int]]

_iscsi = crc32.iscsi


def _zero_byte_columns() -> list[int]:
    """The images of the 32 unit vectors after one zero byte has been fed in."""
    columns = []
    for bit in range(32):
        value = 1 << bit
        for _ in range(8):
            value = (value >> 1) ^ _POLYNOMIAL if value & 1 else value >> 1
        columns.append(value)
    return columns


def _tables(columns: list[int]) -> _Operator:
    """A 32x32 bit matrix as four tables, one per byte of its argument."""
    tables = []
    for byte in range(4):
        table = [0] * 256
        for bit in range(8):
            column, half = columns[8 * byte + bit], 1 << bit
            for low in range(half):
                table[half + low] = table[low] ^ column
        tables.append(table)
    return tables[0], tables[1], tables[2], tables[3]


def _apply(operator: _Operator, value: int) -> int:
    t0, t1, t2, t3 = operator
    return t0[value & 255] ^ t1[value >> 8 & 255] ^ t2[value >> 16 & 255] ^ t3[value >> 24]


def _doublings() -> list[_Operator]:
    """Operator k moves a CRC past 2^k zero bytes; each is the one before it applied twice."""
    columns = _zero_byte_columns()
    operators = []
    for _ in range(_LENGTH_BITS):
        operator = _tables(columns)
        operators.append(operator)
        columns = [_apply(operator, column) for column in columns]
    return operators


_MOVES = _doublings()


class _Way(NamedTuple):
    """How to move a CRC past a number of bytes: first some zeros, then matrices."""

    zeros: memoryview
    crc_without_difference: int
    moves: tuple[_Operator, ...]


@lru_cache(maxsize=4096)
def _way_past(count: int) -> _Way:
    zeros = _ZEROS[: count % len(_ZEROS)]
    crc = _iscsi(zeros, _iscsi(bytes(COVERED_HEADER_BYTES)))
    return _Way(zeros, crc, tuple(_MOVES[bit] for bit in range(_SHORT_BITS, _LENGTH_BITS) if count >> bit & 1))


def carry(old_crc: int, difference: bytes, payload_bytes: int) -> int:
    """The CRC after the 40 header bytes were XORed with `difference`."""
    zeros, crc_without_difference, moves = _way_past(payload_bytes)
    moved: int = _iscsi(zeros, _iscsi(difference)) ^ crc_without_difference
    for t0, t1, t2, t3 in moves:
        moved = t0[moved & 255] ^ t1[moved >> 8 & 255] ^ t2[moved >> 16 & 255] ^ t3[moved >> 24]
    return old_crc ^ moved


def carry_crc(old_crc: int, old40: bytes, new40: bytes, payload_bytes: int) -> int:
    """The CRC of new40 + payload, given that of old40 + payload."""
    difference = int.from_bytes(old40, "big") ^ int.from_bytes(new40, "big")
    return carry(old_crc, difference.to_bytes(COVERED_HEADER_BYTES, "big"), payload_bytes)
