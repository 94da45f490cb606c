"""Sockets as connections need them: opened with buffers of a size, frames while they come, what has not left yet."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import socket
import struct
import termios
from collections.abc import Callable
from dataclasses import dataclass

_COUNT = struct.Struct("i")


@dataclass(frozen=True)
class Buffers:
    """Bytes of a socket's two buffers; -1: as the system has them."""

    receive: int = 4 << 20
    send: int = 4 << 20


DEFAULT_BUFFERS = Buffers()


class Frame:
    """A frame while it comes: first its head, which says how long the body is, then the body."""

    __slots__ = ("_buffer_for", "buffer", "got", "view")

    def __init__(self, head: memoryview, buffer_for: Callable[[int], bytearray]) -> None:
        self._buffer_for = buffer_for
        self.buffer = bytearray()
        self.view = head
        self.got = 0

    def begin_body(self, size: int) -> None:
        self.buffer = self._buffer_for(size)
        self.view = memoryview(self.buffer)[:size]
        self.got = 0

    @property
    def is_whole(self) -> bool:
        return bool(self.buffer) and self.got == len(self.view)


async def connected(host: str, port: int, timeout_s: float, buffers: Buffers) -> socket.socket:
    """A socket to the first of the host's addresses that answers."""
    loop = asyncio.get_running_loop()
    # Not wait_for: in Python 3.11 it may swallow a cancellation that comes with the result.
    async with asyncio.timeout(timeout_s):
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    fault: OSError | None = None
    for family, kind, proto, _, address in found:
        sock = socket.socket(family, kind, proto)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for which, size in ((socket.SO_RCVBUF, buffers.receive), (socket.SO_SNDBUF, buffers.send)):
                if size >= 0:
                    sock.setsockopt(socket.SOL_SOCKET, which, size)
            async with asyncio.timeout(timeout_s):
                await loop.sock_connect(sock, address)
            return sock
        except OSError as error:
            sock.close()
            fault = error
        except BaseException:
            sock.close()
            raise
    raise fault or OSError("no address")


def unsent_bytes(sock: socket.socket) -> int:
    """What the other side has not confirmed yet of everything that was written; 0 where the system does not tell."""
    with contextlib.suppress(OSError, ValueError):
        return int(_COUNT.unpack(fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(_COUNT.size)))[0])
    return 0
