"""What a consumer group of the classic protocol assigns to its members: Kafka's ConsumerProtocolAssignment."""

from __future__ import annotations

import struct

Partition = tuple[str, int]


def decode_assignment(data: bytes) -> list[Partition]:
    """The partitions of one member; none where the bytes are not of this form: a client may use one of its own."""
    try:
        return _decoded(data)
    except (struct.error, UnicodeDecodeError):
        return []


def _decoded(data: bytes) -> list[Partition]:
    found: list[Partition] = []
    (topics,) = struct.unpack_from(">i", data, 2)  # behind the version
    at = 6
    for _ in range(topics):
        (length,) = struct.unpack_from(">H", data, at)
        (name,) = struct.unpack_from(f">{length}s", data, at + 2)
        at += 2 + length
        (count,) = struct.unpack_from(">I", data, at)
        if count > len(data):  # or the format alone would take memory
            raise struct.error("more partitions than bytes")
        numbers = struct.unpack_from(f">{count}i", data, at + 4)
        at += 4 + 4 * count
        found += [(name.decode(), number) for number in numbers]
    return found
