"""A source offset to the target offset of its copy, and back. Pure: what lies in both logs is handed in.

A lane appends what it may copy in the order of the source, so the n-th record of a source range is the n-th of ours in the
matching target range. Ranges are cut by the ledger's points, so that little is counted. Both sides are counted from their ends:
retention takes records from the beginning of a log only. Where both ranges are whole, their sums must be the same.
Cleaning takes records from the middle, so cleaned ranges are not counted: there a record is found by its key (`by_key`).

What cannot be shown is `NotKnown`, with the reason. Nothing here guesses.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate

from heliograph.model.lanes import SEQUENCE_MASK, LedgerEntry


@dataclass(frozen=True)
class Exact:
    """The same record on the other side. `is_record` false: a position, at which no record lies yet."""

    offset: int
    is_record: bool = True


@dataclass(frozen=True)
class NotYetCopied:
    """So many source offsets lie between the ledger's position and the record."""

    distance: int


@dataclass(frozen=True)
class Gone:
    """The record is no longer on `side`. `resume`: where a reader who wanted it goes on."""

    side: str
    reason: str
    resume: int | None = None


@dataclass(frozen=True)
class NeverCopied:
    """There is no such record on the other side. `resume`: where a reader who came to it goes on."""

    reason: str
    resume: int | None = None


@dataclass(frozen=True)
class NotKnown:
    """It cannot be said exactly, so it is not said."""

    reason: str


MARKER = "it is a transaction marker"
IN_ABORTED = "it belongs to an aborted transaction"


def is_marked(reason: str) -> bool:
    """Of what was never copied: no reader of committed records gets it on the source either."""
    return reason in (MARKER, IN_ABORTED)


Answer = Exact | NotYetCopied | Gone | NeverCopied | NotKnown


def position_of(answer: Answer) -> int | None:
    """Where a reader goes on who would have read this offset next; None if that is not known."""
    match answer:
        case Exact(offset):
            return offset
        case Gone(_, _, resume) | NeverCopied(_, resume):
            return resume
    return None


# -- the ledger's points ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Point:
    """What was copied from before `source` lies before `target`, everything else after it."""

    source: int
    target: int


@dataclass(frozen=True)
class Window:
    """Two neighbouring points: what was copied from [begin.source, end.source) lies in [begin.target, end.target)."""

    begin: Point
    end: Point

    @property
    def may_be_plain(self) -> bool:
        return self.end.source - self.begin.source == self.end.target - self.begin.target


def points(entry: LedgerEntry) -> tuple[Point, ...]:
    """All that an entry knows of its lane, oldest first, both offsets growing.

    Anchors stand in the order in which they were written. One that lies behind a younger one was overtaken: the target or the
    source went back, and what it told of was copied again. Those of older generations stand before this one's start.
    """
    start = Point(entry.source_start, entry.target_start)
    written = [Point(*anchor) for anchor in entry.anchors]
    older = [point for point in written if point.source < start.source or point.target < start.target]
    newer = [point for point in written if point.source >= start.source and point.target >= start.target]
    chain = [Point(entry.source_next, entry.target_next)]
    for point in (*reversed(newer), start, *reversed(older)):
        last = chain[-1]
        if point.source <= last.source and point.target <= last.target and point != last:
            chain.append(point)
    return tuple(reversed(chain))


def window_of(entry: LedgerEntry, offset: int, reverse: bool) -> Window | Answer:
    """The window that holds an offset of the source (of the target: `reverse`), or what can be said without one."""
    known = points(entry)
    first, last = known[0], known[-1]
    place = [point.target if reverse else point.source for point in known]
    if offset == place[-1]:
        return Exact(last.source if reverse else last.target, is_record=False)
    if offset > place[-1]:
        if reverse:
            return NotKnown(f"the ledger knows this lane up to target offset {last.target}")
        return NotYetCopied(offset - last.source)
    if offset < place[0]:
        if reverse:
            return NeverCopied(f"it lies before the first record of this lane, {first.target}", first.source)
        if entry.generation == 0:
            return NeverCopied(f"the lane began at source offset {first.source}", first.target)
        return NotKnown(
            f"the lane is in generation {entry.generation}, and the ledger keeps nothing of it from before source offset "
            f"{first.source}"
        )
    at = bisect_right(place, offset) - 1
    return Window(known[at], known[at + 1])


def nothing_copied(window: Window) -> NeverCopied | None:
    """A window of the source without a place on the target: the answer to every offset in it that is a record."""
    if window.begin.target < window.end.target:
        return None
    begin, end = window.begin.source, window.end.source
    return NeverCopied(
        f"source offsets {begin} to {end - 1} were left out: skipped, or lost to retention", window.end.target
    )


def is_plain(window: Window, begin_sequence: int, end_sequence: int) -> bool:
    """Whether as many records of one numbering lie in the window as it has offsets, on both sides: nothing in between."""
    copied = (end_sequence - begin_sequence) & SEQUENCE_MASK
    return window.may_be_plain and copied == window.end.source - window.begin.source


# -- counting -----------------------------------------------------------------------------------------------------------


