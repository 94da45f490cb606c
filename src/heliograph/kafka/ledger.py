"""The ledger topic on a target cluster: read to the end, written with acks from all replicas.

What its records mean is decided in replication/generations.py. A view is kept by a process over many epochs and reads on from
where it was, so that refreshing costs a round trip.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile

from heliograph.errors import AccessRefused, BrokerRefused, ConnectionLost
from heliograph.kafka.client import EARLIEST, LATEST, ClusterClient, Leader
from heliograph.kafka.connections import CLIENT_ID, Buffer
from heliograph.kafka.ranges import Log, read_range
from heliograph.kafka.refusals import topic_refused
from heliograph.replication.generations import LedgerBook, LedgerKey, ledger_partition
from heliograph.wire.error_codes import describe
from heliograph.wire.plain_batch import plain_batch
from heliograph.wire.produce_codec import ProduceTopic, decode_produce, encode_produce
from heliograph.wire.records import read_records

LEDGER_TOPIC = "__heliograph-ledger"
TELEMETRY_TOPIC = "__heliograph-telemetry"
EVENTS_TOPIC = "__heliograph-events"
FLOWS_TOPIC = "__heliograph-flows"
PRODUCE_API = 0
_RETRIABLE = {-1, 3, 5, 6, 7, 19, 20, 74, 75, 100}
_MISSING = {3, 100}
_PRODUCE_TIMEOUT_MS = 10_000
_WRITE_SECONDS = 30.0
_LEADER_LOOKS = 50
_LEADER_SECONDS = 0.1

Record = tuple[bytes, bytes | None]


class TopicWriter:
    """Appends small JSON records to one of Heliograph's own topics, at least once."""

    def __init__(self, client: ClusterClient, topic: str) -> None:
        self._client = client
        self.topic = topic
        self.topic_id = ""
        self.leaders: Mapping[int, Leader] = {}
        self.trouble = ""
        """What the last append met and tried again; a caller that gives up can say why."""

    async def learn(self) -> None:
        view = (await self._client.metadata([self.topic]))[self.topic]
        if view.error or not view.leaders:
            alias = self._client.cluster.alias
            what = f"cluster {alias}: topic {self.topic}"
            raise topic_refused(view.error or 5, what, "READ and WRITE", self.topic, alias)
        self.topic_id = view.topic_id
        self.leaders = view.leaders

    async def append(self, records: Mapping[int, Sequence[Record]], now_ms: int) -> dict[int, int]:
        """Write records by partition; the base offset of each partition's append. Retries until 30 s have passed."""
        return await self.append_batches({part: plain_batch(rows, now_ms) for part, rows in records.items() if rows})

    async def append_batches(self, batches: Mapping[int, bytes]) -> dict[int, int]:
        """As `append`, of whole batches."""
        left = dict(batches)
        written: dict[int, int] = {}
        async with asyncio.timeout(_WRITE_SECONDS):
            while left:
                try:
                    written |= await self._append_once(left)
                except AccessRefused:
                    raise
                except ConnectionLost as error:
                    self.trouble = str(error)
                    self.leaders = {}
                left = {partition: batch for partition, batch in left.items() if partition not in written}
                if left:
                    await asyncio.sleep(0.1)
        return written

    async def _append_once(self, batches: Mapping[int, bytes]) -> dict[int, int]:
        if not self.leaders:
            await self.learn()
        by_node: dict[int, list[int]] = {}
        for partition in batches:
            by_node.setdefault(self.leaders[partition].node, []).append(partition)
        written: dict[int, int] = {}
        for node, partitions in by_node.items():
            connection = await self._client.connection(node, "ledger")
            version = connection.version(PRODUCE_API, 9)
            topic = ProduceTopic(self.topic, uuid.UUID(self.topic_id).bytes, [(p, batches[p]) for p in partitions])
            answer = await connection.exchange(
                partial(_encode, version, topic), timeout_s=_PRODUCE_TIMEOUT_MS / 1000 + 5
            )
            for part in decode_produce(version, answer).partitions:
                if part.error_code == 0:
                    written[part.partition] = part.base_offset
                elif part.error_code in _RETRIABLE:
                    self.trouble = describe(part.error_code)
                    self.leaders = {}
                else:
                    alias = self._client.cluster.alias
                    what = f"cluster {alias}: writing {self.topic}-{part.partition}"
                    raise topic_refused(part.error_code, what, "WRITE", self.topic, alias)
        return written


def _encode(version: int, topic: ProduceTopic, correlation: int) -> Sequence[Buffer]:
    return encode_produce(version, correlation, CLIENT_ID, _PRODUCE_TIMEOUT_MS, [topic])


