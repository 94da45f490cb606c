"""Translating offsets of one lane: reads what `replication.translation` needs to answer, and proves the answer.

Reads only. A window between two of the ledger's points is read once and kept, so many offsets cost little more than one. Every
answer that names a record is proven where both logs still have it: the two records are fetched and compared.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from heliograph.kafka.batch_at import BatchAt
from heliograph.kafka.homecoming import Home, HomeNotKnown
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.log_ends import End
from heliograph.kafka.ranges import Seen, read_range
from heliograph.model.lanes import LedgerEntry, next_sequence
from heliograph.replication.translation import (
    IN_ABORTED,
    MARKER,
    Answer,
    Counted,
    Exact,
    Gone,
    Kept,
    KeptLog,
    NeverCopied,
    NotKnown,
    NotYetCopied,
    Point,
    Runs,
    Window,
    by_count,
    by_key,
    is_plain,
    nothing_copied,
    position_of,
    window_of,
)
from heliograph.wire.aborted import ABORTED, CAME_HOME, CONTROL
from heliograph.wire.records import read_records

_FOREIGN = "foreign"
_REASONS = {
    CONTROL: MARKER,
    ABORTED: IN_ABORTED,
    _FOREIGN: "somebody else wrote it into the remote topic",
    CAME_HOME: "it came home: the flow in the other direction wrote it there",
}
_CLEANED = "the {side} has cleaned it away"
SOURCE, TARGET = "source", "target"


@dataclass
class Part:
    """One side of a window as its log shows it now."""

    runs: list[tuple[int, int]] = field(default_factory=list)
    left_out: list[tuple[int, int, str]] = field(default_factory=list)
    """(first, next, reason) of what is not the lane's."""
    cleaned: bool = False
    """Records were removed from the middle: counting is not safe."""

    def why_left_out(self, offset: int) -> str:
        return next((reason for first, after, reason in self.left_out if first <= offset < after), "")


@dataclass(frozen=True)
class Lineage:
    """What the ledger knows of a flow beyond its lanes' entries."""

    producers: frozenset[int] = frozenset()
    """Every producer id under which the flow ever wrote: the coordinator may give it a new one."""
    home_ledger: str = ""
    """The topic id of the source's ledger, which tells what came home; empty: whichever is there."""


_NO_LINEAGE = Lineage()


