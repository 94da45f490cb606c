"""Opening generations (P1.4): claim, read to one's own claim, adopt the first, write it as the entry, take the claim back."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from heliograph.errors import ClusterUnreachable, ConnectionLost
from heliograph.kafka.ledger import Ledger
from heliograph.model.lanes import Identity, LaneId, LedgerEntry
from heliograph.replication.alignment import differs_at
from heliograph.replication.anchors import over_a_jump
from heliograph.replication.generations import encode_entry
from heliograph.replication.ledger_keys import PRODUCER_NOTE, ClaimKey, EntryKey, NoteKey

_GATHER_SECONDS = 0.002
_FOR_ALL = (ClusterUnreachable, ConnectionLost, TimeoutError)
"""What keeps every lane from its generation; anything else may be about one record."""


def transactional_id(flow: str) -> str:
    """Used for InitProducerId only; nothing is ever written in a transaction."""
    return f"heliograph.{flow}"


@dataclass(frozen=True)
class Opening:
    """A generation that is to follow `entry`'s: under this identity, from this source offset on, by this attempt."""

    entry: LedgerEntry
    identity: Identity
    source_start: int
    attempt: str = ""
    uncounted: bool = False
    follows: int = -1
    """The position that it follows, where that is not the entry's."""

    def claim(self, now_ms: int) -> LedgerEntry:
        """From sequence 0 (P1.5)."""
        entry, start = self.entry, self.source_start
        return replace(
            entry,
            generation=entry.generation + 1,
            identity=self.identity,
            source_start=start,
            target_start=entry.target_next,
            source_next=start,
            source_epoch=entry.source_epoch if start == entry.source_next else -1,
            sequence_next=0,
            filling=False,
            anchors=over_a_jump(entry.anchors, (entry.source_next, entry.target_next), start),
            differs_at=differs_at(entry.differs_at, (start, entry.target_next), -1),
            last=_still_there(entry.last, start, entry.target_next),
            attempt=self.attempt,
            follows=max(self.follows, entry.source_next),
            uncounted=self.uncounted,
            time_ms=now_ms,
        )


class Openings:
    """Generations that lanes of one task open at the same moment, opened together: after a broker was lost, thousands do.

    One round at a time; whoever asks while it is under way shares the next. So what the ledger is asked for does not grow with the
    number of lanes.
    """

    def __init__(self, ledger: Ledger, now_ms: Callable[[], int]) -> None:
        self._ledger = ledger
        self._now_ms = now_ms
        self._waiting: list[tuple[Opening, asyncio.Future[LedgerEntry]]] = []
        self._rounds: asyncio.Task[None] | None = None

    async def open(self, opening: Opening) -> LedgerEntry:
        """One generation of one lane, by us or by whoever claimed it first. Who is cancelled before the round begins leaves no trace."""
        opened: asyncio.Future[LedgerEntry] = asyncio.get_running_loop().create_future()
        self._waiting.append((opening, opened))
        if self._rounds is None or self._rounds.done():
            self._rounds = asyncio.create_task(self._open_waiting())
        return await opened

    def close(self) -> None:
        """Nobody waits any more."""
        if self._rounds is not None:
            self._rounds.cancel()

    async def _open_waiting(self) -> None:
        while self._waiting:
            await asyncio.sleep(_GATHER_SECONDS)
            together: dict[LaneId, tuple[Opening, asyncio.Future[LedgerEntry]]] = {}
            later = []
            for opening, opened in self._waiting:
                if opened.cancelled():
                    continue
                if opening.entry.lane in together:
                    later.append((opening, opened))
                else:
                    together[opening.entry.lane] = (opening, opened)
            self._waiting = later
            await self._open(list(together.values()))

    async def _open(self, together: Sequence[tuple[Opening, asyncio.Future[LedgerEntry]]]) -> None:
        now_ms = self._now_ms()
        try:
            won = await open_generations(self._ledger, [opening.claim(now_ms) for opening, _ in together], now_ms)
        except Exception as error:  # noqa: BLE001  handed on to whom it concerns
            if isinstance(error, _FOR_ALL) or len(together) == 1:
                for _, opened in together:
                    _fail(opened, error)
            else:
                for one in together:
                    await self._open([one])
            return
        for opening, opened in together:
            if not opened.done():
                opened.set_result(won[opening.entry.lane])


def _fail(opened: asyncio.Future[LedgerEntry], error: Exception) -> None:
    if not opened.done():
        opened.set_exception(error)
        opened.exception()  # it may be nobody's any more


def _still_there(last: tuple[int, int] | None, source_start: int, target_next: int) -> tuple[int, int] | None:
    """A record that lies before both starts is still the last one; another is copied again, or gone."""
    return last if last is not None and last[0] < source_start and last[1] < target_next else None


async def open_generations(ledger: Ledger, wanted: Sequence[LedgerEntry], now_ms: int) -> dict[LaneId, LedgerEntry]:
    """The entry in force of each wanted generation, ours or whoever claimed it first; only then may anyone append.

    Many lanes cost two writes and one read. Two drivers may both write the winner's entry: they write the same. A number
    whose first claim is outlived is passed over: its writer ended before it wrote the entry, the lane was carried
    further since, and that claim starts before what was copied.
    """
    if not wanted:
        return {}
    await _note_producers(ledger, wanted, now_ms)
    mark = uuid.uuid4().hex
    won: dict[LaneId, LedgerEntry] = {}
    claimed: list[ClaimKey] = []
    left = list(wanted)
    while left:
        keys = [ClaimKey(entry.lane, entry.generation, mark) for entry in left]
        claimed += keys
        await ledger.write([(key, encode_entry(entry)) for key, entry in zip(keys, left, strict=True)], now_ms)
        book = await ledger.refresh()
        found = {entry.lane: book.opened_as(entry) for entry in left}
        won |= {lane: entry for lane, entry in found.items() if entry is not None}
        left = [replace(entry, generation=entry.generation + 1) for entry in left if found[entry.lane] is None]
    records = [
        (EntryKey(lane, entry.generation), encode_entry(entry))
        for lane, entry in won.items()
        if entry.generation not in ledger.book.generations(lane)
    ]
    await ledger.write(records, now_ms)
    await ledger.write([(key, None) for key in claimed], now_ms)
    await ledger.refresh()
    return won


async def _note_producers(ledger: Ledger, wanted: Sequence[LedgerEntry], now_ms: int) -> None:
    """Name every producer id before anybody writes under it, and for good: a flow back tells our batches by it."""
    ids = {flow: ledger.book.producers(flow) for flow in {entry.lane.flow for entry in wanted}}
    for entry in wanted:
        ids[entry.lane.flow].add(entry.identity.producer_id)
    notes = [
        NoteKey(flow, PRODUCER_NOTE, str(number))
        for flow, found in ids.items()
        for number in sorted(found - ledger.book.noted_producers(flow))
    ]
    if notes:
        await ledger.write([(note, b"{}") for note in notes], now_ms)