class Runs:
    """Records of one side of a window as runs of neighbouring offsets, (first, count), in order."""

    def __init__(self, runs: Iterable[tuple[int, int]]) -> None:
        known = [run for run in runs if run[1] > 0]
        self._firsts = [first for first, _ in known]
        self._counts = [count for _, count in known]
        self._before = [0, *accumulate(self._counts)]

    @property
    def total(self) -> int:
        return self._before[-1]

    def holds(self, offset: int) -> bool:
        at = bisect_right(self._firsts, offset) - 1
        return at >= 0 and offset < self._firsts[at] + self._counts[at]

    def from_end(self, offset: int) -> int:
        """How many records lie at the offset or after it."""
        at = bisect_right(self._firsts, offset) - 1
        if at < 0:
            return self.total
        return self.total - self._before[at] - min(offset - self._firsts[at], self._counts[at])

    def offset_of(self, from_end: int) -> int:
        """The offset of the record that has so many at it or after it: 1 is the last."""
        index = self.total - from_end
        at = bisect_right(self._before, index) - 1
        return self._firsts[at] + index - self._before[at]


@dataclass(frozen=True)
class Counted:
    """Both sides of a window: the side that was asked about, the other, and where the other one's window ends."""

    here: Runs
    there: Runs
    there_end: int
    is_cut: tuple[bool, bool]
    """Whether the log begins inside the window, of either side: some of its records were deleted."""
    there_name: str


def by_count(offset: int, counted: Counted) -> Answer:
    """The record with as many records after it on the other side; `Exact(is_record=False)`: no record here, its position."""
    here, there = counted.here, counted.there
    here_cut, there_cut = counted.is_cut
    # Only a side whose log begins inside the window may have fewer: what is missing elsewhere was not counted, or not copied.
    if (here.total < there.total and not here_cut) or (there.total < here.total and not there_cut):
        return NotKnown(
            f"between two known points {max(here.total, there.total)} records lie on one side and "
            f"{min(here.total, there.total)} on the other: something was left out, repeated or removed there"
        )
    left = here.from_end(offset)
    if left == 0:
        return Exact(counted.there_end, is_record=False)
    if left > there.total:
        return Gone(counted.there_name, f"the {counted.there_name} has deleted it", _first(counted))
    return Exact(there.offset_of(left), is_record=here.holds(offset))


def _first(counted: Counted) -> int:
    return counted.there.offset_of(counted.there.total) if counted.there.total else counted.there_end


# -- cleaned logs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """A record that a cleaned log still has: all of it but the offset is compared."""

    offset: int
    key: bytes | None
    content: tuple[object, ...]
    is_tombstone: bool = False


class KeptLog(list[Kept]):
    """The records of one side in order, found by offset and by key without a search."""

    def __init__(self, records: Iterable[Kept] = ()) -> None:
        super().__init__(records)
        self._offsets = [record.offset for record in self]
        self._places: dict[bytes | None, list[int]] = {}
        for place, record in enumerate(self):
            self._places.setdefault(record.key, []).append(place)

    def first_at(self, offset: int) -> int:
        """The place of the first record at an offset or after it."""
        return bisect_left(self._offsets, offset)

    def of_key(self, key: bytes | None, since: int = 0) -> list[Kept]:
        """All records of a key from a place on."""
        places = self._places.get(key, [])
        return [self[place] for place in places[bisect_left(places, since) :]]


def by_key(offset: int, here: KeptLog, there: KeptLog, there_end: int, there_name: str) -> Answer:
    """The copy of the record at `offset`, or of the next one that is left, among the records of the other side.

    A cleaner keeps of every key the last records: if it kept one, it kept all later ones of that key. So on both sides the
    records of a key are the last ones of those that were copied. A record that is unlike all later ones of its key is therefore
    the last of its like on the other side too; equal ones are told apart by their number, counted from the end.
    """
    at = here.first_at(offset)
    if at == len(here) or here[at].offset != offset:
        return _first_found(at, here, there, there_end)
    copy = _copy_of(at, here, there)
    if copy is None:
        resume = _first_found(at + 1, here, there, there_end)
        return Gone(there_name, f"the {there_name} has no such record in this range any more", position_of(resume))
    return copy


def _first_found(begin: int, here: KeptLog, there: KeptLog, there_end: int) -> Exact | NotKnown:
    """The place of the first record from there on that the other side still has: where a reader goes on."""
    for at in range(begin, len(here)):
        copy = _copy_of(at, here, there)
        if copy is not None:
            return replace(copy, is_record=False) if isinstance(copy, Exact) else copy
    return Exact(there_end, is_record=False)


def _copy_of(at: int, here: KeptLog, there: KeptLog) -> Exact | NotKnown | None:
    """The copy of one record; None: the other side has it no more."""
    wanted = here[at]
    later = [record.content for record in here.of_key(wanted.key, at)]
    found = there.of_key(wanted.key)
    like = [record for record in found if record.content == wanted.content]
    equals = later.count(wanted.content)
    if len(like) < equals:
        return None
    if equals == 1:
        return Exact(like[-1].offset)
    if [record.content for record in found[-len(later) :]] == later:
        return Exact(found[-len(later)].offset)
    return NotKnown(f"the other side has {len(like)} records like this one, and their order does not tell which")
