"""Addresses of the REST server."""

from __future__ import annotations

import pytest

from heliograph.config.listeners import EXPECTED, Listener, read_listeners


def test_addresses_are_read_as_connect_writes_them() -> None:
    assert read_listeners("http://127.0.0.1:8083, https://:8443,http://[::1]:0/") == (
        Listener("http", "127.0.0.1", 8083),
        Listener("https", "", 8443),
        Listener("http", "::1", 0),
    )
    assert read_listeners("none") == ()


@pytest.mark.parametrize(
    "text", ["", "127.0.0.1:8083", "http://host", "ftp://host:1", "http://host:65536", "http://a:1,none"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="none, or a list"):
        read_listeners(text)
    assert EXPECTED.startswith("none")


def test_a_listener_knows_who_reaches_it_and_how_it_is_written() -> None:
    assert [one.is_loopback for one in read_listeners("http://127.0.0.9:1,http://localhost:1,http://[::1]:1")] == [
        True
    ] * 3
    assert [one.is_loopback for one in read_listeners("http://:1,http://10.0.0.1:1")] == [False] * 2
    assert [one.url for one in read_listeners("http://[::1]:5,https://a:6")] == ["http://[::1]:5", "https://a:6"]
