"""Restamping and carrying the checksum, for any header and any payload."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st
from kafka.record.util import calc_crc32c

from heliograph.wire.record_batch import HEADER_BYTES, carry_crc, crc_is_valid, read_header, restamp, walk

int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)


@st.composite
def batches(draw: st.DrawFn) -> bytearray:
    """Any header with a valid checksum; the records are just bytes here."""
    payload = draw(st.binary(max_size=300))
    covered = struct.pack(
        ">hiqqqhii", draw(int16), draw(int32), *(draw(int64) for _ in range(3)), draw(int16), draw(int32), draw(int32)
    )
    crc = calc_crc32c(covered + payload)
    return bytearray(struct.pack(">qiibI", draw(int64), 49 + len(payload), draw(int32), 2, crc) + covered + payload)


@given(
    old=st.binary(min_size=40, max_size=40), new=st.binary(min_size=40, max_size=40), payload=st.binary(max_size=5000)
)
def test_carried_checksum_equals_the_computed_one(old: bytes, new: bytes, payload: bytes) -> None:
    assert carry_crc(calc_crc32c(old + payload), old, new, len(payload)) == calc_crc32c(new + payload)


@given(
    batch=batches(),
    producer_id=st.integers(0, 2**63 - 1),
    producer_epoch=st.integers(0, 2**15 - 1),
    sequence=st.integers(0, 2**31 - 1),
    before=st.binary(max_size=9),
)
def test_restamped_batch_is_ours_and_valid(
    batch: bytearray, producer_id: int, producer_epoch: int, sequence: int, before: bytes
) -> None:
    old = read_header(batch, 0)
    buffer = bytearray(before + batch + b"after")
    restamp(buffer, len(before), old, producer_id, producer_epoch, sequence)
    stamped = buffer[len(before) : len(before) + len(batch)]
    assert bytes(stamped[17:21]) == struct.pack(">I", calc_crc32c(bytes(stamped[21:])))
    assert crc_is_valid(buffer, len(before), len(batch))
    assert read_header(stamped, 0) == old._replace(
        base_offset=0,
        leader_epoch=-1,
        crc=read_header(stamped, 0).crc,
        attributes=old.attributes & 7,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
    )
    assert stamped[HEADER_BYTES:] == batch[HEADER_BYTES:]
    assert (buffer[: len(before)], buffer[-5:]) == (before, b"after")


@given(batch=batches(), flips=st.sets(st.integers(0, 10**6), min_size=1, max_size=3))
def test_damage_is_as_visible_after_restamping_as_before(batch: bytearray, flips: set[int]) -> None:
    for flip in flips:
        batch[21 + flip // 8 % (len(batch) - 21)] ^= 1 << flip % 8
    visible_before = not crc_is_valid(batch, 0, len(batch))
    restamp(batch, 0, read_header(batch, 0), 1, 2, 3)
    assert (not crc_is_valid(batch, 0, len(batch))) == visible_before


@given(parts=st.lists(batches(), max_size=6), cut=st.integers(0, 400))
def test_walk_gives_exactly_the_whole_batches(parts: list[bytearray], cut: int) -> None:
    buffer = b"".join(parts)
    end = max(0, len(buffer) - cut)
    walked = [(at, at + header.size) for at, header in walk(buffer, 0, end)]
    expected, at = [], 0
    for part in parts:
        if at + len(part) <= end:
            expected.append((at, at + len(part)))
        at += len(part)
    assert walked == expected


@given(st.binary(max_size=400))
def test_walk_over_any_bytes_never_raises_and_moves_on(buffer: bytes) -> None:
    places = [at for at, _ in walk(buffer, 0, len(buffer))]
    assert places == sorted(set(places))
