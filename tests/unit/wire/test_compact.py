"""The building blocks of flexible messages."""

from __future__ import annotations

import pytest

from heliograph.errors import HeliographError
from heliograph.wire.compact import (
    check_version,
    compact_length,
    compact_string,
    read_compact_length,
    read_compact_string,
    read_tags,
    request_header,
    skip_tags,
    whole_answer,
)


def test_lengths_are_one_more_than_they_are() -> None:
    assert compact_string("") == b"\x01"
    assert compact_string("é") == b"\x03\xc3\xa9"
    assert compact_length([None] * 127) == b"\x80\x01"
    assert read_compact_length(b".\x80\x01", 1) == (127, 3)


def test_null_is_read_as_empty() -> None:
    assert read_compact_string(b"\x00", 0) == ("", 1)
    assert read_compact_length(b"\x00", 0) == (0, 1)


def test_text_that_is_not_utf8_does_not_stop_an_answer() -> None:
    assert read_compact_string(b"\x02\xff", 0) == ("\ufffd", 2)


def test_tags_are_given_with_their_places() -> None:
    tagged = b"\x02" + b"\x00\x03abc" + b"\x81\x01\x01z" + b"next"
    assert read_tags(tagged, 0) == ([(0, 3), (129, 9)], 10)
    assert skip_tags(tagged, 0) == 10
    assert skip_tags(b"\x00next", 0) == 1


def test_request_header_has_these_bytes() -> None:
    assert request_header(1, 13, 258, "ab").hex() == "0001" + "000d" + "00000102" + "0002" + "6162" + "00"


def test_read_beyond_the_end_is_one_sentence() -> None:
    with pytest.raises(HeliographError, match="The broker's Fetch 12 response ends"), whole_answer("Fetch 12"):
        read_compact_length(b"\x80", 0)


def test_version_out_of_range_names_the_allowed_ones() -> None:
    check_version("Fetch", 12, range(12, 14))
    with pytest.raises(HeliographError, match="Fetch version 14 is not spoken here; allowed are 12 to 13"):
        check_version("Fetch", 14, range(12, 14))
