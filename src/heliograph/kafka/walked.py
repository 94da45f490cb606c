"""What attach walked over: a place in the source, the batch before it, and which records count."""

from __future__ import annotations

from dataclasses import dataclass, replace

from heliograph.errors import LaneParked
from heliograph.kafka.ranges import Judge, Seen
from heliograph.model.lanes import Lane, LedgerEntry
from heliograph.replication.alignment import differs_at
from heliograph.wire.rebuild import record_at


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

    def before(self) -> int:
        """The offset of the record before this place."""
        assert self.last is not None  # noqa: S101  only asked after a walk
        header = self.last.header
        if self.offset >= header.next_offset:
            offsets = offsets_of(self.last)
            return offsets[-1]
        return max(offset for offset in offsets_of(self.last) if offset < self.offset)


def comparable(lane: Lane, record: tuple[object, ...]) -> tuple[object, ...]:
    """A record as both sides must show it; on a LogAppendTime target its own clock stands in place of the timestamp."""
    return record[1:] if lane.target_append_time else record


def place_of(lane: Lane, seen: Seen, wanted: tuple[object, ...]) -> int | None:
    """The last offset in a batch whose record is `wanted`."""
    for offset in reversed(offsets_of(seen)):
        if comparable(lane, record_at(seen.data, offset)) == wanted:
            return offset
    return None


def moved(entry: LedgerEntry, position: Position, sequence: int, target_next: int) -> LedgerEntry:
    """The entry moved to where the target's high watermark is: as good as an acknowledgement (unlike a leader's memory,
    which holds records that are not replicated yet, case 1c)."""
    last = entry.last if entry.last is not None and entry.last[1] < target_next else None
    if position.last is not None and target_next > entry.target_next:
        last = (position.before(), target_next - 1)  # walked: all that lies between the two entries is ours
    return replace(
        entry,
        last=last,
        differs_at=differs_at(entry.differs_at, (0, 0), position.gap_at),
        source_next=position.offset,
        source_epoch=position.epoch,
        sequence_next=sequence,
        target_next=target_next,
    )


def is_ours(seen: Seen, entry: LedgerEntry) -> bool:
    header = seen.header
    return header.producer_id == entry.identity.producer_id and header.producer_epoch == entry.identity.producer_epoch


def offsets_of(seen: Seen) -> list[int]:
    header = seen.header
    if header.is_dense:
        return list(range(header.base_offset, header.next_offset))
    raise LaneParked(
        f"the source has a gap inside the batch at {header.base_offset}: it was compacted, counting is not safe"
    )


def countable(seen: Seen, offset: int) -> tuple[int, int]:
    """How many records of a batch lie before `offset`, and how many from there on."""
    header = seen.header
    if not header.is_dense:
        offsets_of(seen)
    skipped = max(0, offset - header.base_offset)
    return skipped, header.count - skipped


def offset_of(seen: Seen, index: int) -> int:
    return seen.header.base_offset + index
