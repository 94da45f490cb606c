"""Where does a lane go on? The pure part of attach (P2): ledger, target and source to a position, or to what must be asked next.

I/O is in kafka/attach.py. A decision here is a value with its reason; nothing is read, nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from heliograph.model.lanes import SEQUENCE_MASK, LedgerEntry, Scanned, next_sequence

_HALF = 1 << 30


@dataclass(frozen=True)
class Remembered:
    """What the target's leader remembers of our producer id."""

    epoch: int
    last_sequence: int
    last_timestamp: int


@dataclass(frozen=True)
class TargetTail:
    """The remote partition as its leader shows it."""

    log_start: int
    end: int
    remembered: Remembered | None


@dataclass(frozen=True)
class OurBatch:
    """The header of a batch of ours on the target."""

    base_offset: int
    base_sequence: int
    last_offset_delta: int

    @property
    def next_sequence(self) -> int:
        """Never by count: the cleaner may leave our last batch empty, its lastOffsetDelta stays (case 4c)."""
        return next_sequence(self.base_sequence, self.last_offset_delta + 1)


@dataclass(frozen=True)
class NextSequence:
    """The number of the next record. `had_state`: the broker will refuse anything else."""

    sequence: int
    had_state: bool
    reason: str


@dataclass(frozen=True)
class ReadTail:
    """No state: the headers from `offset` to the target's end must tell."""

    offset: int


@dataclass(frozen=True)
class AskLedger:
    """The broker knows a later epoch than our entry: a later generation may be in the ledger."""

    epoch: int


@dataclass(frozen=True)
class Park:
    reason: str


@dataclass(frozen=True)
class Lost:
    """The target has less than it acknowledged, and no number tells where to go on: on.target.loss decides."""

    reason: str
    from_start: bool = True
    """Copy the source again from its start; else from the ledger's position: what lies before that was there."""


@dataclass(frozen=True)
class Ahead:
    """The target holds `records` of ours beyond the entry."""

    records: int


@dataclass(frozen=True)
class Behind:
    """The target lost `records` of ours that the entry had seen acknowledged."""

    records: int


def next_in_sequence(entry: LedgerEntry, tail: TargetTail) -> NextSequence | ReadTail | AskLedger | Lost | Park:
    """P2.3 a to d, as far as the leader's memory answers it."""
    known = tail.remembered
    if known is None:
        return ReadTail(tail_begins(entry, tail))
    if known.epoch > entry.identity.producer_epoch:
        return AskLedger(known.epoch)
    if known.epoch < entry.identity.producer_epoch:
        if entry.sequence_next != 0 and tail.end < entry.target_next:
            return Lost(
                f"it ends at {tail.end} and has nothing of generation {entry.generation} any more, "
                f"{entry.target_next} was acknowledged"
            )
        if entry.sequence_next != 0:
            return Park(
                f"identity conflict: the ledger has {entry.sequence_next} records under epoch "
                f"{entry.identity.producer_epoch}, the target only knows epoch {known.epoch}"
            )
        return NextSequence(0, False, "this generation has not written yet")
    if known.last_sequence < 0:
        return NextSequence(0, False, "the target knows the identity, without a record")
    return NextSequence(next_sequence(known.last_sequence, 1), True, "the target remembers the last record")


def tail_begins(entry: LedgerEntry, tail: TargetTail) -> int:
    """From where on the target is read for the last batch of ours."""
    # A target that ends before the ledger's position lost what it had acknowledged: look at all that is left.
    return tail.log_start if tail.end < entry.target_next else max(tail.log_start, entry.target_next)


def already_read(entry: LedgerEntry, tail: TargetTail) -> Scanned | None:
    """What an earlier attach read behind the entry's position, where that can still be of use and be checked."""
    known = entry.scanned
    if known is None or not max(entry.target_next + 1, tail.log_start) <= known.to <= tail.end:
        return None
    return known if known.ours_at < 0 or known.ours_at >= tail.log_start else None


def next_by_headers(
    entry: LedgerEntry, tail: TargetTail, ours: Iterable[OurBatch], known_to: int = -1
) -> NextSequence | Lost:
    """P2.3 d: the leader has no state; the last batch of ours in its log decides, or the ledger where there is none.

    `known_to`: what lies between the entry's position and this was read before, and `ours` tells of it too.
    """
    last: OurBatch | None = None
    for batch in ours:
        last = batch
    if last is not None:
        return NextSequence(last.next_sequence, False, "the last batch of ours in the target's log")
    if tail.end < entry.target_next:
        return Lost(
            f"it ends at {tail.end} and has nothing of this lane any more, {entry.target_next} was acknowledged"
        )
    if tail.end == entry.target_next or tail.log_start <= max(entry.target_next, known_to):
        return NextSequence(entry.sequence_next, False, "nothing of ours after the ledger's position")
    # What is copied again from the ledger's position is not there twice: the target has deleted it.
    return Lost(
        f"its records {entry.target_next} to {tail.log_start - 1} are deleted, and with them what was written since the "
        "ledger's last entry: the position is unknown",
        from_start=False,
    )


def distance(entry: LedgerEntry, sequence: int) -> Ahead | Behind:
    """P2.4: how far the target is from the ledger, in records, over the wrap of sequences."""
    ahead = (sequence - entry.sequence_next) & SEQUENCE_MASK
    if ahead < _HALF:
        return Ahead(ahead)
    return Behind((SEQUENCE_MASK + 1) - ahead)


def is_overtaken(sequence: int, last: OurBatch) -> bool:
    """Whether the target's last batch of ours came after it was asked what comes next: another attempt writes."""
    return 0 < (last.next_sequence - sequence) & SEQUENCE_MASK < _HALF


def contradiction(entry: LedgerEntry, tail: TargetTail, found: Ahead | Behind) -> Lost | None:
    """P3.5: a target that ends before what it acknowledged, but claims to have it all, took a batch into an empty log."""
    if isinstance(found, Ahead) and tail.end < entry.target_next:
        return Lost(
            f"it ends at {tail.end}, {entry.target_next} was acknowledged, and a stray batch of this lane is in it: the "
            "rest is lost"
        )
    return None


def lost_before(entry: LedgerEntry, tail: TargetTail) -> Lost | None:
    """Whether the target lost records that were acknowledged before `entry` was written, of a lane that may not count."""
    known = tail.remembered
    if known is not None and known.epoch == entry.identity.producer_epoch:
        found = distance(entry, next_sequence(known.last_sequence, 1))
        if isinstance(found, Behind):
            return lost_records(found.records)
    return contradiction(entry, tail, Ahead(0))


def lost_records(records: int) -> Lost:
    return Lost(
        f"it lost {records} records that it had acknowledged, and those of a compacted source cannot be counted"
    )


def is_guarded(last_timestamp: int, now_ms: int, expiration_ms: int) -> bool:
    """P6.1: does the target's memory outlive every attempt that could still write?

    The broker forgets a producer by the timestamp of its *last* batch, not by when it was written; on a LogAppendTime
    topic that is the time of the append. -1: it remembers nothing.
    """
    return last_timestamp > now_ms - expiration_ms + guard_margin_ms(expiration_ms)


def guard_margin_ms(expiration_ms: int) -> int:
    """One hour, longer than any zombie lives; where the broker forgets sooner than in two hours, half of that time."""
    return min(3_600_000, expiration_ms // 2)


def expected_offset(entry: LedgerEntry, tail: TargetTail, ahead: int) -> int | None:
    """P2.7: where the next record must land; None where somebody else's records may lie between.

    `ahead` is negative where the target went back.
    """
    return tail.end if tail.end == entry.target_next + ahead else None
