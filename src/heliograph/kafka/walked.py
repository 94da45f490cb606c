"""What attach walked over: a place in the source, the batch before it, and which records count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heliograph.kafka.ranges import Judge, Seen
from heliograph.model.lanes import LedgerEntry
from heliograph.replication.alignment import differs_at
from heliograph.replication.attach import OurBatch
from heliograph.wire.records import Headers, read_records

Content = tuple[int, bytes | None, bytes | None, Headers]
"""Timestamp, key, value and headers of a record."""
Copy = tuple[Content, bool]
"""A record on the target, and whether its batch has the target's clock in place of the timestamp."""
_HAS_COUNT = 2  # since this format a header tells how many records a batch has


@dataclass(frozen=True)
class Position:
    """A place in the source: the next offset, the epoch before it, and the batch that holds the record before it."""

    offset: int
    epoch: int
    last: Seen | None = None
    committed: bool = True
    target: int = -1
    """Where the next record lands, if nobody else writes."""
    gap_at: int = -1
    """The first record on the way here whose copy has another offset; -1: none."""
    home: Judge | None = None
    """Who knows which batches came home; None: none did."""
    cleaned: bool = False
    """Records are missing on the way here: the source was compacted once."""

    def before(self) -> int:
        """The offset of the record before this place."""
        assert self.last is not None  # noqa: S101  only asked after a walk
        return max(offset for offset in offsets_of(self.last) if offset < self.offset)


def alike(source: Content, target: Content, append_time: bool) -> bool:
    """Whether a record and its copy are the same. `append_time`: the copy's batch has the target's clock in place of the
    timestamp, by the batch's own bit: the topic's config may have changed since it was written."""
    return source[1:] == target[1:] if append_time else source == target


def moved(entry: LedgerEntry, position: Position, sequence: int, target_next: int) -> LedgerEntry:
    """The entry moved to where the target's high watermark is: as good as an acknowledgement (unlike a leader's memory,
    which holds records that are not replicated yet, case 1c)."""
    last = entry.last if entry.last is not None and entry.last[1] < target_next else None
    if position.last is not None and target_next > entry.target_next:
        last = (position.before(), target_next - 1)  # walked: what the target has of ours ends there
    return replace(
        entry,
        last=last,
        differs_at=differs_at(entry.differs_at, (0, 0), position.gap_at),
        source_next=position.offset,
        source_epoch=position.epoch,
        sequence_next=sequence,
        target_next=target_next,
        scanned=None,
    )


def is_ours(seen: Seen, entry: LedgerEntry) -> bool:
    header = seen.header
    return header.producer_id == entry.identity.producer_id and header.producer_epoch == entry.identity.producer_epoch


def our_batch(seen: Seen) -> OurBatch:
    return OurBatch(seen.header.base_offset, seen.header.base_sequence, seen.header.last_offset_delta)


def offsets_of(seen: Seen) -> Sequence[int]:
    """The offsets of the records in a batch.

    A batch of an old format, or one with gaps, is opened to count them. That is deterministic: what counts here is not compacted
    (P8.1), so its log only grows and loses its beginning. A source whose cleanup.policy was changed away from compact is not
    cleaned any more either; if it was cleaned after its records were copied, the proof of position shows it (P2.6).
    """
    header = seen.header
    if header.is_dense:
        return range(header.base_offset, header.next_offset)
    return [record.offset for record in read_records(seen.data, header)]


def offsets_from(seen: Seen, offset: int) -> Sequence[int]:
    """The same, without those before `offset`."""
    offsets = offsets_of(seen)
    if isinstance(offsets, range):
        return offsets[max(0, offset - offsets.start) :]
    return [found for found in offsets if found >= offset]


def has_gaps(seen: Seen, expected: int) -> bool:
    """Whether records are missing in a batch, or before it where `expected` should follow: only a cleaner takes them there."""
    header = seen.header
    return header.magic >= _HAS_COUNT and (header.base_offset > expected or not header.is_dense)


def contents(seen: Seen) -> list[tuple[int, Content]]:
    """The records of a batch with their offsets."""
    return [
        (record.offset, (record.timestamp, record.key, record.value, record.headers))
        for record in read_records(seen.data, seen.header)
    ]
