"""Who may ask, how much and how often: tokens, origins, sizes, rates. Decided before any route is called."""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heliograph.config.flows import ServerSettings
from heliograph.errors import Refused
from heliograph.rest.refusals import body

USER = "X-Heliograph-User"
"""The header in which a command says for whom it asks."""
_USER_LENGTH = 100
_READS = ("GET", "HEAD", "OPTIONS")
_LOOPBACK = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)
_BURST_SECONDS = 10
_ADDRESSES_KEPT = 10_000
_SWALLOW_SECONDS = 5
_SWALLOW_BYTES = 64 << 20


class Tokens:
    """The tokens of a file, read again whenever it was saved. Empty path: nobody needs one."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._stamp = 0
        self._names: dict[str, str] = {}

    @property
    def are_needed(self) -> bool:
        return bool(self._path)

    def name_of(self, token: str) -> str | None:
        """Whose token it is; None if nobody's."""
        self._read()
        found = None
        for known, name in self._names.items():
            if hmac.compare_digest(known.encode(), token.encode()):
                found = name
        return found

    def _read(self) -> None:
        try:
            stamp = Path(self._path).stat().st_mtime_ns
            if stamp != self._stamp:
                self._names = dict(_token_lines(Path(self._path).read_text(encoding="utf-8")))
                self._stamp = stamp
        except OSError:
            self._names, self._stamp = {}, 0


def _token_lines(text: str) -> list[tuple[str, str]]:
    """(token, name) of `name: token` or `token`; lines with # are comments."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    parts = [line.rpartition(":") for line in lines]
    return [(token.strip(), name.strip() or "token") for name, _, token in parts if token.strip()]


class Pace:
    """So many requests per second and address, on average over ten seconds."""

    def __init__(self, per_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def allows(self, address: str) -> bool:
        if not self._per_second:
            return True
        now = self._clock()
        most = float(self._per_second * _BURST_SECONDS)
        left, then = self._left.pop(address, (most, now))
        left = min(most, left + (now - then) * self._per_second)
        while len(self._left) >= _ADDRESSES_KEPT:
            del self._left[next(iter(self._left))]
        self._left[address] = (left - 1 if left >= 1 else left, now)
        return left >= 1


class Guard:
    """Stands before the whole app."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._tokens = Tokens(settings.tokens_file)
        self._pace = Pace(settings.requests_per_second)
        self._body_max = settings.body_max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body_in = _Body(receive, self._body_max)
        try:
            self._check(scope)
            await self._app(scope, body_in.receive, send)
        except Refused as error:
            await body_in.swallow()
            advice = {"WWW-Authenticate": "Bearer"} if error.status == 401 else None
            path = scope["path"]
            await JSONResponse(body(path, error.status, str(error)), error.status, advice)(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        address = (scope.get("client") or ("", 0))[0]
        if not self._pace.allows(address):
            raise Refused(429, "too many requests from this address: rest.requests.per.second says how many may come")
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self._body_max:
            raise Refused(413, f"the body is larger than rest.body.max.bytes = {self._body_max:,}")
        if scope["method"] not in _READS:
            scope["state"] = {**scope.get("state", {}), "who": self._who(scope, headers)}

    def _who(self, scope: Scope, headers: Mapping[str, str]) -> str:
        """Whoever changes something; Refused if that may not be."""
        host, origin = headers.get("host", ""), headers.get("origin")
        address = (scope.get("client") or ("", 0))[0]
        claimed = _claimed(headers.get(USER, ""))
        if origin is not None and origin != f"{scope['scheme']}://{host}":
            raise Refused(403, f"changes are not taken from pages of {origin}")
        if not self._tokens.are_needed:
            # A page elsewhere may give its own name our address: then its origin and the host it asks for are the same.
            if not _LOOPBACK.fullmatch(host):
                raise Refused(403, f"changes by the name {host} need rest.auth.tokens.file; ask 127.0.0.1 instead")
            return claimed or f"{address}{' (page)' if origin is not None else ''}"
        kind, _, token = headers.get("authorization", "").partition(" ")
        name = self._tokens.name_of(token.strip()) if kind.lower() == "bearer" else None
        if name is None:
            raise Refused(401, "changes need a bearer token of rest.auth.tokens.file")
        return f"{name} ({claimed})" if claimed else name


def _claimed(text: str) -> str:
    """Who a command says that it works for: shown beside what is known, never trusted."""
    return text[:_USER_LENGTH] if text.isprintable() else ""


class _Body:
    """What a request brings, as it comes and no more of it than may be."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._read = 0
        self._ended = False

    async def receive(self) -> Message:
        message = await self._next()
        if self._read > self._most:
            raise Refused(413, f"the body is larger than rest.body.max.bytes = {self._most:,}")
        return message

    async def swallow(self) -> None:
        """Read on for a while: whoever is still sending when the door closes sees a broken pipe and not the answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SWALLOW_SECONDS):
                while not self._ended and self._read < _SWALLOW_BYTES:
                    await self._next()

    async def _next(self) -> Message:
        message = await self._receive()
        self._read += len(message.get("body", b""))
        self._ended = not message.get("more_body", False)
        return message


def who(request: Request) -> str:
    """Who asks for a change: the name of their token, what a command says of its user, or else the address."""
    name: Any = getattr(request.state, "who", "")
    return str(name)
