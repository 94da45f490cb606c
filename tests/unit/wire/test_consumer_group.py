from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from heliograph.wire.consumer_group import decode_assignment


def encoded(topics: dict[str, list[int]], user_data: bytes = b"") -> bytes:
    out = struct.pack(">hi", 1, len(topics))
    for name, numbers in topics.items():
        text = name.encode()
        out += struct.pack(f">h{len(text)}si{len(numbers)}i", len(text), text, len(numbers), *numbers)
    return out + struct.pack(">i", len(user_data)) + user_data


@given(st.dictionaries(st.text(min_size=1, max_size=20), st.lists(st.integers(0, 2**31 - 1), max_size=5), max_size=5))
def test_every_partition_of_a_member_is_found(topics: dict[str, list[int]]) -> None:
    expected = [(name, number) for name, numbers in topics.items() for number in numbers]
    assert decode_assignment(encoded(topics, b"extra")) == expected


def test_what_is_of_another_form_assigns_nothing() -> None:
    assert decode_assignment(b"") == []
    assert decode_assignment(encoded({"orders": [1, 2]})[:-8]) == []
    assert decode_assignment(struct.pack(">hih1si", 0, 1, 1, b"t", -1)) == []
    assert decode_assignment(struct.pack(">hih2s", 0, 1, 2, b"\xff\xfe") + bytes(8)) == []


@given(st.binary(max_size=40))
def test_any_bytes_are_borne(data: bytes) -> None:
    assert isinstance(decode_assignment(data), list)
