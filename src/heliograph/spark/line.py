"""The line between a task and the driver: one TCP connection per task, one JSON object per line, both ways.

Task to driver: hello, ready, took, report (once a second), released.  Driver to task: go, revoke, release, stop, throttle and
ping (once a second).
The messages are written down here as constructors, so that both ends agree.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

Message = dict[str, Any]

_LIMIT = 64 << 20
SILENCE_SECONDS = 10.0
PING_SECONDS = 1.0


def hello(token: str, epoch: int, slot: int, attempt: str, process: int) -> Message:
    return {"kind": "hello", "token": token, "epoch": epoch, "slot": slot, "attempt": attempt, "process": process}


def ready(lanes: Sequence[str]) -> Message:
    return {"kind": "ready", "lanes": list(lanes)}


def report(lanes: Sequence[Mapping[str, Any]], slot: Mapping[str, Any]) -> Message:
    return {"kind": "report", "lanes": list(lanes), "slot": dict(slot)}


def released(lanes: Sequence[tuple[str, str | None, bool]], unread: Mapping[str, float] | None = None) -> Message:
    """Lanes that ended, each with its entry, and whether it is clean: nothing of the task's is on its way any more; else a
    request may still arrive after its connection ended. `unread`: for how many seconds each is not read any more; durations
    travel, because clocks of two hosts are never compared."""
    return {"kind": "released", "lanes": [list(lane) for lane in lanes], "unread": dict(unread or {})}


def took(lanes: Mapping[str, float]) -> Message:
    """Lanes that the task reads now, and for how many seconds already."""
    return {"kind": "took", "lanes": dict(lanes)}


def go(lanes: Sequence[str], held: bool, alone: bool, entries: Mapping[str, str]) -> Message:
    """`held`: no other run holds the flow. `alone`: besides, the last attempt is known dead."""
    return {"kind": "go", "lanes": list(lanes), "held": held, "alone": alone, "entries": dict(entries)}


def revoke(lanes: Sequence[str]) -> Message:
    """These lanes are neither `held` nor `alone` any more: another run may hold their flow."""
    return {"kind": "revoke", "lanes": list(lanes)}


def release(lanes: Sequence[str]) -> Message:
    return {"kind": "release", "lanes": list(lanes)}


def throttle(rates: Mapping[str, float]) -> Message:
    """How many bytes per second the task may read from now on, by limit: these limits and no others."""
    return {"kind": "throttle", "rates": dict(rates)}


def stop() -> Message:
    return {"kind": "stop"}


def ping() -> Message:
    return {"kind": "ping"}


class Line:
    """One end of the line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def dial(cls, host: str, port: int) -> Line:
        reader, writer = await asyncio.open_connection(host, port, limit=_LIMIT)
        return cls(reader, writer)

    def send(self, message: Message) -> None:
        if not self._writer.is_closing():
            self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    async def receive(self) -> Message | None:
        """The next message; None when the other end is gone."""
        try:
            text = await self._reader.readline()
        except (OSError, ValueError):
            return None
        if not text.endswith(b"\n"):
            return None
        message: Message = json.loads(text)
        return message

    @property
    def backlog(self) -> int:
        """Bytes that the other end has not taken yet."""
        return self._writer.transport.get_write_buffer_size()

    def peer(self) -> str:
        return str(self._writer.get_extra_info("peername"))

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


async def serve(host: str, handle: Callable[[Line], Awaitable[None]]) -> tuple[asyncio.Server, int]:
    """Listen on a free port; `handle` runs once per task that dials in."""

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Line(reader, writer)
        try:
            await handle(line)
        finally:
            await line.close()

    server = await asyncio.start_server(accepted, host, 0, limit=_LIMIT)
    port: int = server.sockets[0].getsockname()[1]
    return server, port
