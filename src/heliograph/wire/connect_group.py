"""What a Kafka Connect group says of its members: which connectors and tasks each one runs.

In Connect's newer protocols (compatible, sessioned) an assignment holds only what the last rebalance added; what a member had
before stands in its metadata. In the eager one the assignment is all. So both are read and joined. What was revoked is gone
from the metadata with the rebalance after, and is not looked at.

Big-endian, strings with an int16 length, arrays and bytes with an int32 one; -1 is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct, error

Tasks = Mapping[str, tuple[int, ...]]
"""Task numbers by connector; -1 stands for the connector itself."""

_SHORT = Struct(">h")
_INT = Struct(">i")
_VERSION_AND_ERROR = Struct(">hh")
_CONFIG_OFFSET = Struct(">q")


def decode_tasks(metadata: bytes, assignment: bytes) -> Tasks | None:
    """What a member runs; None where that cannot be told (it has nothing assigned yet)."""
    try:
        found: dict[str, set[int]] = {}
        for data in (_allocation(metadata), assignment):
            for connector, tasks in _assigned(data).items() if data else ():
                found.setdefault(connector, set()).update(tasks)
    except (error, UnicodeDecodeError):
        return None
    return {connector: tuple(sorted(tasks)) for connector, tasks in found.items()} if assignment else None


def _allocation(metadata: bytes) -> bytes:
    """What the member ran when it joined; nothing in the eager protocol, which has no such field."""
    _, at = _string(metadata, _SHORT.size)  # its address, after the version
    at += _CONFIG_OFFSET.size
    if at >= len(metadata):
        return b""
    (length,) = _INT.unpack_from(metadata, at)
    return metadata[at + _INT.size :][: max(length, 0)]


def _assigned(data: bytes) -> Tasks:
    _VERSION_AND_ERROR.unpack_from(data)
    _, at = _string(data, _VERSION_AND_ERROR.size)  # the leader
    _, at = _string(data, at)  # its address
    at += _CONFIG_OFFSET.size
    (count,), at = _INT.unpack_from(data, at), at + _INT.size
    found: dict[str, tuple[int, ...]] = {}
    for _ in range(max(count, 0)):
        connector, at = _string(data, at)
        (tasks,), at = _INT.unpack_from(data, at), at + _INT.size
        found[connector] = Struct(f">{max(tasks, 0)}i").unpack_from(data, at)
        at += _INT.size * max(tasks, 0)
    return found


def _string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _SHORT.unpack_from(data, at)
    at += _SHORT.size
    length = max(length, 0)
    if at + length > len(data):
        raise error("string is longer than the record")
    return data[at : at + length].decode(), at + length
