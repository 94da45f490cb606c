"""Appends to Heliograph's own topics, and to MirrorMaker 2's, at least once: the ledger, telemetry, events, offset syncs.

What several callers append at the same moment shares requests: each broker has one request on its way, and takes the next with
everything that was queued meanwhile. Nothing is larger than a broker takes: what waits for a partition is cut into batches by
bytes and by count, and one that is refused as too large is halved. An append is given up when nothing at all moved for a while,
however long the whole of it takes.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from heliograph.errors import AccessRefused, ConnectionLost
from heliograph.kafka.client import ClusterClient, Leader
from heliograph.kafka.connections import CLIENT_ID, Buffer
from heliograph.kafka.refusals import topic_refused
from heliograph.wire.error_codes import describe
from heliograph.wire.plain_batch import plain_batch
from heliograph.wire.produce_codec import ProducedPartition, ProduceTopic, decode_produce, encode_produce

PRODUCE_API = 0
BATCH_BYTES = 512 << 10
"""Half of what topics take by default; a topic that takes less says so, and gets less."""
_BATCH_RECORDS = 5_000
_REQUEST_BYTES = 1 << 20
"""Small enough for a slow line to take it before a request counts as lost."""
_RECORD_BYTES = 20
"""What a record needs besides its key and value, at the most."""
_RETRIABLE = {-1, 3, 5, 6, 7, 19, 20, 74, 75, 100}
_TOO_LARGE = {10, 18}
_PRODUCE_TIMEOUT_MS = 10_000
_SILENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.1

Record = tuple[bytes, bytes | None]


class _Append:
    """What one caller appends: done when every record of it is acknowledged."""

    def __init__(self, loop: asyncio.AbstractEventLoop, partitions: Sequence[int], left: int, now_ms: int) -> None:
        self.began = loop.time()
        self.partitions = partitions
        self.left = left
        self.now_ms = now_ms
        self.done: asyncio.Future[None] = loop.create_future()

    def acknowledge(self) -> None:
        self.left -= 1
        if not self.left and not self.done.done():
            self.done.set_result(None)

    def fail(self, error: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(error)
            self.done.exception()  # whoever waits may have left


class _Row:
    """A record, or a whole batch, and whose it is."""

    __slots__ = ("batch", "owner", "record", "size")

    def __init__(self, owner: _Append, record: Record | None, batch: bytes = b"") -> None:
        self.owner = owner
        self.record = record
        self.batch = batch
        self.size = len(batch) if record is None else len(record[0]) + len(record[1] or b"") + _RECORD_BYTES


class _Queue:
    """What waits for one partition, in order."""

    def __init__(self) -> None:
        self.rows: deque[_Row] = deque()
        self.busy = False
        """A request with its first rows is on its way."""
        self.moved = 0.0
        """When something of it was last acknowledged."""
        self._most = BATCH_BYTES

    def is_waiting(self) -> bool:
        """Rows of callers that gave up are dropped; those on their way stay, until their answer."""
        while self.rows and not self.busy and self.rows[0].owner.done.done():
            self.rows.popleft()
        return bool(self.rows) and not self.busy

    def next_rows(self) -> list[_Row]:
        """The rows of the next batch."""
        taken: list[_Row] = []
        size = 0
        for row in self.rows:
            alone = row.record is None
            if taken and (alone or size + row.size > self._most or len(taken) == _BATCH_RECORDS):
                break
            taken.append(row)
            size += row.size
            if alone:
                break
        return taken

    def acknowledged(self, rows: Sequence[_Row], now: float) -> None:
        self.moved = now
        self._most = min(BATCH_BYTES, self._most + self._most // 8 + 1)  # a limit that was raised is found again
        for row in rows:
            self.rows.popleft()
            row.owner.acknowledge()

    def halve(self, rows: Sequence[_Row]) -> bool:
        """Whether less at a time may help."""
        self._most = sum(row.size for row in rows) // 2
        return len(rows) > 1

    def refuse(self, error: BaseException, rows: Iterable[_Row]) -> None:
        """Whoever has one of these rows is told; what else of theirs waits is dropped."""
        for row in list(rows):
            row.owner.fail(error)


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


class TopicWriter:
    """Of one topic. Its senders live as long as something waits, one for each broker."""

    def __init__(self, client: ClusterClient, topic: str, now_ms: Callable[[], int] = wall_ms) -> None:
        self._client = client
        self._now_ms = now_ms
        self.topic = topic
        self.behind_ms = 0
        """How far our clock is behind the brokers', at least; known where the topic has LogAppendTime."""
        self.topic_id = ""
        self.leaders: Mapping[int, Leader] = {}
        self.trouble = ""
        """What the last append met and tried again; a caller that gives up can say why."""
        self._queues: dict[int, _Queue] = {}
        self._senders: dict[int, asyncio.Task[None]] = {}

    async def learn(self) -> None:
        view = (await self._client.metadata([self.topic]))[self.topic]
        if view.error or not view.leaders:
            alias = self._client.cluster.alias
            what = f"cluster {alias}: topic {self.topic}"
            raise topic_refused(view.error or 5, what, "READ and WRITE", self.topic, alias)
        self.topic_id = view.topic_id
        self.leaders = view.leaders

    async def append(self, records: Mapping[int, Sequence[Record]], now_ms: int) -> None:
        """Write records by partition; returns when all are acknowledged.

        TimeoutError when nothing was acknowledged for 30 s. Whoever is cancelled or refused does not know what was written.
        """
        one = self._begin({part: len(rows) for part, rows in records.items() if rows}, now_ms)
        await self._write(one, {part: [_Row(one, row) for row in rows] for part, rows in records.items()})

    async def append_batches(self, batches: Mapping[int, bytes]) -> None:
        """As `append`, of whole batches."""
        one = self._begin(dict.fromkeys(batches, 1), 0)
        await self._write(one, {part: [_Row(one, None, batch)] for part, batch in batches.items()})

    def _begin(self, counts: Mapping[int, int], now_ms: int) -> _Append:
        return _Append(asyncio.get_running_loop(), tuple(counts), sum(counts.values()), now_ms)

    async def _write(self, one: _Append, rows: Mapping[int, Sequence[_Row]]) -> None:
        if not one.left:
            return
        if not self.leaders:
            await self._learn_patiently(one)
        for partition in one.partitions:
            self._queues.setdefault(partition, _Queue()).rows.extend(rows[partition])
        self._wake()
        try:
            await self._acknowledged(one)
        finally:
            one.done.cancel()  # of no effect where it is done; else its rows are not sent any more

    async def _learn_patiently(self, one: _Append) -> None:
        while True:
            try:
                await self.learn()
                return
            except AccessRefused:
                raise
            except ConnectionLost as error:
                self.trouble = str(error)
                if asyncio.get_running_loop().time() - one.began >= _SILENCE_SECONDS:
                    raise self._silent() from error
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _acknowledged(self, one: _Append) -> None:
        """Until all of it is; TimeoutError when the partitions that it waits for have been silent for too long."""
        loop = asyncio.get_running_loop()
        while not one.done.done():
            heard = max(one.began, *(self._queues[partition].moved for partition in one.partitions))
            left = heard + _SILENCE_SECONDS - loop.time()
            if left <= 0:
                raise self._silent()
            await asyncio.wait([one.done], timeout=left)
        one.done.result()

    def _silent(self) -> TimeoutError:
        alias = self._client.cluster.alias
        why = f": {self.trouble}" if self.trouble else ""
        return TimeoutError(f"cluster {alias}: {self.topic} took nothing for {_SILENCE_SECONDS:.0f} s{why}")

    # -- one sender for each broker ---------------------------------------------------------------------------------

    def _leader(self, partition: int) -> int:
        leader = self.leaders.get(partition)
        return -1 if leader is None else leader.node

    def _wake(self) -> None:
        for node in {self._leader(number) for number, queue in self._queues.items() if queue.is_waiting()}:
            if node not in self._senders:
                self._senders[node] = asyncio.create_task(self._send_on(node))

    async def _send_on(self, node: int) -> None:
        try:
            while waiting := self._waiting_for(node):
                if not await self._try(node, waiting):
                    await asyncio.sleep(_PAUSE_SECONDS)
                    await self._look_again()
                    self._wake()  # what another broker leads now
        finally:
            del self._senders[node]
        self._wake()

    def _waiting_for(self, node: int) -> list[int]:
        """The partitions that wait for a broker, first those that moved longest ago."""
        waiting = (number for number, queue in self._queues.items() if queue.is_waiting())
        return sorted((one for one in waiting if self._leader(one) == node), key=lambda one: self._queues[one].moved)

    async def _try(self, node: int, waiting: Sequence[int]) -> bool:
        """One request with the first rows of these partitions; whether no leader need be looked for."""
        batches: dict[int, list[_Row]] = {}
        size = 0
        for number in waiting:
            rows = self._queues[number].next_rows()
            size += sum(row.size for row in rows)
            if batches and size > _REQUEST_BYTES:
                break
            batches[number] = rows
        for number in batches:
            self._queues[number].busy = True
        try:
            return await self._request(node, batches)
        except AccessRefused as error:
            self._refuse(batches, error)
        except ConnectionLost as error:
            self.trouble = str(error)
            return False
        except Exception as error:  # noqa: BLE001  handed on to everybody whose records these are
            self._refuse(batches, error)
        finally:
            for number in batches:
                self._queues[number].busy = False
        return True

    def _refuse(self, batches: Mapping[int, Sequence[_Row]], error: Exception) -> None:
        for number, rows in batches.items():
            self._queues[number].refuse(error, rows)

    async def _request(self, node: int, batches: Mapping[int, Sequence[_Row]]) -> bool:
        connection = await self._client.connection(node, "ledger")
        version = connection.version(PRODUCE_API, 9)
        parts = [(number, _batch(rows)) for number, rows in batches.items()]
        topic = ProduceTopic(self.topic, uuid.UUID(self.topic_id).bytes, parts)
        answer = await connection.exchange(partial(_encode, version, topic), timeout_s=_PRODUCE_TIMEOUT_MS / 1000 + 5)
        answers = decode_produce(version, answer).partitions
        led = [self._answered(part, batches[part.partition]) for part in answers if part.partition in batches]
        return all(led)

    def _answered(self, part: ProducedPartition, rows: Sequence[_Row]) -> bool:
        """Whether its leader is the one that was asked."""
        queue = self._queues[part.partition]
        if part.error_code == 0 and part.log_append_time >= 0:
            self.behind_ms = max(0, part.log_append_time - self._now_ms())
        if part.error_code == 0:
            queue.acknowledged(rows, asyncio.get_running_loop().time())
        elif part.error_code in _RETRIABLE:
            self.trouble = describe(part.error_code)
            return False
        elif part.error_code not in _TOO_LARGE or not queue.halve(rows):
            alias = self._client.cluster.alias
            what = f"cluster {alias}: writing {self.topic}-{part.partition}"
            queue.refuse(topic_refused(part.error_code, what, "WRITE", self.topic, alias), rows)
        return True

    async def _look_again(self) -> None:
        try:
            await self.learn()
        except AccessRefused as error:
            self._refuse_all(error)
        except ConnectionLost as error:
            self.trouble = str(error)
        except Exception as error:  # noqa: BLE001  handed on to everybody who waits
            self._refuse_all(error)

    def _refuse_all(self, error: Exception) -> None:
        for queue in self._queues.values():
            if not queue.busy:
                queue.refuse(error, queue.rows)


def _batch(rows: Sequence[_Row]) -> bytes:
    if rows[0].record is None:
        return rows[0].batch
    return plain_batch([row.record for row in rows if row.record is not None], max(row.owner.now_ms for row in rows))


def _encode(version: int, topic: ProduceTopic, correlation: int) -> Sequence[Buffer]:
    return encode_produce(version, correlation, CLIENT_ID, _PRODUCE_TIMEOUT_MS, [topic])
