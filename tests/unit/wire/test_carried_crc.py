"""The carried checksum is the computed one, without the payload."""

from __future__ import annotations

import pytest
from kafka.record.util import calc_crc32c

from heliograph.wire import record_batch
from heliograph.wire.carried_crc import carry_crc


@pytest.mark.parametrize("payload_bytes", [*range(70), 1000, 65_535, 65_536, 1_000_003])
def test_carried_checksum_equals_the_computed_one(payload_bytes: int) -> None:
    payload = bytes(i * 7 & 255 for i in range(payload_bytes))
    old, new = bytes(range(40)), bytes(range(100, 140))
    assert carry_crc(calc_crc32c(old + payload), old, new, payload_bytes) == calc_crc32c(new + payload)


def test_unchanged_header_keeps_the_checksum_whatever_it_is() -> None:
    """Also a wrong one: the arithmetic repairs nothing."""
    assert carry_crc(0xDEADBEEF, b"h" * 40, b"h" * 40, 2**31 - 1) == 0xDEADBEEF


def test_carrying_forth_and_back_gives_the_first_checksum() -> None:
    there = carry_crc(0x12345678, b"a" * 40, b"b" * 40, 2**31 - 1)
    assert there != 0x12345678
    assert carry_crc(there, b"b" * 40, b"a" * 40, 2**31 - 1) == 0x12345678


def test_record_batch_offers_it() -> None:
    assert record_batch.carry_crc is carry_crc
