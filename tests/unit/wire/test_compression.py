"""The five codecs read and write what aiokafka's do."""

from __future__ import annotations

import random

import aiokafka.codec as other
import cramjam
import lz4.frame
import pytest

from heliograph.errors import HeliographError
from heliograph.wire.compression import NAMES, TooMuchData, compress, decompress

ENCODE = (bytes, other.gzip_encode, other.snappy_encode, other.lz4_encode, other.zstd_encode)
DECODE = (bytes, other.gzip_decode, other.snappy_decode, other.lz4_decode, other.zstd_decode)
SAMPLES = [b"x", b"abc" * 50_000, random.Random(3).randbytes(100_000)]


@pytest.mark.parametrize("codec", range(5), ids=NAMES)
@pytest.mark.parametrize("data", SAMPLES, ids=["tiny", "regular", "noise"])
def test_codec_agrees_with_aiokafka_both_ways(codec: int, data: bytes) -> None:
    assert DECODE[codec](compress(codec, data)) == data
    assert decompress(codec, memoryview(ENCODE[codec](data))) == data


def test_compressing_twice_gives_the_same_bytes() -> None:
    assert all(compress(codec, SAMPLES[1]) == compress(codec, SAMPLES[1]) for codec in range(5))


def test_snappy_without_a_frame_is_read() -> None:
    assert decompress(2, bytes(cramjam.snappy.compress_raw(SAMPLES[1]))) == SAMPLES[1]


def test_lz4_blocks_are_independent_and_of_unknown_content_size() -> None:
    """Kafka's reader refuses linked blocks."""
    frame = lz4.frame.get_frame_info(compress(3, SAMPLES[1]))
    assert not frame["block_linked"]
    assert frame["content_size"] == 0


@pytest.mark.parametrize("codec", range(1, 5), ids=NAMES[1:])
def test_data_that_is_not_of_the_codec_is_one_sentence(codec: int) -> None:
    for data in (b"nonsense of some length", compress(codec, SAMPLES[1])[:-3]):
        with pytest.raises(HeliographError, match=f"The {NAMES[codec]} data"):
            decompress(codec, data)


@pytest.mark.parametrize("codec", range(1, 5), ids=NAMES[1:])
@pytest.mark.parametrize("size", [150_000, 20_000_000], ids=["some", "a bomb"])
def test_data_is_opened_up_to_a_limit_and_no_further(codec: int, size: int) -> None:
    packed = compress(codec, bytes(size))
    assert len(decompress(codec, packed, size)) == size
    for limit in (size - 1, 1, 0):
        with pytest.raises(TooMuchData, match=f"more than the {limit} bytes" if codec != 2 else "opens to more than"):
            decompress(codec, packed, limit)


def test_gzip_of_several_members_is_read_and_limited_as_one() -> None:
    packed = compress(1, b"one") + compress(1, b"two")
    assert decompress(1, packed) == decompress(1, packed, 6) == b"onetwo"
    with pytest.raises(TooMuchData):
        decompress(1, packed, 5)


def test_snappy_without_a_frame_is_limited() -> None:
    with pytest.raises(TooMuchData):
        decompress(2, bytes(cramjam.snappy.compress_raw(SAMPLES[1])), 1_000)


def test_zstd_that_is_damaged_is_not_taken_for_too_much() -> None:
    packed = bytearray(compress(4, random.Random(5).randbytes(100_000)))
    packed[50_000:50_010] = bytes(10)
    packed[-20:] = b""
    with pytest.raises(HeliographError, match="The zstd data"):
        decompress(4, bytes(packed), 1_000_000)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec_is_refused_with_the_known_ones(codec: int) -> None:
    with pytest.raises(HeliographError, match=f"Codec {codec}.*none, gzip, snappy, lz4, zstd"):
        decompress(codec, b"")
