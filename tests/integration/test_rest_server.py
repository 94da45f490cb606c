"""The server's process by itself: taken ports, tokens, TLS, slow clients, its end. No cluster is needed for that."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from heliograph.config.flows import ServerSettings
from heliograph.config.listeners import Listener
from heliograph.control.board import Board
from heliograph.control.desk import Desk
from heliograph.control.views import Views
from tests.support.certificates import make_certificates
from tests.support.processes import command_of
from tests.support.rest import Rest

ANY = (Listener("http", "127.0.0.1", 0),)
FLOW = {
    "flow": "A->B",
    "source": "A",
    "target": "B",
    "bootstrap": {},
    "opened": True,
    "held": True,
    "trouble": "",
    "trouble_since_ms": 0,
    "topics": {},
    "throttle": 0,
    "throttle_topics": {},
    "jobs": [],
    "latency_ms": {"p50": None, "p99": None},
}


class Served:
    """A desk with its server, and what it was asked."""

    def __init__(self, settings: ServerSettings) -> None:
        self.views = 0
        self.asked: list[Mapping[str, Any]] = []
        self.desk = Desk(settings, Views(Board(), lambda _: {}), self._news)
        self.desk.answer("pause", self._pause)

    def _news(self) -> dict[str, Any]:
        self.views += 1
        return {"flows": {"A->B": FLOW}, "parts": {"run": {"time_ms": self.views}}}

    async def _pause(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append(args)
        return {}

    @property
    def processes(self) -> list[psutil.Process]:
        return [one for one in psutil.Process().children() if "heliograph.rest.server" in command_of(one)]

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        rest = Rest(self.desk.urls[0])
        return await asyncio.to_thread(rest.ask, method, path, body, headers)


@asynccontextmanager
async def served(settings: ServerSettings) -> AsyncIterator[Served]:
    made = Served(settings)
    keeping = asyncio.create_task(made.desk.keep())
    try:
        await until(lambda: bool(made.desk.urls) and made.views > 1)
        yield made
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        assert made.processes == []


async def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.05)


def test_changes_need_a_token_and_reading_does_not(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ann: s3cret\n")

    async def scenario() -> None:
        async with served(ServerSettings(ANY, tokens_file=str(tokens))) as it:
            path = "/api/v1/flows/A->B/pause"
            assert (await it.ask("GET", "/api/v1/flows"))[0] == 200
            assert (await it.ask("POST", path, {}))[0] == 401
            assert (await it.ask("POST", path, {}, Authorization="Bearer s3cre"))[0] == 401
            assert it.asked == []
            assert (await it.ask("POST", path, {"reason": "why"}, Authorization="Bearer s3cret"))[0] == 200
            assert [(args["who"], args["reason"]) for args in it.asked] == [("ann", "why")]

    asyncio.run(scenario())


def test_a_taken_port_is_a_warning_and_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        taken = socket.create_server(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with served(ServerSettings((*ANY, Listener("http", "127.0.0.1", port)))) as it:
            await until(lambda: f"http://127.0.0.1:{port}: Address already in use" in caplog.text)
            assert len(it.desk.urls) == 1
            assert (await it.ask("GET", "/health"))[0] == 200
            taken.close()
            await until(lambda: len(it.desk.urls) == 2)

    asyncio.run(scenario())


def test_https_is_served_with_the_given_certificate(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    listener = Listener("https", "127.0.0.1", 0)

    async def scenario() -> None:
        files = {"certificate_file": made.pem("broker"), "key_file": made.pem("broker")}
        async with served(ServerSettings((listener,), **files)) as it:
            trusting = ssl.create_default_context(cafile=made.ca())

            def ask() -> bytes:
                with urllib.request.urlopen(f"{it.desk.urls[0]}/health", context=trusting, timeout=30) as answer:  # noqa: S310  loopback
                    found: bytes = answer.read()
                    return found

            assert json.loads(await asyncio.to_thread(ask))["status"] == "healthy"

    asyncio.run(scenario())


def test_slow_clients_keep_nobody_waiting() -> None:
    """200 that send half a request and wait; others are answered, and the driver shows its views as before."""

    async def scenario() -> None:
        async with served(ServerSettings(ANY, requests_per_second=0)) as it:
            port = int(it.desk.urls[0].rpartition(":")[2])
            slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
            for _, writer in slow:
                writer.write(
                    b"POST /api/v1/flows/A-%3EB/pause HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{"
                )
            before = it.views
            answers = [await it.ask("GET", "/api/v1/flows") for _ in range(20)]
            assert [status for status, _ in answers] == [200] * 20
            await until(lambda: it.views >= before + 3)
            for _, writer in slow:
                writer.close()

    asyncio.run(scenario())


def test_who_asks_too_often_is_told_so_and_the_document_of_the_routes_is_there() -> None:
    async def scenario() -> None:
        async with served(ServerSettings(ANY, requests_per_second=2)) as it:
            # 20 at once are let through, then two a second: of so many some are too many even where each one takes seconds.
            answers = await asyncio.gather(*(it.ask("GET", "/api/v1/openapi.json") for _ in range(120)))
            statuses = {status for status, _ in answers}
            assert statuses == {200, 429}

    asyncio.run(scenario())


def test_a_change_is_made_whole_though_the_server_dies_in_the_middle() -> None:
    async def scenario() -> None:
        async with served(ServerSettings(ANY)) as it:
            begun, goes_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

            async def pause(_: Mapping[str, Any]) -> Mapping[str, Any]:
                begun.set()
                await goes_on.wait()
                done.set()
                return {}

            it.desk.answer("pause", pause)
            asking = asyncio.create_task(it.ask("POST", "/api/v1/flows/A->B/pause", {}))
            await begun.wait()
            views = it.views
            it.processes[0].kill()
            with pytest.raises(OSError):
                await asking
            await until(lambda: bool(it.desk.urls) and it.views > views + 1)  # the next server is there
            goes_on.set()
            await done.wait()

    asyncio.run(scenario())
