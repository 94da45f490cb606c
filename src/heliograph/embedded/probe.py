"""Asks one broker who its cluster's brokers are, over a socket of its own; and finds ports that are free.

One question and one answer, so that waiting for a broker to come up costs milliseconds. Everything else that is asked of
a broker goes through `heliograph.kafka`.
"""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterable

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

HOST = "127.0.0.1"

# Below the ports that the kernel gives to outgoing connections (32768 and up on Linux). Among those a client that keeps
# trying to reach a dead broker can be given the broker's own port, connect to itself, and keep the broker from coming back.
_FIRST_PORT, _LAST_PORT = 20_000, 32_000
_VERSION = 9


def free_ports(count: int, taken: Iterable[int] = ()) -> list[int]:
    """`count` ports on loopback that nobody listens on at this moment, none of them in `taken`."""
    # Not the module's own generator: a test runner that seeds it would make every cluster try the same ports.
    chance = random.SystemRandom()
    used = set(taken)
    found: list[int] = []
    while len(found) < count:
        port = chance.randrange(_FIRST_PORT, _LAST_PORT)
        if port not in used and _is_free(port):
            used.add(port)
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def brokers_known_to(port: int, timeout_seconds: float = 2.0) -> set[int]:
    """Node ids in the Metadata answer of the broker on this port; empty while it does not answer."""
    request = MetadataRequest(topics=[])
    request.API_VERSION = _VERSION
    request.with_header(correlation_id=1, client_id="heliograph-embedded")
    try:
        with socket.create_connection((HOST, port), timeout=timeout_seconds) as connection:
            connection.sendall(request.encode(version=_VERSION, header=True, framed=True))
            (size,) = struct.unpack(">i", _receive(connection, 4))
            answer = MetadataResponse.decode(_receive(connection, size), version=_VERSION, header=True)
    except (OSError, EOFError):
        return set()
    return {broker.node_id for broker in answer.brokers}


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise EOFError
        received += part
    return bytes(received)
