"""Readers of the page's stream who take nothing: they cost the server no memory, and others still get their answers."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
from pathlib import Path

import psutil

from tests.support.rest import Rest
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
WITHIN_MEGABYTES = 60


def test_two_hundred_readers_who_take_nothing_cost_no_memory_and_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    command = [sys.executable, "-m", "tests.support.page_server", "load", str(port)]
    with subprocess.Popen(command, cwd=ROOT) as server:
        try:
            rest = Rest(f"http://127.0.0.1:{port}")
            wait_until(lambda: _answers(rest), "the server answers", every=0.2)
            process = psutil.Process(server.pid)
            readers = [_reader(port, place) for place in range(200)]
            _wait_until_served(readers)
            wait_until(lambda: _seconds(rest) > 0, "it ticks")
            begun, before = _seconds(rest), process.memory_info().rss
            wait_until(lambda: _seconds(rest) > begun + 6, "six seconds of views", every=0.5)
            grown = (process.memory_info().rss - before) / 1e6
            assert grown < WITHIN_MEGABYTES, f"{grown:.0f} MB more"
            more = [_reader(port, place) for place in range(56)]
            _wait_until_served(more)
            status, body = rest.ask("GET", "/api/v1/stream")
            assert (status, "256 streams" in body["error"]["message"]) == (503, True)
            for reader in (*readers, *more):
                reader.close()
            wait_until(lambda: _head(port, "/api/v1/stream").startswith("HTTP/1.1 200"), "streams are served again")
        finally:
            server.kill()


def _answers(rest: Rest) -> bool:
    try:
        return rest.ask("GET", "/api/v1")[0] == 200
    except OSError:
        return False


def _seconds(rest: Rest) -> float:
    return float(rest.get("/api/v1")["time_ms"]) / 1000


def _reader(port: int, place: int) -> socket.socket:
    """Asks for a stream of lanes and never reads; its buffer is as small as the system allows."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect(("127.0.0.1", port))
    path = f"/api/v1/stream?flow=frankfurt-%3Edublin&limit=100&offset={place % 10 * 100}"
    made.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return made


def _wait_until_served(readers: list[socket.socket]) -> None:
    """Each has something that it could read: its stream has begun, with what memory it takes."""
    wait_until(
        lambda: len(select.select(readers, [], [], 0)[0]) == len(readers),
        f"{len(readers)} streams are served",
        every=0.2,
    )


def _head(port: int, path: str) -> str:
    with socket.create_connection(("127.0.0.1", port), 30) as made:
        made.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        return made.recv(200).decode()