class _NotLed(ConnectionLost):
    """Metadata names a leader that does not know of it yet, or no longer."""


class Ledger:
    """The ledger of one target cluster: a book of what was read so far, and a writer."""

    def __init__(self, client: ClusterClient) -> None:
        self.client = client
        self.book = LedgerBook()
        self._writer = TopicWriter(client, LEDGER_TOPIC)
        self._positions: dict[int, int] = {}
        self._read_id = ""
        """The topic that the book was read from; whoever appends may have met another one since."""
        self._touched: dict[str, int] = {}
        self.mark = 0
        """How many records were read."""
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[LedgerBook] | None = None
        """The reading that begins when the one under way has ended."""

    @property
    def trouble(self) -> str:
        return self._writer.trouble

    async def refresh(self) -> LedgerBook:
        """Read to the end that the leaders have now; waits a little for partitions that have just been made or moved.

        Thousands of lanes ask at the same moment: whoever asks while one reading is under way shares the next.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._read_on())
            self._next.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._next)

    async def refresh_of(self, topic_id: str) -> LedgerBook:
        """As `refresh`; ConnectionLost where the ledger is not the topic of this id, before the reading or after it."""
        book = await self.refresh()
        view = (await self.client.metadata([LEDGER_TOPIC]))[LEDGER_TOPIC]
        if (self._read_id, view.topic_id) != (topic_id, topic_id):
            alias = self.client.cluster.alias
            raise ConnectionLost(f"topic {LEDGER_TOPIC} on {alias} is not the one that this flow began with")
        return book

    async def refresh_if_there(self) -> LedgerBook:
        """As `refresh`; an empty book where there is no ledger, because nothing was ever copied."""
        try:
            return await self.refresh()
        except BrokerRefused as error:
            if error.code not in _MISSING:
                raise
            return LedgerBook()

    async def _read_on(self) -> LedgerBook:
        async with self._lock:
            self._next = None  # who asks from now on may want what this reading does not see
            for _ in range(_LEADER_LOOKS):
                try:
                    return await self._refresh()
                except _NotLed:
                    await asyncio.sleep(_LEADER_SECONDS)
            return await self._refresh()

    async def _refresh(self) -> LedgerBook:
        await self._writer.learn()
        if self._read_id != self._writer.topic_id:
            self.book = LedgerBook()
            self._positions.clear()
            self._read_id = self._writer.topic_id
        by_node: dict[int, list[int]] = {}
        for partition, leader in self._writer.leaders.items():
            by_node.setdefault(leader.node, []).append(partition)
        for node, partitions in by_node.items():
            await self._refresh_node(node, partitions)
        return self.book

    async def _refresh_node(self, node: int, partitions: list[int]) -> None:
        names = [(LEDGER_TOPIC, partition) for partition in partitions]
        starts = await self.client.offsets(node, names, EARLIEST)
        ends = await self.client.offsets(node, names, LATEST)
        for name in names:
            if name not in starts or name not in ends:
                raise _NotLed(f"{LEDGER_TOPIC}-{name[1]}: broker {node} does not lead it")
            await self._read(node, name[1], starts[name], ends[name])

    async def _read(self, node: int, partition: int, start: int, end: int) -> None:
        begin = max(start, self._positions.get(partition, 0))
        log = Log(LEDGER_TOPIC, self._read_id, partition, node)
        async for seen in read_range(self.client, log, begin, end, committed=True):
            if seen.dropped is None:
                for record in read_records(seen.data, seen.header):
                    if record.offset >= begin and record.key is not None:
                        self._apply(record.key.decode(), record.value, record.offset)
            self._positions[partition] = seen.header.next_offset

    def _apply(self, key: str, value: bytes | None, offset: int) -> None:
        self.book.apply(key, value, offset)
        self.mark += 1
        self._touched.pop(key, None)  # the latest last
        self._touched[key] = self.mark

    def touched_since(self, mark: int) -> list[str]:
        """The keys of records that were read since `mark` was this, the latest first."""
        return list(takewhile(lambda key: self._touched[key] > mark, reversed(self._touched)))

    async def write(self, records: Iterable[tuple[LedgerKey, bytes | None]], now_ms: int) -> None:
        """Append records; returns when all of them are acknowledged."""
        if not self._writer.leaders:
            await self._writer.learn()
        grouped: dict[int, list[Record]] = {}
        for key, value in records:
            partition = ledger_partition(key, len(self._writer.leaders))
            grouped.setdefault(partition, []).append((str(key).encode(), value))
        await self._writer.append(grouped, now_ms)