class Translator:
    """Of one lane, by one entry of the ledger."""

    def __init__(self, entry: LedgerEntry, source: End, target: End, lineage: Lineage = _NO_LINEAGE) -> None:
        self.entry = entry
        without = entry.rule.without
        self._home = Home(Ledger(source.client), without, lineage.home_ledger) if without else None
        self._producers = lineage.producers | {entry.identity.producer_id}
        self.source = source
        self.target = target
        self._here = BatchAt(source.client, source.log, source.start, source.end)
        self._there = BatchAt(target.client, target.log, target.start, target.end)
        self._parts: dict[tuple[Window, bool], Part] = {}
        self._records: dict[tuple[Window, bool], KeptLog] = {}
        self._plain: dict[Window, bool] = {}

    async def translate(self, offset: int, reverse: bool = False) -> Answer:
        """The offset of the same record on the target; `reverse`: on the source, of an offset on the target."""
        try:
            return await self._translate(offset, reverse)
        except HomeNotKnown as error:
            return NotKnown(error.reason)

    async def _translate(self, offset: int, reverse: bool) -> Answer:
        here, _ = self._ends(reverse)
        window = window_of(self.entry, offset, reverse)
        if isinstance(window, NotYetCopied):
            return await self._at_the_end(offset, window)
        if not isinstance(window, Window):
            return window
        if await self.is_plain_window(window):
            moved = offset + (window.end.target - window.end.source) * (-1 if reverse else 1)
            return await self._checked(offset, moved, reverse)
        if offset < here.start:
            if not reverse and (left_out := await self.left_out(window)):
                return left_out
            resume = position_of(await self._translate(here.start, reverse))
            return Gone(_name(reverse), f"the {_name(reverse)} begins at {here.start}", resume)
        return await self._searched(offset, window, reverse)

    # -- the three ways -----------------------------------------------------------------------------------------------

    async def _at_the_end(self, offset: int, answer: NotYetCopied) -> Answer:
        """Behind the ledger's position: if no record lies in between, everything before the offset is copied."""
        known, reached = self.entry, self.entry.source_next
        async for seen in self._read(self.source, known.source_next, offset):
            if seen.dropped is None:
                return answer
            reached = seen.header.next_offset
        # Records of a transaction that is still open are not shown, and may be committed yet.
        return Exact(known.target_next, is_record=False) if reached >= offset else answer

    async def _searched(self, offset: int, window: Window, reverse: bool) -> Answer:
        here, there = self._ends(reverse)
        mine, other = await asyncio.gather(self.part(window, reverse), self.part(window, not reverse))
        if not reverse and (left_out := await self.left_out(window)):
            reason = _REASONS.get(mine.why_left_out(offset))
            if reason is None and mine.cleaned and all(one.offset != offset for one in await self.kept(window, False)):
                return Gone(SOURCE, _CLEANED.format(side=SOURCE), window.end.target)
            return NeverCopied(reason, window.end.target) if reason else left_out
        end = window.end.source if reverse else window.end.target
        if mine.cleaned or other.cleaned:
            kept = await asyncio.gather(self.kept(window, reverse), self.kept(window, not reverse))
            found = by_key(offset, kept[0], kept[1], end, _name(not reverse))
        else:
            begins = (
                (window.begin.target, window.begin.source) if reverse else (window.begin.source, window.begin.target)
            )
            is_cut = here.start > begins[0], there.start > begins[1]
            both = Counted(Runs(mine.runs), Runs(other.runs), end, is_cut, _name(not reverse))
            found = by_count(offset, both)
        if isinstance(found, Exact) and found.is_record:
            return await self._checked(offset, found.offset, reverse)
        if (reason := mine.why_left_out(offset)) in _REASONS and not isinstance(found, NotKnown):
            return NeverCopied(_REASONS[reason], position_of(found))
        if not isinstance(found, Exact):
            return found
        return Gone(_name(reverse), _CLEANED.format(side=_name(reverse)), found.offset)

    async def _checked(self, offset: int, moved: int, reverse: bool) -> Answer:
        """Both records must be the same, where both are there."""
        _, there = self._ends(reverse)
        if moved < there.start:
            return Gone(_name(not reverse), f"the {_name(not reverse)} begins at {there.start}", there.start)
        near, far = (self._there, self._here) if reverse else (self._here, self._there)
        mine, other = await asyncio.gather(near.record(offset), far.record(moved))
        if mine is None or other is None:
            return Exact(moved, is_record=other is not None)
        copy = await self._there.batch(offset if reverse else moved)
        append_time = copy is not None and copy.header.is_append_time
        if mine[1:] != other[1:] or (mine[0] != other[0] and not append_time):
            return NotKnown(
                f"disproved: record {moved} of the {_name(not reverse)} is not record {offset} of the other side"
            )
        return Exact(moved)

    async def left_out(self, window: Window) -> NeverCopied | NotKnown | None:
        """What to say of records in a window that has no place on the target; None: it has one."""
        answer = nothing_copied(window)
        if answer is None or (ends := await self.numbering_ends(window.end)):
            return answer
        if ends is None:
            return NotKnown(f"{answer.reason}; what was written there cannot be seen on the target any more")
        return NotKnown(
            f"the ledger knows no place for source offsets {window.begin.source} to {window.end.source - 1}"
        )

    async def numbering_ends(self, point: Point) -> bool | None:
        """Whether no numbering goes on over a point; None: that cannot be seen any more.

        A numbering ends where a lane leaves something out, and the next begins with 0. If the old one goes on behind the point,
        records were written that the ledger did not learn of.
        """
        identity = self.entry.identity
        before, after = await asyncio.gather(self._there.batch(point.target - 1), self._next_of_ours(point.target))
        if after is None:
            return True
        if point == Point(self.entry.source_start, self.entry.target_start):
            return _writer(after) == (identity.producer_id, identity.producer_epoch)
        if before is not None and before.header.producer_id in self._producers:
            return _writer(before) != _writer(after)
        return True if after.header.base_sequence == 0 else None

    async def _next_of_ours(self, offset: int) -> Seen | None:
        async for seen in self._read(self.target, offset, self.target.end):
            if seen.header.producer_id in self._producers:
                return seen
        return None

    # -- reading ------------------------------------------------------------------------------------------------------

    def _ends(self, reverse: bool) -> tuple[End, End]:
        return (self.target, self.source) if reverse else (self.source, self.target)

    def _read(self, end: End, first: int, after: int) -> AsyncIterator[Seen]:
        committed = end is self.source and self.entry.rule.isolation == "read_committed"
        home = self._home if end is self.source else None
        return read_range(end.client, end.log, max(first, end.start), after, committed=committed, home=home)

    def _is_ours(self, seen: Seen, window: Window) -> bool:
        """Within the generation in force by its identity; before it by every id that the flow ever had, with any epoch."""
        identity = self.entry.identity
        if self._is_current(window):
            return _writer(seen) == (identity.producer_id, identity.producer_epoch)
        return seen.header.producer_id in self._producers

    def _is_current(self, window: Window) -> bool:
        """Whether the generation in force wrote all of the window."""
        begin, entry = window.begin, self.entry
        return begin.source >= entry.source_start and begin.target >= entry.target_start

    async def is_plain_window(self, window: Window) -> bool:
        """By the numbers of the window's first and last record: as many records of one numbering as offsets."""
        if window not in self._plain:
            self._plain[window] = window.may_be_plain and await self._numbers_agree(window)
        return self._plain[window]

    async def _numbers_agree(self, window: Window) -> bool:
        first, last = await asyncio.gather(
            self._there.batch(window.begin.target), self._there.batch(window.end.target - 1)
        )
        if first is None or last is None or not (self._is_ours(first, window) and self._is_ours(last, window)):
            return False
        if _writer(first) != _writer(last):
            return False
        begin = next_sequence(first.header.base_sequence, window.begin.target - first.header.base_offset)
        end = next_sequence(last.header.base_sequence, window.end.target - last.header.base_offset)
        return is_plain(window, begin, end)

    async def part(self, window: Window, on_target: bool) -> Part:
        """One side of a window by its headers."""
        if (window, on_target) not in self._parts:
            self._parts[window, on_target] = await self._read_part(window, on_target)
        return self._parts[window, on_target]

    async def _read_part(self, window: Window, on_target: bool) -> Part:
        end = self.target if on_target else self.source
        first, after = _span(window, on_target)
        part, expected = Part(), max(first, end.start)
        async for seen in self._read(end, first, after):
            header = seen.header
            low, high = max(header.base_offset, first), min(header.next_offset, after)
            # A hole between two batches, a batch with holes, an empty one: only a cleaner makes these.
            part.cleaned |= header.base_offset > expected or (not header.is_control and not header.is_dense)
            expected = header.next_offset
            dropped = _FOREIGN if on_target and not self._is_ours(seen, window) else seen.dropped
            if dropped is None:
                part.runs.append((low, high - low))
            else:
                part.left_out.append((low, high, dropped))
        part.cleaned |= expected < after and first < after
        return part

    async def kept(self, window: Window, on_target: bool) -> KeptLog:
        """One side of a window by its records."""
        if (window, on_target) not in self._records:
            end = self.target if on_target else self.source
            first, after = _span(window, on_target)
            found: list[Kept] = []
            plain_time = not await self._appends_time()
            async for seen in self._read(end, first, after):
                if seen.dropped is None and (not on_target or self._may_be_ours(seen, window)):
                    found += [
                        Kept(
                            record.offset,
                            record.key,
                            (_digest(record.timestamp if plain_time else 0, record[2:]),),
                            record.value is None,
                        )
                        for record in read_records(seen.data, seen.header)
                        if first <= record.offset < after
                    ]
            self._records[window, on_target] = KeptLog(found)
        return self._records[window, on_target]

    def _may_be_ours(self, seen: Seen, window: Window) -> bool:
        """Where records are found by content: the coordinator gives a flow a new producer id when the epochs are used up."""
        return self._is_ours(seen, window) or (seen.header.producer_id >= 0 and not self._is_current(window))

    async def _appends_time(self) -> bool:
        """The remote topic puts its own clock in place of timestamps."""
        last = await self._there.batch(self.entry.target_next - 1)
        return last is not None and last.header.is_append_time


def _name(on_target: bool) -> str:
    return TARGET if on_target else SOURCE


def _writer(seen: Seen) -> tuple[int, int]:
    return seen.header.producer_id, seen.header.producer_epoch


def _span(window: Window, on_target: bool) -> tuple[int, int]:
    if on_target:
        return window.begin.target, window.end.target
    return window.begin.source, window.end.source


def _digest(*content: object) -> bytes:
    """Records may be large, and a window holds many."""
    return hashlib.blake2b(repr(content).encode(), digest_size=16).digest()
