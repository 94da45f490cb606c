"""`offsets.align`: a new lane whose records get the same offsets on the target as on the source.

Before its first record the remote partition is filled up to the source offset at which the lane begins, then cut off there. The
filler is numbered as the lane's own records, under its identity, from 0: **its sequence is its offset** (invariant F), which the
broker checks. So a fill that was interrupted goes on where it stopped, two writers cannot write it twice, and a record of
somebody else in between shows. The lane's entry says from the beginning that everything before its start is there.

Where a gap in the source makes offsets differ later, the lane notes since which offset. Knows no brokers: `kafka.alignment` acts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from heliograph.model.lanes import SEQUENCE_MASK, Lane, LedgerEntry

_CURE = "delete the remote topic to begin anew, or write offsets.align = false"


@dataclass(frozen=True)
class Align:
    """The lane's generation begins with a fill."""


@dataclass(frozen=True)
class NeedNot:
    """Nothing is to be filled; `reason` says why it cannot be, where it would have to be."""

    reason: str = ""


@dataclass(frozen=True)
class MayNot:
    """The lane must not begin."""

    reason: str
    what_to_do: str = _CURE


def alignment(lane: Lane, source_start: int, target_end: int) -> Align | NeedNot | MayNot:
    """What `offsets.align` means for a lane that begins at `source_start` and whose remote partition ends at `target_end`."""
    if source_start == target_end:
        return NeedNot()
    where = f"{lane.remote_topic}-{lane.id.partition}"
    if target_end:
        return MayNot(
            f"offsets.align = true, but {where} has or had records: it ends at {target_end}, the lane begins at "
            f"source offset {source_start}"
        )
    if lane.compacted or lane.target_compacted:
        return NeedNot(
            f"offsets.align does nothing for {where}: a compacted topic has gaps, and brokers do not cut it off; it begins at 0, "
            f"its source at {source_start}"
        )
    return Align()


def filled_first(claim: LedgerEntry) -> LedgerEntry:
    """The claim of a lane that begins with a fill: as if its filler were there already (invariant F)."""
    start = claim.source_start
    return replace(
        claim,
        target_start=start,
        target_next=start,
        sequence_next=start & SEQUENCE_MASK,
        filling=True,
        filler_to=start,
        differs_at=-1,
    )


@dataclass(frozen=True)
class Fill:
    """Filler must take the offsets from `first` to before `after`."""

    first: int
    after: int


@dataclass(frozen=True)
class CutOff:
    """All filler is there, and must be deleted."""

    before: int


@dataclass(frozen=True)
class Aligned:
    """The lane may begin."""


@dataclass(frozen=True)
class Disturbed:
    """Somebody else wrote before the lane began."""

    reason: str
    what_to_do: str = _CURE


def next_step(entry: LedgerEntry, log_start: int, end: int, sequence: int) -> Fill | CutOff | Aligned | Disturbed:
    """What is still to be done for a lane that is being filled; `sequence` is its next number, as the target has it."""
    begins = entry.filler_to
    if log_start >= begins:
        return Aligned()  # the cut is the last step
    if sequence != end & SEQUENCE_MASK:
        return Disturbed(
            f"offsets.align: somebody else wrote into the remote partition before this lane began: it ends at {end}, "
            f"{sequence} numbers of {begins} are taken"
        )
    return Fill(end, begins) if end < begins else CutOff(begins)


def shows_filler(entry: LedgerEntry, log_start: int, end: int) -> bool:
    """Whether filler that was cut off is there again: brokers write down where a log begins once a minute only, so one that is
    killed before may not know it any more."""
    return log_start < entry.filler_to <= end


def differs_at(known: int, pair: tuple[int, int], gap_at: int) -> int:
    """The first source offset whose copy lies elsewhere, -1: none yet. `pair`: the offsets of the first of some records on both
    sides; `gap_at`: the first of them that does not follow the one before it, -1: they all do."""
    if known >= 0:
        return known
    return pair[0] if pair[0] != pair[1] else gap_at
