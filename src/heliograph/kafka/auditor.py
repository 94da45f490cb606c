"""The account of one lane: every window of its ledger entry looked at on both sides. The sums are made in replication/auditing.py.

Reads only. A window whose own numbers show that it is whole is not read, however long it is.
"""

from __future__ import annotations

from itertools import pairwise

from heliograph.kafka.translator import Part, Translator
from heliograph.replication.auditing import (
    Account,
    SourceView,
    TargetView,
    account_cleaned,
    account_counted,
    account_left_out,
    total,
)
from heliograph.replication.translation import Window, nothing_copied, points
from heliograph.wire.aborted import ABORTED, CAME_HOME, CONTROL


class Auditor:
    """Of one lane, by what a translator reads."""

    def __init__(self, translator: Translator) -> None:
        self._lane = translator
        self._windows = [Window(*pair) for pair in pairwise(points(translator.entry))]

    @property
    def first(self) -> int:
        """The source offset from which on the ledger knows the lane."""
        return points(self._lane.entry)[0].source

    async def account(self, end: int | None = None) -> Account:
        """Of the offsets before `end`, or of all that the source has; what the ledger has beyond is in it too."""
        accounts = [await self._window(window) for window in self._windows if window.begin.source < window.end.source]
        waiting = max(0, (self._lane.source.end if end is None else end) - self._lane.entry.source_next)
        return total([*accounts, Account(not_yet=waiting)])

    async def _window(self, window: Window) -> Account:
        lane = self._lane
        if await lane.is_plain_window(window):
            return Account(copied=window.end.source - window.begin.source)
        here, there = await lane.part(window, False), await lane.part(window, True)
        cut = lane.target.start > window.begin.target
        if nothing_copied(window) and await lane.numbering_ends(window.end) is not False:
            # A batch with holes spans more offsets than it has records.
            records = len(await lane.kept(window, False)) if here.cleaned else _count(here)
            return account_left_out(self._view(window, here, records))
        if not (here.cleaned or there.cleaned):
            return account_counted(self._view(window, here, _count(here)), TargetView(_count(there), cut))
        kept = await lane.kept(window, False)
        missing = 0 if cut else await self._missing(window, there.cleaned)
        return account_cleaned(self._view(window, here, len(kept)), missing)

    def _view(self, window: Window, part: Part, records: int) -> SourceView:
        offsets = window.end.source - window.begin.source
        deleted = min(offsets, max(0, self._lane.source.start - window.begin.source))
        control, aborted, home = (
            sum(after - first for first, after, reason in part.left_out if reason == wanted)
            for wanted in (CONTROL, ABORTED, CAME_HOME)
        )
        holes = offsets - deleted - records - control - aborted - home
        return SourceView(deleted, records, control, aborted, holes, home)

    async def _missing(self, window: Window, target_cleaned: bool) -> int:
        """Records that the source still has and the target has not, though its cleaner had no reason to take them."""
        here, there = await self._lane.kept(window, False), await self._lane.kept(window, True)
        copies = {(record.key, record.content) for record in there}
        absent = [record for record in here if (record.key, record.content) not in copies]
        if not absent or not target_cleaned:
            return len(absent)
        last = {record.key: record.offset for record in here}
        for later in self._windows[self._windows.index(window) + 1 :]:
            last |= {record.key: record.offset for record in await self._lane.kept(later, False)}
        # A cleaner takes a tombstone after delete.retention.ms, and everything that its key was written after.
        return sum(1 for record in absent if last[record.key] == record.offset and not record.is_tombstone)


def _count(part: Part) -> int:
    return sum(count for _, count in part.runs)
