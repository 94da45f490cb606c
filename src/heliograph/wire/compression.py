"""The five codecs of a record batch, as Kafka's own clients write and read them.

0 none, 1 gzip, 2 snappy (in xerial's framing), 3 lz4 (independent blocks: Kafka's reader refuses linked ones), 4 zstd.
Must not know batches: bytes in, bytes out.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from struct import Struct, error

import cramjam
import lz4.frame

from heliograph.errors import HeliographError
from heliograph.wire.record_batch import Buffer

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

_GZIP_LEVEL = 6
_ZSTD_LEVEL = 3
_XERIAL_BLOCK_BYTES = 32 * 1024
_XERIAL_HEADER_BYTES = 16
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_BLOCK_LENGTH = Struct(">i")
MAX_BYTES = 256 << 20
"""A few bytes may stand for gigabytes; what opens to more than this would end the process."""
_ZSTD_RATIO = 1 << 15
"""More than a zstd frame can be: blocks of 128 KiB have at least four bytes."""

_UNREADABLE = (cramjam.DecompressionError, zlib.error, error, RuntimeError, OSError, EOFError, ValueError)


class TooMuchData(HeliographError):
    """A batch opens to more than may be held in memory."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"A record batch opens to more than the {limit} bytes that are left for it.")


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, _GZIP_LEVEL, mtime=0)


def _snappy(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _ungzip(data: bytes, limit: int) -> bytes:
    opened = b""
    while True:
        member = zlib.decompressobj(wbits=31)
        opened += member.decompress(data, limit - len(opened) + 1)
        if len(opened) > limit:
            raise TooMuchData(limit)
        if not member.eof:
            raise EOFError("it ends before its end was marked")
        data = member.unused_data
        if not data:
            return opened


def _unsnappy(data: bytes, limit: int) -> bytes:
    """Both framings are in use: xerial's by Java, none by Go and C clients."""
    if not data.startswith(_XERIAL_MAGIC):
        return _unsnappy_block(data, limit)
    parts = []
    at = _XERIAL_HEADER_BYTES
    left = limit
    while at < len(data):
        end = at + 4 + _BLOCK_LENGTH.unpack_from(data, at)[0]
        parts.append(_unsnappy_block(data[at + 4 : end], left))
        left -= len(parts[-1])
        at = end
    return b"".join(parts)


def _unsnappy_block(block: bytes, limit: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > limit:
        raise TooMuchData(limit)
    return bytes(cramjam.snappy.decompress_raw(block))


def _lz4(data: bytes) -> bytes:
    return bytes(lz4.frame.compress(data, block_linked=False, store_size=False))


def _unlz4(data: bytes, limit: int) -> bytes:
    frame = lz4.frame.LZ4FrameDecompressor()
    opened = bytes(frame.decompress(data, max_length=limit + 1))
    if len(opened) > limit:
        raise TooMuchData(limit)
    if not frame.eof:
        raise EOFError("it ends before its end was marked")
    return opened


def _zstd(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))


def _unzstd(data: bytes, limit: int) -> bytes:
    if len(data) * _ZSTD_RATIO <= limit:
        return bytes(cramjam.zstd.decompress(data))
    size = min(limit, max(len(data) * 16, 1 << 16))
    while True:
        room = bytearray(size)
        try:
            return bytes(memoryview(room)[: cramjam.zstd.decompress_into(data, room)])
        except cramjam.DecompressionError as fault:
            if "whole buffer" not in str(fault):
                raise
        if size == limit:
            raise TooMuchData(limit)
        size = min(limit, size * 8)


def _as_it_is(data: bytes, _: int) -> bytes:
    return data


_COMPRESS: tuple[Callable[[bytes], bytes], ...] = (bytes, _gzip, _snappy, _lz4, _zstd)
_DECOMPRESS: tuple[Callable[[bytes, int], bytes], ...] = (_as_it_is, _ungzip, _unsnappy, _unlz4, _unzstd)


def compress(codec: int, data: bytes) -> bytes:
    return _COMPRESS[_known(codec)](data)


def decompress(codec: int, data: Buffer, limit: int = MAX_BYTES) -> bytes:
    """What was compressed; TooMuchData where it is more than `limit` bytes."""
    codec = _known(codec)
    try:
        return _DECOMPRESS[codec](bytes(data), limit)
    except _UNREADABLE as fault:
        raise HeliographError(f"The {NAMES[codec]} data of a record batch cannot be decompressed: {fault}.") from fault


def _known(codec: int) -> int:
    if codec >= len(NAMES):
        raise HeliographError(f"Codec {codec} of a record batch is unknown; allowed are 0 to 4 ({', '.join(NAMES)}).")
    return codec
