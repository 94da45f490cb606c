"""The remote partition behind the ledger's position, read for the last batch of ours where others write too.

An application may write gigabytes into it between two attaches. What was read once is remembered: in the ledger every few
seconds, so that an attach that is interrupted costs no more than those, and by the process for its next try. What is
remembered holds as long as the target was not cut back: its leader epochs tell.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace

from heliograph.errors import BrokerRefused, HeliographError
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.ranges import Diverged, Log, Seen, fetch_once, read_range
from heliograph.kafka.sides import Side
from heliograph.kafka.walked import Copy, Position, contents, is_ours, moved, our_batch
from heliograph.model.lanes import LaneId, LedgerEntry, Scanned
from heliograph.replication.alignment import differs_at
from heliograph.replication.attach import TargetTail, already_read
from heliograph.replication.generations import encode_entry
from heliograph.replication.ledger_keys import EntryKey
from heliograph.wire.record_batch import BatchHeader, walk

_NOTE_SECONDS = 2.0
_LOOK_AT_CLOCK_BYTES = 1 << 20
_NOTE_TIMEOUT_SECONDS = 5.0
_ONE_BATCH = 1  # a broker gives at least one batch, however little is asked for
_OUT_OF_RANGE = 1
_RUN_OFFSETS = 256


@dataclass(frozen=True)
class Found:
    """What lies behind the entry's position."""

    last: Seen | None
    """The last batch of ours; None: there is none."""
    known_to: int = -1
    """Up to here an earlier attach had read it."""
    scanned: Scanned | None = None
    """What need not be read again."""


class TargetScan:
    """Reads remote partitions of one target cluster; without a ledger nothing outlives this object."""

    def __init__(self, client: ClusterClient, ledger: Ledger | None = None) -> None:
        self._client = client
        self._ledger = ledger
        self._kept: dict[LaneId, tuple[tuple[int, int], Scanned]] = {}

    async def last(self, target: Side, begin: int, entry: LedgerEntry, note_ms: int = 0) -> Found:
        """The last batch of ours in the target from `begin` on. `note_ms` is the time under which it is noted in the ledger how
        far it was read; 0: it is not."""
        if target.end <= begin:
            return Found(None)
        at_end = await self._batch_at(target.log, target.end - 1, entry)
        return Found(at_end) if at_end is not None else await self._read(target, begin, entry, note_ms)

    async def _read(self, target: Side, begin: int, entry: LedgerEntry, note_ms: int) -> Found:
        known = await self._known(target, entry)
        last = None if known is None else await self._batch_at(target.log, known.ours_at, entry)
        if known is not None and known.ours_at >= 0 and last is None:
            known = None
        reading = _Reading(entry, known or Scanned(begin, -1), last)
        noted, unseen = time.monotonic(), 0
        try:
            async for seen in read_range(self._client, target.log, reading.to, target.end, committed=False):
                reading.add(seen)
                unseen += seen.header.size
                if unseen >= _LOOK_AT_CLOCK_BYTES and note_ms:
                    unseen = 0
                    if time.monotonic() - noted >= _NOTE_SECONDS:
                        await self._note(reading, note_ms)
                        noted = time.monotonic()
        finally:
            if reading.scanned is not None:
                self._kept[entry.lane] = (_place(entry), reading.scanned)
        if note_ms and time.monotonic() - noted >= _NOTE_SECONDS:
            await self._note(reading, note_ms)
        return Found(reading.last, -1 if known is None else known.to, reading.scanned)

    async def first_of_others(self, target: Side, entry: LedgerEntry) -> BatchHeader | None:
        """The first batch behind the entry's position that its flow did not write, in any of its generations."""
        begin = max(target.log_start, entry.target_next)
        if begin < target.end:
            header = await self._header_at(target.log, begin)
            if header is not None and header.producer_id != entry.identity.producer_id:
                return header  # as nearly always: no need to read on
        async for seen in read_range(self._client, target.log, begin, target.end, committed=False):
            if seen.header.producer_id != entry.identity.producer_id:
                return seen.header
        return None

    async def _header_at(self, log: Log, offset: int) -> BatchHeader | None:
        buffer, fetched = await fetch_once(self._client, log, offset, committed=False, max_bytes=_ONE_BATCH)
        return next((header for _, header in walk(buffer, fetched.start, fetched.end)), None)

    async def batch_before(self, log: Log, entry: LedgerEntry) -> Seen | None:
        """The batch of ours that ends at the entry's position; None: it is deleted, or somebody else's lies there."""
        seen = await self._batch_at(log, entry.target_next - 1, entry)
        return seen if seen is not None and seen.header.next_offset == entry.target_next else None

    async def run_before(self, target: Side, last: Seen, most: int) -> list[Copy]:
        """The last records of ours up to the batch `last`, oldest first; with each whether its timestamp is the target's."""
        run: deque[Copy] = deque(maxlen=most)
        after = last.header.next_offset
        async for seen in read_range(
            self._client, target.log, max(target.log_start, after - _RUN_OFFSETS), after, committed=False
        ):
            if _writer(seen) == _writer(last):
                found = contents(seen)
                if not seen.header.is_dense:
                    run.clear()  # the target was cleaned: what it lacks is no difference
                    found = [pair for pair in found if pair[0] == after - 1]
                run.extend((content, seen.header.is_append_time) for _, content in found)
        return list(run)

    async def copies(self, target: Side, entry: LedgerEntry) -> AsyncIterator[Copy]:
        """The records of ours behind the entry's position."""
        begin = max(target.log_start, entry.target_next)
        async for seen in read_range(self._client, target.log, begin, target.end, committed=False):
            if is_ours(seen, entry):
                for offset, content in contents(seen):
                    if offset >= begin:
                        yield content, seen.header.is_append_time

    # -- what was read before -----------------------------------------------------------------------------------------

    async def _known(self, target: Side, entry: LedgerEntry) -> Scanned | None:
        """What the ledger or this process remembers of it, if the target is still the same up to there."""
        place, mine = self._kept.get(entry.lane, (None, None))
        if place == _place(entry) and mine is not None and (entry.scanned is None or mine.to > entry.scanned.to):
            entry = replace(entry, scanned=mine)
        known = already_read(entry, TargetTail(target.log_start, target.end, None))
        if known is None:
            return None
        try:
            log = replace(target.log, after_epoch=known.epoch)
            await fetch_once(self._client, log, known.to, committed=False, max_bytes=_ONE_BATCH)
        except Diverged:
            return None
        except BrokerRefused as error:
            if error.code != _OUT_OF_RANGE:
                raise
            return None
        return known

    async def _batch_at(self, log: Log, offset: int, entry: LedgerEntry) -> Seen | None:
        """The batch that holds an offset, if it is ours."""
        if offset < 0:
            return None
        buffer, fetched = await fetch_once(self._client, log, offset, committed=False, max_bytes=_ONE_BATCH)
        view = memoryview(buffer)
        for at, header in walk(buffer, fetched.start, fetched.end):
            seen = Seen(header, view[at : at + header.size], None)
            return seen if is_ours(seen, entry) and header.base_offset <= offset < header.next_offset else None
        return None

    async def _note(self, reading: _Reading, now_ms: int) -> None:
        """Into the ledger, unless it knows more of the lane by now; an attach does not fail over it."""
        entry, ledger = reading.entry, self._ledger
        if ledger is None or reading.scanned is None:
            return
        latest = ledger.book.latest(entry.lane)
        if latest is None or latest.generation != entry.generation or latest.source_next > entry.source_next:
            return
        record = (EntryKey(entry.lane, entry.generation), encode_entry(replace(entry, scanned=reading.scanned)))
        with suppress(HeliographError, TimeoutError):
            async with asyncio.timeout(_NOTE_TIMEOUT_SECONDS):
                await ledger.write([record], now_ms)


