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

_UNREADABLE = (cramjam.DecompressionError, zlib.error, error, RuntimeError, OSError, EOFError, ValueError)


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, _GZIP_LEVEL, mtime=0)


def _snappy(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _unsnappy(data: bytes) -> bytes:
    """Both framings are in use: xerial's by Java, none by Go and C clients."""
    if not data.startswith(_XERIAL_MAGIC):
        return bytes(cramjam.snappy.decompress_raw(data))
    parts = []
    at = _XERIAL_HEADER_BYTES
    while at < len(data):
        end = at + 4 + _BLOCK_LENGTH.unpack_from(data, at)[0]
        parts.append(bytes(cramjam.snappy.decompress_raw(data[at + 4 : end])))
        at = end
    return b"".join(parts)


def _lz4(data: bytes) -> bytes:
    return bytes(lz4.frame.compress(data, block_linked=False, store_size=False))


def _unlz4(data: bytes) -> bytes:
    return bytes(lz4.frame.decompress(data))


def _zstd(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))


def _unzstd(data: bytes) -> bytes:
    return bytes(cramjam.zstd.decompress(data))


_COMPRESS: tuple[Callable[[bytes], bytes], ...] = (bytes, _gzip, _snappy, _lz4, _zstd)
_DECOMPRESS: tuple[Callable[[bytes], bytes], ...] = (bytes, gzip.decompress, _unsnappy, _unlz4, _unzstd)


def compress(codec: int, data: bytes) -> bytes:
    return _COMPRESS[_known(codec)](data)


def decompress(codec: int, data: Buffer) -> bytes:
    codec = _known(codec)
    try:
        return _DECOMPRESS[codec](bytes(data))
    except _UNREADABLE as fault:
        raise HeliographError(f"The {NAMES[codec]} data of a record batch cannot be decompressed: {fault}.") from fault


def _known(codec: int) -> int:
    if codec >= len(NAMES):
        raise HeliographError(f"Codec {codec} of a record batch is unknown; allowed are 0 to 4 ({', '.join(NAMES)}).")
    return codec
