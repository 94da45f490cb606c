"""The driver's end of the REST server: starts it, starts it again when it dies, shows it the run, answers what it asks.

The server is a process of its own (rest/server.py), so that slow clients, large answers and its death cost the data plane nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import asdict
from typing import Any

from heliograph.config.flows import ServerSettings
from heliograph.control.views import Part, Views
from heliograph.errors import HeliographError, Refused
from heliograph.spark.line import Line, Message, serve

_log = logging.getLogger(__name__)
_SHOW_SECONDS = 1.0
_LOOK_SECONDS = 0.1
_LATEST_SECONDS = 10.0
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_STEADY_SECONDS = 60.0
_END_SECONDS = 2.0
_BACKLOG_BYTES = 64 << 20
_ASKED_AT_ONCE = 8

Answer = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class Desk:
    """`keep` runs for ever. `news` is asked once a second for what the server is to be shown."""

    def __init__(self, settings: ServerSettings, views: Views, news: Callable[[], dict[str, Any]]) -> None:
        self._settings = settings
        self._views = views
        self._news = news
        self._answers: dict[str, Answer] = {}
        self._changes: set[str] = set()
        """Which of them change the run."""
        self._token = secrets.token_hex(16)
        self._asked = asyncio.Semaphore(_ASKED_AT_ONCE)
        self._answering: set[asyncio.Task[None]] = set()
        """What is being answered. It goes on when the server dies: a change is made whole, whoever asked for it."""
        self._said: set[str] = set()
        self.is_carried: Callable[[], bool] = lambda: True
        """Whether lanes are carried already."""
        self.companions: list[Callable[[], Coroutine[Any, Any, None]]] = []
        """What runs for ever beside it, for the answers."""
        self.urls: list[str] = []
        """Where the server listens now."""

    def show(self, name: str, part: Part) -> None:
        self._views.parts[name] = part

    def answer(self, what: str, answer: Answer) -> None:
        self._answers[what] = answer

    def change(self, what: str, answer: Answer) -> None:
        """As `answer`. The server sees what came of it before whoever asked is told: who looks next sees it too."""
        self.answer(what, answer)
        self._changes.add(what)

    async def keep(self) -> None:
        if not self._settings.listeners:
            return
        await self._until_carried()
        server, port = await serve("127.0.0.1", self._handle)
        beside = [asyncio.create_task(self._beside(one)) for one in self.companions]
        pause = _FIRST_PAUSE_SECONDS
        loop = asyncio.get_running_loop()
        try:
            while True:
                begun = loop.time()
                code = await self._one_life(port)
                self.urls = []
                pause = _FIRST_PAUSE_SECONDS if loop.time() - begun > _STEADY_SECONDS else pause
                self._say(f"the REST server ended with {code} and is started again; records are copied all the same")
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        finally:
            server.close()
            under_way = [*beside, *self._answering]
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _beside(self, companion: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await companion()
        except Exception:  # noqa: BLE001  what only serves answers must not end the run
            _log.exception("a part of what REST answers has ended")

    async def _until_carried(self) -> None:
        """Records first: the server takes a second of the processor, and Spark starts at the same time."""
        waited = 0.0
        while waited < _LATEST_SECONDS and not self.is_carried():
            await asyncio.sleep(_LOOK_SECONDS)
            waited += _LOOK_SECONDS

    async def _one_life(self, port: int) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "heliograph.rest.server", stdin=PIPE, stdout=DEVNULL
        )
        try:
            await self._give_order(process, port)
            return await process.wait()
        finally:
            await _end(process)

    async def _give_order(self, process: Process, port: int) -> None:
        """By its standard input: what it is told may be seen by nobody else."""
        order = {"port": port, "token": self._token, "server": asdict(self._settings)}
        assert process.stdin is not None  # noqa: S101  PIPE
        process.stdin.write(json.dumps(order).encode())
        with contextlib.suppress(OSError):
            await process.stdin.drain()
        process.stdin.close()

    def _say(self, sentence: str) -> None:
        """Once; what is said again and again is not read."""
        if sentence not in self._said:
            self._said.add(sentence)
            _log.warning("%s", sentence)

    # -- the line ---------------------------------------------------------------------------------------------------

    async def _handle(self, line: Line) -> None:
        hello = await line.receive()
        if hello is None or not secrets.compare_digest(str(hello.get("token")), self._token):
            return
        self._views.begin_again()
        showing = asyncio.create_task(self._show_forever(line))
        try:
            while (message := await line.receive()) is not None:
                if message["kind"] == "listening":
                    self._listening(message)
                    continue
                task = asyncio.create_task(self._reply(line, message))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)

    def _listening(self, message: Message) -> None:
        self.urls = message["urls"]
        if message["refused"]:
            self._say(f"{message['refused']}; the page and REST of this run wait for that address, its lanes do not")
        else:
            _log.info("page, REST and metrics: %s", ", ".join(self.urls))

    async def _show_forever(self, line: Line) -> None:
        while True:
            self._show(line)
            await asyncio.sleep(_SHOW_SECONDS)

    def _show(self, line: Line) -> None:
        if line.backlog < _BACKLOG_BYTES:  # a server that does not read is not shown more than it can hold
            line.send({"kind": "view", **self._news()})

    async def _reply(self, line: Line, message: Message) -> None:
        async with self._asked:
            answered = await self._answered(message)
            if message["what"] in self._changes:
                self._show(line)
            line.send({"kind": "answer", "id": message["id"], **answered})

    async def _answered(self, message: Message) -> dict[str, Any]:
        try:
            answer = self._answers[message["what"]]
            return {"body": await answer(message["args"])}
        except Refused as error:
            return {"status": error.status, "message": str(error)}
        except (HeliographError, TimeoutError) as error:
            return {"status": 503, "message": str(error) or "a cluster did not answer in time"}
        except Exception:  # noqa: BLE001  a fault of an answer must not end the run
            _log.exception("the question %s was not answered", message["what"])
            return {"status": 500, "message": "the run could not answer; its log says why"}


async def _end(process: Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
