"""A door in front of a broker that can be shut for one process: a host that lost its way to a cluster while others did not."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

import psutil

_CHUNK = 1 << 16


class ShutDoor:
    """Passes everything on to `address()`, asked for each connection; `cut` shuts out a process, `heal` lets it in again."""

    def __init__(self) -> None:
        self.address: Callable[[], str] = lambda: ""
        self._server = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: dict[int, tuple[socket.socket, socket.socket]] = {}
        """By the port of who dialled."""
        self._shut_out: set[int] = set()

    @property
    def port(self) -> int:
        return int(self._server.getsockname()[1])

    def cut(self, process: int) -> None:
        with self._lock:
            self._shut_out.add(process)
            ports = _ports_of(process)
            lost = [pair for port, pair in self._open.items() if port in ports]
        for pair in lost:
            _close(*pair)

    def heal(self) -> None:
        with self._lock:
            self._shut_out.clear()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for pair in list(self._open.values()):
            _close(*pair)

    def _accept(self) -> None:
        while True:
            try:
                inside, (_, port) = self._server.accept()
            except OSError:
                return
            with self._lock:
                is_shut_out = any(port in _ports_of(process) for process in self._shut_out)
            if is_shut_out:
                inside.close()
                continue
            host, _, there = self.address().rpartition(":")
            try:
                outside = socket.create_connection((host, int(there)))
            except OSError:
                inside.close()
                continue
            with self._lock:
                self._open[port] = (inside, outside)
            for pair in ((inside, outside), (outside, inside)):
                threading.Thread(target=self._pump, args=(port, *pair), daemon=True).start()

    def _pump(self, port: int, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                sink.sendall(data)
        _close(source, sink)
        with self._lock:
            self._open.pop(port, None)


def _ports_of(process: int) -> set[int]:
    try:
        return {one.laddr.port for one in psutil.Process(process).net_connections("tcp") if one.laddr}
    except psutil.Error:
        return set()


def _close(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
