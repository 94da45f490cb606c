"""The ledger topic on a target cluster: read to the end, written with acks from all replicas.

What its records mean is decided in replication/generations.py. A view is kept by a process over many epochs and reads on from
where it was, so that refreshing costs a round trip.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import takewhile

from heliograph.errors import BrokerRefused, ConnectionLost, HeliographError
from heliograph.kafka.client import EARLIEST, LATEST, ClusterClient
from heliograph.kafka.ranges import Log, Seen, read_range
from heliograph.kafka.topic_writer import Record, TopicWriter
from heliograph.replication.generations import LedgerBook
from heliograph.replication.ledger_keys import LedgerKey, ledger_partition
from heliograph.replication.strange_records import StrangeRecords
from heliograph.wire.records import CorruptBatch, read_records

LEDGER_TOPIC = "__heliograph-ledger"
TELEMETRY_TOPIC = "__heliograph-telemetry"
EVENTS_TOPIC = "__heliograph-events"
FLOWS_TOPIC = "__heliograph-flows"
_MISSING = {3, 100}
_LEADER_LOOKS = 50
_LEADER_SECONDS = 0.1


class _NotLed(ConnectionLost):
    """Metadata names a leader that does not know of it yet, or no longer."""


class Ledger:
    """The ledger of one target cluster: a book of what was read so far, and a writer."""

    def __init__(self, client: ClusterClient) -> None:
        self.client = client
        self.book = LedgerBook()
        self.strange = StrangeRecords()
        """What was read and is not in the book."""
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

    @property
    def behind_ms(self) -> int:
        """How far the clock here is behind the brokers', at least, as far as is known."""
        return self._writer.behind_ms

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
            self.strange = StrangeRecords()
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
                self._take(seen, partition, begin)
            self._positions[partition] = seen.header.next_offset

    def _take(self, seen: Seen, partition: int, begin: int) -> None:
        try:
            records = list(read_records(seen.data, seen.header))
        except CorruptBatch:
            raise  # the next reading may get it whole
        except HeliographError as fault:
            self.strange.note_batch(f"{LEDGER_TOPIC}-{partition}@{seen.header.base_offset}", str(fault))
            return
        for record in records:
            if record.offset >= begin and record.key is not None:
                key = self.strange.fold(self.book, record.key, record.value, record.offset)
                self.mark += 1
                self._touched.pop(key, None)  # the latest last
                self._touched[key] = self.mark

    def touched_since(self, mark: int) -> list[str]:
        """The keys of records that were read since `mark` was this, the latest first."""
        return list(takewhile(lambda key: self._touched[key] > mark, reversed(self._touched)))

    async def write(self, records: Iterable[tuple[LedgerKey, bytes | None]], now_ms: int) -> None:
        """Append records; returns when all of them are acknowledged. Those who write at the same moment share requests."""
        if not self._writer.leaders:
            await self._writer.learn()
        grouped: dict[int, list[Record]] = {}
        for key, value in records:
            partition = ledger_partition(key, len(self._writer.leaders))
            grouped.setdefault(partition, []).append((str(key).encode(), value))
        await self._writer.append(grouped, now_ms)
