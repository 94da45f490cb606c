"""A partition in memory that answers fetches as a broker does, leader epochs included; the code under test reads it through
`ranges.read_range` and `fetch_once`."""

from __future__ import annotations

from typing import Any

import pytest

from heliograph.kafka import ranges, source_walk, target_scan
from heliograph.kafka.ranges import Diverged, Log
from heliograph.kafka.sides import Side
from heliograph.wire.fetch_codec import FetchedPartition
from heliograph.wire.record_batch import walk
from tests.unit.wire.batches import NOW, Rec, Shape, write_batch

LOG = Log("topic", "00000000-0000-0000-0000-000000000001", 0, 1)


class FetchedLog:
    """Stands in for its cluster's client."""

    def __init__(self, start: int = 0) -> None:
        self.batches: list[bytes] = []
        self.start = self.end = start
        self.fetched: list[int] = []
        """The offsets that were asked for."""

    def add(self, count: int = 1, *, values: list[bytes] | None = None, since: int | None = None, **shape: Any) -> int:
        """Append a batch of records with these values, else `count` different ones; its first offset. `since`: of a copy, the
        first record's offset on the source, by which they are timed."""
        first = self.end
        values = values or [b"%d" % (first + n) for n in range(count)]
        began = NOW + (first if since is None else since)
        records = [Rec(first + n, began + n, b"k", value) for n, value in enumerate(values)]
        return self.add_batch(write_batch(records, Shape(**shape)))

    def add_batch(self, batch: bytes | bytearray) -> int:
        first = self.end
        self.batches.append(bytes(batch))
        self.end = self._header(self.batches[-1]).next_offset
        return first

    def cut_back(self, to: int) -> None:
        """An unclean election took its end."""
        self.batches = [batch for batch in self.batches if self._header(batch).next_offset <= to]
        self.end = to

    def delete_before(self, offset: int) -> None:
        """Retention."""
        self.start = offset
        self.batches = [batch for batch in self.batches if self._header(batch).next_offset > offset]

    def side(self) -> Side:
        return Side(LOG, self.start, self.end)

    async def fetch(self, log: Log, offset: int, max_bytes: int) -> tuple[bytearray, FetchedPartition]:
        self.fetched.append(offset)
        self._compare_epochs(log.after_epoch, offset)
        buffer = bytearray()
        for batch in self.batches:
            if self._header(batch).next_offset > offset and (not buffer or len(buffer) + len(batch) <= max_bytes):
                buffer += batch
        part = FetchedPartition(log.topic, 0, 0, self.end, self.end, self.start, -1, -1, -1, -1, -1, [], 0, len(buffer))
        return buffer, part

    def _compare_epochs(self, known: int, offset: int) -> None:
        ends: dict[int, int] = {}
        for batch in self.batches:
            header = self._header(batch)
            ends[header.leader_epoch] = header.next_offset
        epoch = max((one for one in ends if one <= known), default=-1)
        if known >= 0 and (epoch < known or ends[epoch] < offset):
            raise Diverged("topic-0", ends.get(epoch, 0), epoch)

    @staticmethod
    def _header(batch: bytes) -> Any:
        return next(header for _, header in walk(batch, 0, len(batch)))


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetches go to the FetchedLog that stands in for a client."""

    async def fetch_once(client: Any, log: Log, offset: int, *, committed: bool, max_bytes: int = 4 << 20) -> Any:
        return await client.fetch(log, offset, max_bytes)

    for module in (ranges, source_walk, target_scan):
        monkeypatch.setattr(module, "fetch_once", fetch_once)
