from __future__ import annotations

import struct

import pytest

from heliograph.wire.connect_protocol import assigned_tasks


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def assignment(version: int, *connectors: tuple[str, list[int]], tail: bytes = b"") -> bytes:
    """As ConnectProtocol and IncrementalCooperativeConnectProtocol write it."""
    head = struct.pack(">hh", version, 0) + text("connect-leader") + text("http://h:8083/") + struct.pack(">q", 42)
    body = b"".join(text(name) + struct.pack(f">i{len(tasks)}i", len(tasks), *tasks) for name, tasks in connectors)
    return head + struct.pack(">i", len(connectors)) + body + tail


@pytest.mark.parametrize("version", [0, 1, 2])
def test_tasks_are_counted_and_the_connector_itself_is_none(version: int) -> None:
    data = assignment(version, ("mirror", [-1, 0, 1]), ("beat", [-1]), tail=struct.pack(">ii", 0, 0))
    assert assigned_tasks(data) == {"mirror": 2, "beat": 0}


def test_an_empty_assignment_has_no_connectors() -> None:
    assert assigned_tasks(assignment(2)) == {}


@pytest.mark.parametrize("data", [b"", b"\x00", assignment(1, ("mirror", [0]))[:-2]])
def test_bytes_that_are_no_assignment_have_no_connectors(data: bytes) -> None:
    assert assigned_tasks(data) == {}


def test_a_null_text_is_empty() -> None:
    data = struct.pack(">hhhhq", 1, 0, -1, -1, 0) + struct.pack(">i", 0)
    assert assigned_tasks(data) == {}
