"""A line between Heliograph and a broker that can be slow, long, cut or silent: a TCP relay in a thread, without root.

`Relay(host, port)` passes on what comes to its own `port`. `RelayedCluster` is a cluster whose brokers advertise relays to
Heliograph, one for each broker; the test itself and the brokers among themselves use the open door, which is never slow.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.embedded.probe import HOST
from heliograph.embedded.settings import node_properties
from tests.support.doors import AuthorizedCluster

_PIECE_BYTES = 64 << 10
_BUFFER_BYTES = 64 << 10
"""Of each socket: small, so that whoever sends faster than the line notices it as on a real one."""
_ON_THE_LINE_BYTES = 32 << 20
"""What a long line holds at most."""
_RESET = struct.pack("ii", 1, 0)
_ANSWER_SECONDS = 10.0


@dataclass(eq=False)
class _Pair:
    """One connection: what the client opened, and what the relay opened for it."""

    client: socket.socket
    broker: socket.socket

    def reset(self) -> None:
        for sock in (self.client, self.broker):
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            sock.close()


class _Direction:
    """Everything that goes one way: all connections share its rate, as they share a line."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._free_at = 0.0
        self.passed = 0

    async def carry(self, source: socket.socket, sink: socket.socket) -> None:
        """Until the source has said all."""
        loop = asyncio.get_running_loop()
        line: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_ON_THE_LINE_BYTES // _PIECE_BYTES)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._arrive(line, sink))
            piece = b"more"
            while piece:
                piece = await loop.sock_recv(source, self._piece_bytes())
                await line.put((loop.time() + self._relay.delay_s, piece))
                if not self._relay.delay_s:
                    await line.join()  # a short line holds nothing

    async def _arrive(self, line: asyncio.Queue[tuple[float, bytes]], sink: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        piece = b"more"
        while piece:
            due, piece = await line.get()
            await asyncio.sleep(due - loop.time())
            await self._turn(len(piece))
            if piece:
                self.passed += len(piece)
                await loop.sock_sendall(sink, piece)
            else:
                sink.shutdown(socket.SHUT_WR)
            line.task_done()

    def _piece_bytes(self) -> int:
        rate = self._relay.rate_bytes_s
        return _PIECE_BYTES if rate is None else max(512, min(_PIECE_BYTES, int(rate / 50)))

    async def _turn(self, size: int) -> None:
        """Wait until the line is free, and for as long as it is frozen."""
        loop = asyncio.get_running_loop()
        await self._relay.flowing.wait()
        rate = self._relay.rate_bytes_s
        if rate is not None:
            self._free_at = max(self._free_at, loop.time()) + size / rate
            await asyncio.sleep(self._free_at - loop.time())
            await self._relay.flowing.wait()


class Relay:
    """Started by `start` or `with`. Everything may be changed while connections are open:

    `rate_bytes_s`: of all connections together, in each direction; None: without limit.
    `delay_s`: how long a byte takes one way.
    `refuse`: new connections are reset at once.
    `freeze()`, `thaw()`: connections stay open and nothing passes; nothing is lost either.
    `cut()`: all connections end with a reset; new ones are taken.
    `to_broker`, `from_broker`: bytes that have passed.
    """

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self.rate_bytes_s: float | None = None
        self.delay_s = 0.0
        self.refuse = False
        self.flowing = asyncio.Event()
        self._out, self._back = _Direction(self), _Direction(self)
        self._pairs: set[_Pair] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        self._listener.bind((HOST, 0))
        self._listener.listen(128)
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"relay to {host}:{port}")

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def to_broker(self) -> int:
        return self._out.passed

    @property
    def from_broker(self) -> int:
        return self._back.passed

    @property
    def connections(self) -> int:
        return len(self._pairs)

    def start(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """Idempotent."""
        if not self._loop.is_closed() and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_ANSWER_SECONDS)
            assert not self._thread.is_alive(), "the relay did not end"
        self._listener.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *about: object) -> None:
        self.close()

    def cut(self) -> None:
        self._do(self._cut)

    def freeze(self) -> None:
        self._do(self.flowing.clear)

    def thaw(self) -> None:
        self._do(self.flowing.set)

    # -- in the relay's own thread ----------------------------------------------------------------------------------

    def _do(self, what: Callable[[], None]) -> None:
        """There, and done when this returns."""

        async def done() -> None:
            what()

        asyncio.run_coroutine_threadsafe(done(), self._loop).result(_ANSWER_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self.flowing.set()
        accepting = self._loop.create_task(self._accept())
        try:
            self._loop.run_forever()
        finally:
            self._cut()
            accepting.cancel()
            left = [accepting, *self._tasks]
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.close()

    def _cut(self) -> None:
        for task in self._tasks:
            task.cancel()  # its end resets the sockets

    async def _accept(self) -> None:
        while True:
            client, _ = await self._loop.sock_accept(self._listener)
            task = self._loop.create_task(self._serve(client))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, client: socket.socket) -> None:
        broker = socket.socket()
        pair = _Pair(client, broker)
        try:
            if self.refuse:
                return
            for sock in (client, broker):
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
            broker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
            await self._loop.sock_connect(broker, self._address)
            self._pairs.add(pair)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._out.carry(client, broker))
                both.create_task(self._back.carry(broker, client))
        except (OSError, ExceptionGroup):
            pass  # one side ended: the other learns it by the reset
        finally:
            self._pairs.discard(pair)
            pair.reset()


class RelayedCluster(AuthorizedCluster):
    """Heliograph reaches its brokers through `relays`, by broker; everybody else directly."""

    relays: dict[int, Relay]

    def _choose_ports(self, taken: Iterable[int]) -> list[int]:
        ports = super()._choose_ports(taken)
        self._end_relays()
        doors = self._layout.listeners["MIRROR"].ports
        self.relays = {broker: Relay(HOST, port).start() for broker, port in doors.items()}
        for broker, relay in self.relays.items():
            advertised = f"PLAINTEXT://{self.address(broker)},MIRROR://{relay.address}"
            layout = replace(self._layout, config={**self._config, "advertised.listeners": advertised})
            Path(self._properties(broker)).write_text(node_properties(layout, broker, self._data(broker)))
        return ports

    def door(self) -> str:
        super().door()  # grants what Heliograph needs
        return ",".join(relay.address for relay in self.relays.values())

    def stop(self) -> None:
        super().stop()
        self._end_relays()

    def slow_down(self, rate_bytes_s: float | None) -> None:
        for relay in self.relays.values():
            relay.rate_bytes_s = rate_bytes_s

    def _end_relays(self) -> None:
        for relay in getattr(self, "relays", {}).values():
            relay.close()


def relayed(cluster: EmbeddedCluster) -> RelayedCluster:
    """A cluster that `new_cluster(..., kind=RelayedCluster)` has made, by its own name."""
    assert isinstance(cluster, RelayedCluster)
    return cluster
