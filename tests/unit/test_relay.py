"""The line that tests put between Heliograph and a broker does what it says."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.support.relay import Relay

SECONDS = 10.0


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that says what it hears; its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(sock: socket.socket) -> None:
        with sock:
            try:
                while heard := sock.recv(1 << 16):
                    sock.sendall(heard)
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(sock,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


@pytest.fixture
def relay(echo: int) -> Iterator[Relay]:
    with Relay("127.0.0.1", echo) as relay:
        yield relay


def opened(relay: Relay) -> socket.socket:
    return socket.create_connection(("127.0.0.1", relay.port), SECONDS)


def hear(sock: socket.socket, size: int) -> bytes:
    heard = b""
    while len(heard) < size:
        piece = sock.recv(size - len(heard))
        if not piece:
            break
        heard += piece
    return heard


def test_everything_passes_both_ways_unchanged_and_is_counted(relay: Relay) -> None:
    said = bytes(range(256)) * 2000
    with opened(relay) as sock:
        threading.Thread(target=sock.sendall, args=(said,)).start()
        assert hear(sock, len(said)) == said
    assert relay.to_broker == len(said)


def test_a_rate_holds_for_all_connections_together_and_a_delay_for_each_byte(relay: Relay) -> None:
    relay.rate_bytes_s, relay.delay_s = 100_000, 0.1
    began = time.monotonic()
    with opened(relay) as one, opened(relay) as two:
        one.sendall(bytes(20_000))
        two.sendall(bytes(20_000))
        hear(one, 20_000)
        hear(two, 20_000)
    assert time.monotonic() - began >= 0.4 + 0.2


def test_a_frozen_line_passes_nothing_and_loses_nothing(relay: Relay) -> None:
    with opened(relay) as sock:
        sock.sendall(b"before")
        assert hear(sock, 6) == b"before"
        relay.freeze()
        sock.sendall(b"during")
        sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            sock.recv(6)
        sock.settimeout(SECONDS)
        relay.thaw()
        assert hear(sock, 6) == b"during"


def test_a_cut_ends_what_is_open_and_what_is_refused_never_opens(relay: Relay) -> None:
    with opened(relay) as sock:
        sock.sendall(b"hello")
        assert hear(sock, 5) == b"hello"
        relay.cut()
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
    relay.refuse = True
    with pytest.raises(ConnectionResetError), opened(relay) as sock:
        assert sock.recv(1) == b"x"
    relay.refuse = False
    with opened(relay) as sock:
        sock.sendall(b"again")
        assert hear(sock, 5) == b"again"