class _Reading:
    """How far a scan is."""

    def __init__(self, entry: LedgerEntry, begin: Scanned, last: Seen | None) -> None:
        self.entry = entry
        self.to, self._epoch, self.last = begin.to, begin.epoch, last

    def add(self, seen: Seen) -> None:
        self.to, self._epoch = seen.header.next_offset, seen.header.leader_epoch
        if is_ours(seen, self.entry):
            self.last = seen

    @property
    def scanned(self) -> Scanned | None:
        """Nothing without an epoch (old formats): a target that was cut back would not show."""
        if self._epoch < 0 or self.to <= self.entry.target_next:
            return None
        return Scanned(self.to, self._epoch, self.last.header.base_offset if self.last is not None else -1)


def among_others(entry: LedgerEntry, position: Position, sequence: int, there: Found | None) -> LedgerEntry:
    """The entry of a lane behind whose last record somebody else's lie: from there on offsets may differ, and sooner or later
    they do. It ends with our last record, where that is known, and says how far the others' were read."""
    since, last = entry.source_next, there.last if there is not None else None
    if last is not None and position.last is not None and our_batch(last).next_sequence == sequence:
        entry = moved(entry, position, sequence, max(entry.target_next, last.header.next_offset))
    if there is not None and there.scanned is not None and there.scanned.to > entry.target_next:
        is_passed = there.scanned.ours_at < entry.target_next
        entry = replace(entry, scanned=Scanned(*there.scanned[:2]) if is_passed else there.scanned)
    return replace(entry, differs_at=differs_at(entry.differs_at, (0, 0), since))


def _writer(seen: Seen) -> tuple[int, int]:
    return seen.header.producer_id, seen.header.producer_epoch


def _place(entry: LedgerEntry) -> tuple[int, int]:
    return entry.generation, entry.target_next
