"""Writing to a target broker for many lanes: one batch of each ready lane per request, a few requests on the way.

One connection per writer keeps a lane's batches in order. The broker takes one batch per partition per request, so requests are
formed as late as possible: what gathers while five are on the way shares the next one. A batch's buffer is needed until the socket
has taken it: what is sent again is read again.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import deque
from collections.abc import Callable
from functools import lru_cache

from heliograph.errors import ConnectionLost, HeliographError
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.connections import CLIENT_ID, Buffer, Connection
from heliograph.kafka.lane import LaneRun
from heliograph.kafka.outgoing import Outgoing
from heliograph.kafka.pace import Pace
from heliograph.kafka.sockets import DEFAULT_BUFFERS
from heliograph.kafka.topic_writer import PRODUCE_API
from heliograph.metrics.meters import WriterMeter
from heliograph.model.takeover import answer_limit_s
from heliograph.wire.error_codes import describe
from heliograph.wire.produce_codec import ProducedPartition, ProduceTopic, decode_produce, encode_produce

_REQUESTS_ON_THE_WAY = 5
_REQUEST_BYTES = 8 << 20
_REQUEST_LANES = 200
_MOVED = {3, 5, 6, 7, 19, 20, 56, 74, 75}
"""Refusals after which another broker may know better who leads."""


class _LoginEnds(Exception):
    """Answers are awaited all the time, so a writer cannot log in again on the same connection."""


class TargetWriter:
    """Sends for the lanes of one target broker until it is closed."""

    def __init__(
        self,
        client: ClusterClient,
        node: int,
        now_ms: Callable[[], int],
        request_timeout_ms: int,
        on_answer: Callable[[], None],
    ) -> None:
        self._client = client
        self._node = node
        self._now_ms = now_ms
        self._timeout_ms = request_timeout_ms
        self._on_answer = on_answer
        self._lanes: dict[tuple[str, int], LaneRun] = {}
        self._queued: dict[LaneRun, None] = {}
        """Lanes with something to send, the longest waiting first; the others are not looked at, however many they are."""
        self._ready = asyncio.Event()
        self._connection: Connection | None = None
        self._unsent: list[memoryview] = []
        """The rest of a request that the socket did not take at once; nothing is sent before it."""
        self._sending: list[Outgoing] = []
        """The batches of that request."""
        self._waiting: deque[tuple[float, int, list[LaneRun]]] = deque()
        """Requests on the way: since when, how large, for whom."""
        self._oldest_since = self._held_until = 0.0
        self._pace = Pace()
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._answer = bytearray(1 << 16)
        self.buffers = DEFAULT_BUFFERS
        self.meter = WriterMeter()
        """The slot's for this target."""

    @property
    def queued(self) -> dict[LaneRun, None]:
        """The lanes with something to send; lanes know it as their outbox."""
        return self._queued

    @property
    def sockets(self) -> tuple[int, int] | None:
        """Bytes of the send buffer: asked for and granted; None while there is no connection."""
        connection = self._connection
        return None if connection is None or connection.closed else (self.buffers.send, connection.granted().send)

    def warm(self) -> None:
        """Dial ahead of the first lane, or again after a loss."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    def add(self, run: LaneRun) -> None:
        self._lanes[(run.lane.remote_topic, run.lane.id.partition)] = run
        run.outbox = self._queued
        if run.queue:
            self._queued[run] = None
        self.warm()
        self._ready.set()

    def remove(self, run: LaneRun) -> None:
        if self._lanes.get((run.lane.remote_topic, run.lane.id.partition)) is run:
            del self._lanes[(run.lane.remote_topic, run.lane.id.partition)]
            run.outbox = None
            self._queued.pop(run, None)

    def wake(self) -> None:
        """There may be something to send. It goes at once: a record that has just come need not wait for a turn of the loop."""
        connection = self._connection
        if connection is not None and not connection.closed:
            with contextlib.suppress(ConnectionLost):  # whoever waits for answers meets it too, and says so
                self._send_now(connection)
                if not self._unsent and not connection.login_ends:
                    return
        self._ready.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._connection is not None:
            self._connection.close()

    async def _work(self) -> None:
        while await self._use_one_connection():
            pass

    async def _use_one_connection(self) -> bool:
        """True if another one is to take its place: its login ended while nothing was on the way."""
        try:
            connection = self._connection = await self._client.dial(self._node, self.buffers)
        except HeliographError as error:
            self._lose(str(error))
            return False
        connection.send_nothing_late()
        renew = False
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._send_all(connection))
                group.create_task(self._take_answers(connection))
                group.create_task(self._watch(connection))
        except* _LoginEnds:
            connection.close()  # nothing is on the way
            self._ready.set()
            renew = True
        except* ConnectionLost as errors:
            self._lose(str(errors.exceptions[0]))
        except* Exception as errors:  # noqa: BLE001  a fault of ours: the lanes say so and begin again
            self._lose(f"writing to broker {self._node}: {errors.exceptions[0]!r}")
        return renew

    async def _watch(self, connection: Connection) -> None:
        """An answer that is due for longer than the request's own limit will not come. A request is due once those before it
        were answered and all of it has left; while the broker holds us back nothing is due. One that may land after another
        attempt took its lane over is not waited for: with the connection ends what has not left yet."""
        limit_s = answer_limit_s(self._timeout_ms)
        while True:
            await asyncio.sleep(1)
            if any(run.may_land_twice for _, _, runs in self._waiting for run in runs):
                connection.close()
                raise ConnectionLost(f"{connection.name}: another attempt may carry what is on its way by now")
            due = max(self._oldest_since, self._held_until, connection.moved_at)
            if self._waiting and self._loop.time() - due > limit_s:
                connection.close()
                raise ConnectionLost(f"{connection.name}: a produce request was not answered within {limit_s:g} s")

    async def _send_all(self, connection: Connection) -> None:
        """Send on whenever the socket takes more, or something came that `wake` could not send."""
        while True:
            await self._ready.wait()
            self._ready.clear()
            if connection.login_ends and not self._waiting:
                raise _LoginEnds
            self._send_now(connection)
            while self._unsent:
                await connection.send(self._unsent)
                self._unsent = []
                self._let_go()
                self._send_now(connection)

    def _send_now(self, connection: Connection) -> None:
        """Requests, until too many are on the way, nothing is left to send, or the socket takes no more."""
        while not self._unsent and len(self._waiting) < _REQUESTS_ON_THE_WAY:
            # A login that ends is renewed on another connection, once the last answer has come.
            if connection.login_ends or self._is_held_back():
                return
            runs, topics = self._form()
            if not runs:
                return
            now = self._loop.time()
            if not self._waiting:
                self._oldest_since = now
            self._waiting.append((now, sum(item.size for item in self._sending), runs))
            version, number = _version(connection), connection.next_correlation()
            self._unsent = connection.send_now(encode_produce(version, number, CLIENT_ID, self._timeout_ms, topics))
            if not self._unsent:
                self._let_go()

    def _is_held_back(self) -> bool:
        """A broker that is over a quota's limit reads nothing more for a while (KIP-219)."""
        if self._held_until and self._loop.time() >= self._held_until:
            self._held_until = 0.0
        return self._held_until > 0

    def _let_go(self) -> None:
        """The socket has all of a request."""
        for item in self._sending:
            if item.chunk is not None:
                item.chunk.release()
                item.chunk = None
        self._sending = []

    def _form(self) -> tuple[list[LaneRun], list[ProduceTopic]]:
        """At most one batch of each lane that may send now, the longest waiting lanes first."""
        now_ms = self._now_ms()
        chosen: list[LaneRun] = []
        batches: dict[tuple[str, str], list[tuple[int, Buffer]]] = {}
        size, most = 0, min(_REQUEST_BYTES, self._pace.size)
        for run in list(self._queued):
            if not run.queue:
                del self._queued[run]  # it failed, and reads again what it had
            if not run.can_send(now_ms):
                continue
            if chosen and (size + run.queue[0].size > most or len(chosen) >= _REQUEST_LANES):
                break
            item = run.take(now_ms)
            self._sending.append(item)
            size += item.size
            chosen.append(run)
            lane = run.lane
            batches.setdefault((lane.remote_topic, lane.target_topic_id), []).append((lane.id.partition, item.data))
            del self._queued[run]
            if run.queue:
                self._queued[run] = None  # behind those that wait since before
        return chosen, [ProduceTopic(name, _id_bytes(key), found) for (name, key), found in batches.items()]

    async def _take_answers(self, connection: Connection) -> None:
        version = _version(connection)
        while True:
            answer, size = await connection.receive_into(self._answer_buffer)
            result = decode_produce(version, memoryview(answer)[:size])
            sent, size, runs = self._waiting.popleft()
            now = self._loop.time()
            self.meter.answered(now - sent, result.throttle_ms)
            self._pace.took(size, now - self._oldest_since + result.throttle_ms / 1000)
            self._oldest_since = now
            if result.throttle_ms > 0:
                self._held_until = now + result.throttle_ms / 1000
                self._loop.call_later(result.throttle_ms / 1000, self.wake)
            answers = {(part.topic, part.partition): part for part in result.partitions}
            now_ms = self._now_ms()
            for run in runs:
                self._hand(run, answers, now_ms)
            self.wake()
            self._on_answer()

    def _hand(self, run: LaneRun, answers: dict[tuple[str | bytes, int], ProducedPartition], now_ms: int) -> None:
        lane = run.lane
        part = answers.get((lane.remote_topic, lane.id.partition))
        if part is None:
            part = answers.get((_id_bytes(lane.target_topic_id), lane.id.partition))
        if part is None:
            raise ConnectionLost(f"broker {self._node} left {lane.remote_topic}-{lane.id.partition} out of its answer")
        message = ""
        if part.error_code:
            detail = f" ({part.error_message})" if part.error_message else ""
            message = f"writing {lane.remote_topic}-{lane.id.partition}: {describe(part.error_code)}{detail}"
            if part.error_code in _MOVED:
                self._client.doubt((lane.target_topic_id, lane.id.partition), part.leader_id, part.leader_epoch)
        run.answered(part, message, now_ms)

    def _answer_buffer(self, size: int) -> bytearray:
        if len(self._answer) < size:
            self._answer = bytearray(size)
        return self._answer

    def _lose(self, message: str) -> None:
        if self._connection is not None:
            self._connection.close()
        self._client.doubt()
        self._waiting.clear()
        self._unsent = []
        self._sending = []  # what has a buffer still gives it back with its lane
        self._held_until = 0.0
        for run in list(self._lanes.values()):
            run.connection_ended(message)
        self._on_answer()


def _version(connection: Connection) -> int:
    offered = connection.version(PRODUCE_API, 13)
    return 11 if offered == 12 else offered


@lru_cache(maxsize=4096)
def _id_bytes(topic_id: str) -> bytes:
    return uuid.UUID(topic_id).bytes
