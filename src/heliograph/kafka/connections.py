"""One connection to one broker, on a non-blocking socket in the running asyncio loop, with TLS and a login where asked.

Two ways to use it: `ask` for the library's messages, one at a time; `send` and `receive_into` for the two hot messages, whose
codecs are ours (heliograph.wire). Knows no lanes and no retries: whatever ends a connection is ConnectionLost. No limit is on
the whole of a message: what is large or slow may take its time, as long as bytes come or leave.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from heliograph.errors import AccessRefused, ConnectionLost
from heliograph.kafka.login import log_in
from heliograph.kafka.pace import Pace
from heliograph.kafka.sockets import DEFAULT_BUFFERS, Buffers, Frame, connected, unsent_bytes
from heliograph.kafka.tls import refusal, shake_hands
from heliograph.model.security import PLAINTEXT, Login, Security

_FRAME = struct.Struct(">i")
_NO_LINGER = struct.pack("ii", 1, 0)
_MAX_BUFFERS_PER_SEND = 512  # below Linux's IOV_MAX of 1024
_MAX_FRAME_BYTES = 1 << 30
_WAKE_BYTES = 1 << 20
_LARGE_FRAME = 128 << 10
_UNSUPPORTED_VERSION = 35
_LOGIN_PART = 0.85
_SETUP_SECONDS = 10.0
"""For TLS, versions and login; a line that is merely slow needs no more."""
_CONNECT_SECONDS = 5.0
_LOOKS = 4
"""How often silence is looked for within its limit."""
_TLS_ALERT = b"\x15\x03"
_HUNG_UP = (ssl.SSLEOFError, ConnectionResetError, BrokenPipeError)
CLIENT_ID = "heliograph"

Buffer = bytes | bytearray | memoryview


class Connection:
    """Opened by `Connection.open`; closed by `close`, or by the first error on it."""

    def __init__(self, sock: socket.socket, name: str, timeout_s: float, login: Login | None = None) -> None:
        self._sock = sock
        self._is_plain = not isinstance(sock, ssl.SSLSocket)
        self._login = login
        self._login_ends: float | None = None
        self._loop = asyncio.get_running_loop()
        self._timeout_s = timeout_s
        self._lock = asyncio.Lock()
        self._correlation = 0
        self._head = bytearray(4)
        self._waiters: set[asyncio.Future[None]] = set()
        self.is_receiving = False
        """The first byte of a frame has come: who closes now throws an answer away."""
        self.began_at = 0.0
        """When it came."""
        self.pace = Pace()
        """How much to ask for at a time."""
        self._moved_at, self._unsent = self._loop.time(), 0
        self._wakes_at = 1
        self._used = self._loop.time()
        self.name = name
        self.versions: dict[int, tuple[int, int]] = {}
        self.closed = False
        self._ended: object = "closed"
        """Why, once it is."""

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        timeout_s: float,
        security: Security = PLAINTEXT,
        buffers: Buffers = DEFAULT_BUFFERS,
    ) -> Connection:
        """Connect, log in, and learn which versions of which messages the broker speaks."""
        name = f"{host}:{port}"
        sock: socket.socket | None = None
        try:
            sock = await connected(host, port, min(timeout_s, _CONNECT_SECONDS), buffers)
            if security.tls is not None:
                async with asyncio.timeout(min(timeout_s, _SETUP_SECONDS)):
                    sock = await shake_hands(sock, host, security.tls)
            connection = cls(sock, name, timeout_s, security.login)
            await connection._learn_versions(min(timeout_s, _SETUP_SECONDS))
            if security.login is not None:
                await connection._log_in()
            return connection
        except (OSError, TimeoutError, ConnectionLost) as error:
            if sock is not None:
                sock.close()
            raise _not_opened(name, host, security, error) from error
        except BaseException:
            if sock is not None:
                sock.close()
            raise

    async def _log_in(self) -> None:
        """Say who we are, anew if we said it before; nothing may be on the way."""
        if self._login is not None:
            seconds = await log_in(self._ask_alone, self._login, self.name.rpartition(":")[0])
            # Not at the very end: the broker closes a connection that is used a moment too late (KIP-368).
            self._login_ends = self._loop.time() + seconds * _LOGIN_PART if seconds else None

    @property
    def login_ends(self) -> bool:
        """The broker will soon want to know again who we are."""
        return self._login_ends is not None and self._loop.time() >= self._login_ends

    async def renew_login(self) -> None:
        """Log in again if it is time; for callers that have no request on the way."""
        if self.login_ends:
            self._login_ends = None
            try:
                await self._log_in()
            except BaseException:
                self.close()  # it belongs to nobody now
                raise

    async def _learn_versions(self, timeout_s: float) -> None:
        request = ApiVersionsRequest(client_software_name="heliograph", client_software_version="0")
        answer = await self.ask(request, ApiVersionsResponse, 3, timeout_s)
        if answer.error_code == _UNSUPPORTED_VERSION:  # before Kafka 2.4: what else it lacks must be told by name
            answer = await self.ask(request, ApiVersionsResponse, 0, timeout_s)
        if answer.error_code:
            raise ConnectionLost(f"{self.name}: the broker refused ApiVersions with error {answer.error_code}")
        self.versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}

    def version(self, api_key: int, wanted: int) -> int:
        """The newest version up to `wanted` that the broker offers."""
        low, high = self.versions.get(api_key, (0, -1))
        best = min(wanted, high)
        if best < low:
            raise ConnectionLost(f"{self.name}: message {api_key} is not offered in any version up to {wanted}")
        return best

    async def ask(self, request: Any, response: Any, version: int, timeout_s: float | None = None) -> Any:
        """Send one of the library's requests and wait for its answer; callers queue."""
        return self._decoded(await self.exchange(_encoder(request, version), timeout_s), response, version)

    async def _ask_alone(self, request: Any, response: Any, api_key: int, wanted: int) -> Any:
        """The same for the login, which others must wait for."""
        version = self.version(api_key, wanted)
        answer = await self._exchange_alone(_encoder(request, version), min(self._timeout_s, _SETUP_SECONDS))
        return self._decoded(answer, response, version)

    def _decoded(self, answer: bytearray, response: Any, version: int) -> Any:
        try:
            return response.decode(bytes(answer), version=version, header=True)
        except Exception as error:  # the library raises whatever the bytes lead it to
            raise self._lost(f"an answer that cannot be read ({error})") from error

    async def exchange(self, encode: Callable[[int], Sequence[Buffer]], timeout_s: float | None = None) -> bytearray:
        """One request and its answer, whole, beginning at the correlation id; callers queue.

        Lost after `timeout_s` in which no byte came or left.
        """
        limit = self._timeout_s if timeout_s is None else timeout_s
        async with self._lock:
            await self.renew_login()
            return await self._exchange_alone(encode, limit)

    async def _exchange_alone(self, encode: Callable[[int], Sequence[Buffer]], limit: float) -> bytearray:
        answer = bytearray()
        try:
            await self.send(encode(self.next_correlation()), limit)
            await self.receive_into(lambda size: _grown(answer, size), limit)
        except asyncio.CancelledError:
            self.close()  # the answer of a cancelled request would be taken for the next one's
            raise
        self._used = self._loop.time()
        return answer

    def is_idle(self, seconds: float) -> bool:
        """Nothing was asked on it for so long: the broker may have closed it, and only the next question would tell."""
        return not self._lock.locked() and self._loop.time() - self._used >= seconds

    def granted(self) -> Buffers:
        """What the system made of the buffers that were asked for."""
        double = 2 if sys.platform == "linux" else 1  # Linux tells of its bookkeeping too, which is as much again
        found = (self._sock.getsockopt(socket.SOL_SOCKET, which) for which in (socket.SO_RCVBUF, socket.SO_SNDBUF))
        receive, send = (size // double for size in found)
        return Buffers(receive, send)

    def send_nothing_late(self) -> None:
        """With the end of this connection, or of this process, ends what the socket still holds: none of it arrives later."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)

    def next_correlation(self) -> int:
        self._correlation += 1
        return self._correlation

    async def send(self, buffers: Sequence[Buffer], silence_s: float | None = None) -> None:
        """Write all buffers, copying none of them. Lost when the socket has taken nothing for `silence_s`."""
        left = self.send_now(buffers)
        while left:
            await self._wait(self._loop.add_writer, self._loop.remove_writer, _wake, silence_s)
            left = self.send_now(left)

    def send_now(self, buffers: Sequence[Buffer]) -> list[memoryview]:
        """Write what the socket takes without waiting; what is left, which nothing may be sent before."""
        pending = [memoryview(buffer) for buffer in buffers]
        at = 0
        while at < len(pending):
            try:
                sent = self._sock.sendmsg(pending[at : at + _MAX_BUFFERS_PER_SEND])
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                raise self._lost(error) from error
            self._moved_at = self._loop.time()
            while at < len(pending) and sent >= len(pending[at]):
                sent -= len(pending[at])
                at += 1
            if sent:
                pending[at] = pending[at][sent:]
        return pending[at:]

    async def receive_into(
        self, buffer_for: Callable[[int], bytearray], silence_s: float | None = None
    ) -> tuple[bytearray, int]:
        """Read one frame into the buffer that `buffer_for(size)` gives; its bytes begin at the correlation id.

        Lost when no byte has come or left for `silence_s`, however long the whole of it takes.
        """
        frame = Frame(memoryview(self._head), buffer_for)
        self.is_receiving = False
        if not self._read(frame):
            # The socket is read as bytes come, and this task is woken once: when the frame is whole.
            on_ready = partial(self._read_on, frame)
            await self._wait(self._loop.add_reader, self._loop.remove_reader, on_ready, silence_s)
        self.is_receiving = False
        if not frame.is_whole:
            raise self._lost("closed")
        return frame.buffer, len(frame.view)

    def _read_on(self, frame: Frame, whole: asyncio.Future[None]) -> None:
        try:
            if self._read(frame):
                _wake(whole)
        except Exception as error:  # noqa: BLE001  whoever waits for the frame is to meet it, not the loop
            if not whole.done():  # a lost connection has woken it already
                whole.set_exception(error)

    def _read(self, frame: Frame) -> bool:
        """Take what has come; whether the frame is whole."""
        while True:
            rest = frame.view[frame.got :]
            try:
                count = self._sock.recv_into(rest)
            except (BlockingIOError, InterruptedError):
                self._sleep_through(len(rest))
                return False
            except OSError as error:
                raise self._lost(error) from error
            if count == 0:
                raise self._lost("closed by the broker")
            self._moved_at = self._loop.time()
            if not self.is_receiving:
                self.is_receiving, self.began_at = True, self._moved_at
            frame.got += count
            if count == len(rest):
                if frame.is_whole:
                    return True
                frame.begin_body(self._body_bytes())
            elif self._is_plain:  # TLS may hold more than the socket tells of
                self._sleep_through(len(rest) - count)
                return False

    def _body_bytes(self) -> int:
        size: int = _FRAME.unpack(self._head)[0]
        if not 4 <= size <= _MAX_FRAME_BYTES:
            speaks_tls = self._head[:2] == _TLS_ALERT
            tls = "it speaks TLS: set security.protocol to SSL or SASL_SSL"
            what = tls if speaks_tls else "this is not a Kafka broker"
            raise self._lost(f"a frame of {size} bytes: {what}")
        return size

    def _sleep_through(self, missing: int) -> None:
        """Be woken once per megabyte of a large frame: a broker hands it out in pieces of its own small socket buffer, and
        each piece would cost a turn of the loop. The system never waits for more than its buffer holds."""
        wakes_at = min(missing, _WAKE_BYTES) if missing >= _LARGE_FRAME else 1
        if wakes_at != self._wakes_at and self._is_plain:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wakes_at)
            self._wakes_at = wakes_at

    @property
    def moved_at(self) -> float:
        """When a byte last came or left, as far as anybody has looked; what leaves the system's own buffer counts too."""
        unsent = unsent_bytes(self._sock)
        if unsent < self._unsent:
            self._moved_at = self._loop.time()
        self._unsent = unsent
        return self._moved_at

    def _listen(self, ready: asyncio.Future[None], silence_s: float, look: Callable[[], None]) -> None:
        """End the wait for `ready` once nothing has moved for too long."""
        if ready.done():
            return
        look()
        if not ready.done():
            if self._loop.time() - self.moved_at >= silence_s:
                self._lost(f"no answer within {silence_s:g} s")  # closing wakes whoever waits
            else:
                self._loop.call_later(silence_s / _LOOKS, self._listen, ready, silence_s, look)

    async def _wait(
        self,
        add: Callable[..., None],
        remove: Callable[[int], Any],
        on_ready: Callable[[asyncio.Future[None]], None],
        silence_s: float | None = None,
    ) -> None:
        """Until `on_ready`, called whenever the socket is ready, resolves the future that it is given."""
        if self.closed:
            raise self._lost("closed")
        descriptor = self._sock.fileno()
        ready = self._loop.create_future()
        self._waiters.add(ready)
        add(descriptor, on_ready, ready)
        # Bytes that are too few to wake us are taken all the same; a socket that takes none has nothing to look at.
        look = partial(on_ready, ready) if on_ready is not _wake else _nothing
        timer = silence_s and self._loop.call_later(silence_s / _LOOKS, self._listen, ready, silence_s, look)
        try:
            await ready
        finally:
            if timer:
                timer.cancel()
            self._waiters.discard(ready)
            if not self.closed:
                remove(descriptor)

    def _lost(self, reason: object) -> ConnectionLost:
        """The first reason counts, whoever meets it; its cause tells a certificate that is refused from a line that broke."""
        self.close(reason)
        lost = ConnectionLost(f"{self.name}: {self._ended}")
        lost.__cause__ = self._ended if isinstance(self._ended, BaseException) else None
        return lost

    def close(self, reason: object = "closed") -> None:
        """Whoever waits on it meets the reason."""
        if self.closed:
            return
        self.closed, self._ended = True, reason
        descriptor = self._sock.fileno()
        if descriptor >= 0 and not self._loop.is_closed():
            self._loop.remove_reader(descriptor)
            self._loop.remove_writer(descriptor)
        self._sock.close()
        for waiter in self._waiters:
            _wake(waiter)  # it finds the socket closed


def _not_opened(name: str, host: str, security: Security, error: Exception) -> ConnectionLost:
    """In one sentence, and of a class that says whether trying again may help."""
    refused = refusal(error, host, security.tls) or refusal(error.__cause__, host, security.tls)
    if refused is not None or isinstance(error, AccessRefused):
        return AccessRefused(f"{name}: {refused or error}")
    if isinstance(error, ConnectionLost):
        return ConnectionLost(str(error))
    if security.tls is not None and isinstance(error, _HUNG_UP):
        return ConnectionLost(f"{name}: it ended the TLS handshake: is this a TLS port (security.protocol)?")
    return ConnectionLost(f"{name}: {str(error) or 'no answer'}")


def _encoder(request: Any, version: int) -> Callable[[int], list[Buffer]]:
    def encode(correlation: int) -> list[Buffer]:
        request.API_VERSION = version
        request.with_header(correlation_id=correlation, client_id=CLIENT_ID)
        return [bytes(request.encode(version=version, header=True, framed=True))]

    return encode


def _grown(buffer: bytearray, size: int) -> bytearray:
    buffer.extend(bytes(size))
    return buffer


def _nothing() -> None:
    pass


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
