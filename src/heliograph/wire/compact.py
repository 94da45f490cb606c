"""The building blocks of Kafka's flexible messages: compact strings and arrays, tagged fields, the request header.

A compact length is the real one plus 1, so that 0 can mean null. Must not know any message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from contextlib import contextmanager
from struct import Struct, error

from heliograph.errors import HeliographError
from heliograph.wire.record_batch import Buffer
from heliograph.wire.varint import read_unsigned, unsigned

NO_TAGS = b"\x00"
NULL = b"\x00"
EMPTY = b"\x01"
UUID_BYTES = 16

_REQUEST_HEADER = Struct(">hhih")


def request_header(api_key: int, version: int, correlation_id: int, client_id: str) -> bytes:
    """Request header 2; the client id keeps the old, not compact form."""
    name = client_id.encode()
    return _REQUEST_HEADER.pack(api_key, version, correlation_id, len(name)) + name + NO_TAGS


def compact_string(text: str) -> bytes:
    encoded = text.encode()
    return unsigned(len(encoded) + 1) + encoded


def compact_length(items: Sized) -> bytes:
    return unsigned(len(items) + 1)


def read_compact_length(buf: Buffer, at: int) -> tuple[int, int]:
    """The length of a compact string or array (null counts as empty), and where its content begins."""
    length, at = read_unsigned(buf, at)
    return (length - 1 if length else 0), at


def read_compact_string(buf: Buffer, at: int) -> tuple[str, int]:
    """Null is given as the empty string."""
    length, at = read_compact_length(buf, at)
    return str(bytes(buf[at : at + length]), "utf-8", "replace"), at + length


def read_tags(buf: Buffer, at: int) -> tuple[list[tuple[int, int]], int]:
    """The tagged fields at `at`, each as tag and place of its content, and where the next field begins."""
    count, at = read_unsigned(buf, at)
    tags = []
    for _ in range(count):
        tag, at = read_unsigned(buf, at)
        size, at = read_unsigned(buf, at)
        tags.append((tag, at))
        at += size
    return tags, at


def skip_tags(buf: Buffer, at: int) -> int:
    return at + 1 if not buf[at] else read_tags(buf, at)[1]


@contextmanager
def whole_answer(message: str) -> Iterator[None]:
    """A field beyond the end of a message becomes one sentence about that message."""
    try:
        yield
    except (IndexError, error) as fault:
        raise HeliographError(f"The broker's {message} response ends before its last field.") from fault


def check_version(message: str, version: int, supported: range) -> None:
    if version not in supported:
        allowed = f"{supported[0]} to {supported[-1]}"
        raise HeliographError(f"{message} version {version} is not spoken here; allowed are {allowed}.")
