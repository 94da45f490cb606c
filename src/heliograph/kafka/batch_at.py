"""The batch or the record at one offset of a log. What was fetched last is kept, so that neighbours cost nothing.

A log does not change where it is read here, but for the cleaner and retention: what is kept is as old as its reader.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from heliograph.errors import HeliographError
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.ranges import Log, Seen, fetch_once
from heliograph.wire.aborted import EMPTY
from heliograph.wire.record_batch import walk
from heliograph.wire.records import read_records

_FETCH_BYTES = 32 << 10
"""Some neighbours come along. The first batch comes whole, however large it is."""
_FETCHES_KEPT = 8
_OPENED_KEPT = 4

Content = tuple[Any, ...]


class BatchAt:
    """Of one log from `start` to before `end`."""

    def __init__(self, client: ClusterClient, log: Log, start: int, end: int) -> None:
        self._client = client
        self._log = log
        self._span = range(start, end)
        self._fetched: OrderedDict[int, list[Seen]] = OrderedDict()
        self._opened: OrderedDict[int, dict[int, Content]] = OrderedDict()

    async def batch(self, offset: int) -> Seen | None:
        """The batch that holds an offset; None if there is none."""
        if offset not in self._span:
            return None
        for asked, batches in self._fetched.items():
            if batches and batches[0].header.base_offset <= offset < batches[-1].header.next_offset:
                self._fetched.move_to_end(asked)
                return _holding(batches, offset)
        batches = await fetch_batches(self._client, self._log, offset)
        self._fetched[offset] = batches
        if len(self._fetched) > _FETCHES_KEPT:
            self._fetched.popitem(last=False)
        return _holding(batches, offset)

    async def record(self, offset: int) -> Content | None:
        """Timestamp, key, value and headers of the record at an offset; None if none is there."""
        seen = await self.batch(offset)
        if seen is None or seen.dropped is not None or seen.header.is_control:
            return None
        base = seen.header.base_offset
        if base not in self._opened:
            self._opened[base] = _opened(seen)
            if len(self._opened) > _OPENED_KEPT:
                self._opened.popitem(last=False)
        return self._opened[base].get(offset)


async def fetch_batches(client: ClusterClient, log: Log, offset: int) -> list[Seen]:
    """The batch that holds an offset, or the next one, and some that follow it."""
    buffer, fetched = await fetch_once(client, log, offset, committed=False, max_bytes=_FETCH_BYTES)
    view = memoryview(buffer)
    return [
        Seen(header, view[at : at + header.size], EMPTY if header.count == 0 else None)
        for at, header in walk(buffer, fetched.start, fetched.end)
    ]


def _holding(batches: list[Seen], offset: int) -> Seen | None:
    return next((one for one in batches if one.header.base_offset <= offset < one.header.next_offset), None)


def _opened(seen: Seen) -> dict[int, Content]:
    try:
        return {record.offset: record[1:] for record in read_records(seen.data, seen.header)}
    except HeliographError:
        return {}
