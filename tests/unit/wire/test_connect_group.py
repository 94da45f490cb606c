"""What the members of a Connect group run, in the three protocols that Connect has."""

from __future__ import annotations

from struct import pack

import pytest

from heliograph.wire.connect_group import decode_tasks

EAGER, COMPATIBLE, SESSIONED = 0, 1, 2


def string(text: str) -> bytes:
    return pack(">h", len(text)) + text.encode()


def assignment(version: int, tasks: dict[str, list[int]]) -> bytes:
    body = pack(">hh", version, 0) + string("leader-1") + string("http://host:8083/") + pack(">qi", 7, len(tasks))
    for connector, numbers in tasks.items():
        body += string(connector) + pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return body + (pack(">ii", -1, 0) if version else b"")


def metadata(version: int, had: dict[str, list[int]] | None = None) -> bytes:
    head = pack(">h", version) + string("http://host:8083/") + pack(">q", 6)
    if version == EAGER:
        return head
    if had is None:
        return head + pack(">i", -1)
    held = assignment(version, had)
    return head + pack(">i", len(held)) + held


def test_an_eager_assignment_is_all() -> None:
    tasks = {"MirrorSourceConnector": [-1, 0, 1], "idle": []}
    found = decode_tasks(metadata(EAGER), assignment(EAGER, tasks))
    assert found == {"MirrorSourceConnector": (-1, 0, 1), "idle": ()}


@pytest.mark.parametrize("version", [COMPATIBLE, SESSIONED])
def test_what_a_member_had_and_what_it_was_given_are_joined(version: int) -> None:
    had = metadata(version, {"MirrorSourceConnector": [-1, 0], "MirrorHeartbeatConnector": [-1]})
    given = assignment(version, {"MirrorSourceConnector": [1]})
    assert decode_tasks(had, given) == {"MirrorSourceConnector": (-1, 0, 1), "MirrorHeartbeatConnector": (-1,)}


def test_a_member_that_had_nothing_has_what_it_was_given() -> None:
    given = assignment(SESSIONED, {"MirrorSourceConnector": [-1]})
    assert decode_tasks(metadata(SESSIONED), given) == {"MirrorSourceConnector": (-1,)}


def test_a_null_array_is_an_empty_one() -> None:
    head = pack(">hh", 1, 0) + string("l") + pack(">h", -1)
    assert decode_tasks(metadata(1), head + pack(">qi", 7, -1)) == {}
    assert decode_tasks(metadata(1), head + pack(">qi", 7, 1) + string("c") + pack(">i", -1)) == {"c": ()}


@pytest.mark.parametrize("size", [0, 1, 4, 9, 20, 40, 60])
def test_bytes_that_end_too_early_tell_nothing(size: int) -> None:
    whole = assignment(SESSIONED, {"MirrorSourceConnector": [0]})
    assert decode_tasks(metadata(SESSIONED), whole[:size]) is None


def test_what_is_no_text_tells_nothing() -> None:
    assert decode_tasks(metadata(SESSIONED), pack(">hhh", 2, 0, 1) + b"\xff") is None
    assert decode_tasks(b"", assignment(SESSIONED, {})) is None
