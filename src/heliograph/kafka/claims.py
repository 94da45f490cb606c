"""Opening generations (P1.4): claim, read to one's own claim, adopt the first, write it as the entry, take the claim back."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from heliograph.kafka.ledger import Ledger
from heliograph.model.lanes import Identity, LaneId, LedgerEntry
from heliograph.replication.alignment import differs_at
from heliograph.replication.anchors import over_a_jump
from heliograph.replication.generations import PRODUCER_NOTE, ClaimKey, EntryKey, NoteKey, encode_entry


def transactional_id(flow: str) -> str:
    """Used for InitProducerId only; nothing is ever written in a transaction."""
    return f"heliograph.{flow}"


async def open_next(
    ledger: Ledger, entry: LedgerEntry, identity: Identity, source_start: int, now_ms: int, attempt: str = ""
) -> LedgerEntry:
    """The generation after `entry`'s, from `source_start`, under a fresh identity and from sequence 0 (P1.5)."""
    wanted = replace(
        entry,
        generation=entry.generation + 1,
        identity=identity,
        source_start=source_start,
        target_start=entry.target_next,
        source_next=source_start,
        source_epoch=entry.source_epoch if source_start == entry.source_next else -1,
        sequence_next=0,
        filling=False,
        anchors=over_a_jump(entry.anchors, (entry.source_next, entry.target_next), source_start),
        differs_at=differs_at(entry.differs_at, (source_start, entry.target_next), -1),
        last=_still_there(entry.last, source_start, entry.target_next),
        attempt=attempt,
        time_ms=now_ms,
    )
    return (await open_generations(ledger, [wanted], now_ms))[entry.lane]


def _still_there(last: tuple[int, int] | None, source_start: int, target_next: int) -> tuple[int, int] | None:
    """A record that lies before both starts is still the last one; another is copied again, or gone."""
    return last if last is not None and last[0] < source_start and last[1] < target_next else None


async def open_generations(ledger: Ledger, wanted: Sequence[LedgerEntry], now_ms: int) -> dict[LaneId, LedgerEntry]:
    """The entry in force of each wanted generation, ours or whoever claimed it first; only then may anybody append.

    Many lanes cost two writes and one read. Two drivers may both write the winner's entry: they write the same.
    """
    if not wanted:
        return {}
    await _note_producers(ledger, wanted, now_ms)
    mark = uuid.uuid4().hex
    claims = [(ClaimKey(entry.lane, entry.generation, mark), encode_entry(entry)) for entry in wanted]
    await ledger.write(claims, now_ms)
    book = await ledger.refresh()
    won: dict[LaneId, LedgerEntry] = {}
    records: list[tuple[EntryKey, bytes]] = []
    for entry in wanted:
        winner = book.winner(entry.lane, entry.generation)
        assert winner is not None  # noqa: S101  the refresh read at least our own claim
        won[entry.lane] = winner
        if entry.generation not in book.generations(entry.lane):
            records.append((EntryKey(entry.lane, entry.generation), encode_entry(winner)))
    await ledger.write(records, now_ms)
    await ledger.write([(key, None) for key, _ in claims], now_ms)
    await ledger.refresh()
    return won


async def _note_producers(ledger: Ledger, wanted: Sequence[LedgerEntry], now_ms: int) -> None:
    """Name every producer id before anybody writes under it, and for good: a flow back tells our batches by it."""
    ids: dict[str, set[int]] = {}
    for entry in wanted:
        flow = entry.lane.flow
        ids.setdefault(flow, ledger.book.producers(flow)).add(entry.identity.producer_id)
    notes = [
        NoteKey(flow, PRODUCER_NOTE, str(number))
        for flow, found in ids.items()
        for number in sorted(found - ledger.book.noted_producers(flow))
    ]
    if notes:
        await ledger.write([(note, b"{}") for note in notes], now_ms)
