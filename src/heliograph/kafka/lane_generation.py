"""Which generation one lane writes in, and from which position: handed over, its own, the ledger's, or one that it opens (P1, P8).

On a compacted source nothing can be counted, so an attempt that was not handed the exact position opens a generation of its
own. It does so last, when nothing else keeps it from carrying the lane: a lane that only waits costs nothing, and leaves no
trace in the ledger.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from heliograph.errors import ConnectionLost, LaneParked
from heliograph.kafka.claims import Opening, Openings
from heliograph.kafka.lane import LaneRun, Start
from heliograph.model.lanes import Identity, Lane, LedgerEntry
from heliograph.replication.openings import is_another

if TYPE_CHECKING:
    from heliograph.kafka.ledger import Ledger
    from heliograph.kafka.slot import FlowRules, Slot


class LaneGeneration:
    """Of one lane in one attempt."""

    def __init__(self, slot: Slot, run: LaneRun, rules: FlowRules, now_ms: Callable[[], int]) -> None:
        self._slot = slot
        self._run = run
        self._rules = rules
        self._now_ms = now_ms
        self._handed: LedgerEntry | None = None
        self._inexact = False
        self._identity: Identity | None = None
        """Given out for the next generation of this lane, which is not opened yet."""
        self.inherits = False
        """The position is another attempt's, or not exact, and may not be counted from: the lane opens its own generation."""

    def hand(self, entry: LedgerEntry) -> None:
        """The exact position of the attempt before, which has left."""
        self._handed = entry

    def doubt(self) -> None:
        """The target has more than the position says, and it cannot be counted."""
        self._inexact = True

    @property
    def ledger(self) -> Ledger:
        return self._slot.warm.ledger(self._slot.plan.clusters[self._rules.target])

    async def position(self) -> LedgerEntry:
        """The entry to attach from; LaneParked where this flow may not continue it."""
        entry = await self._find()
        if not _is_of(entry, self._run.lane):
            raise LaneParked(
                f"generation {entry.generation} counts another topic of this name: waiting for the next plan"
            )
        rule = (self._rules.read_committed, self._rules.home)
        if (entry.rule.isolation == "read_committed", entry.rule.without) != rule:
            without = f" without {entry.rule.without}" if entry.rule.without else ""
            raise LaneParked(
                f"generation {entry.generation} counts by {entry.rule.isolation}{without}, this flow by another rule (P7)"
            )
        return entry

    async def _find(self) -> LedgerEntry:
        run = self._run
        handed, self._handed = self._handed, None
        inexact, self._inexact = self._inexact, False
        newest = self.ledger.book.newest(run.lane.id)
        if handed is not None and _is_of(handed, run.lane) and newest <= handed.generation:
            self.inherits = False
            return handed  # its writer has left: even a compacted lane continues in the same generation
        book = await self.ledger.refresh()
        latest = book.latest(run.lane.id)
        strange = self.ledger.strange.fault(run.lane.id, book.generations(run.lane.id))
        if strange is not None and run.acked is None:
            raise LaneParked(f"{strange}; {strange.what_to_do}")
        if latest is None:
            raise LaneParked("the ledger has no entry of this lane")
        known = run.acked
        if known is None or (known.identity != latest.identity and known.generation <= latest.generation):
            self.inherits = run.lane.compacted
            return latest
        is_exact = run.is_clean() and not inexact and known.generation >= latest.generation
        self.inherits = run.lane.compacted and not is_exact
        if known.generation > latest.generation:
            return known
        furthest = known if known.source_next >= latest.source_next else latest
        return replace(furthest, generation=latest.generation)

    async def own(self, start: Start, is_alone: Callable[[str], Awaitable[bool]]) -> Start | None:
        """P8.2: on a compacted source every attempt writes under an epoch of its own. None: not yet."""
        if not self.inherits:
            return start
        before = start.entry.identity
        if self._identity is None:
            self._identity = await self._slot.identity(self._rules, before)
        fences = self._identity.shuts_out(before)
        # Epochs of a new producer id shut nobody out who writes under the old one (P8.4).
        if not fences and not await is_alone("the flow has a new producer id"):
            return None
        self._run.acked = await self.open(start.entry, start.source_next)
        return replace(start, entry=self._run.acked, guarded=start.guarded and fences)

    async def open(self, entry: LedgerEntry, source_start: int) -> LedgerEntry:
        """The next generation after `entry`'s. On a compacted source it must be ours: nobody shares a numbering there."""
        run = self._run
        identity, self._identity = self._identity, None
        if identity is None:
            identity = await self._slot.identity(self._rules, entry.identity)
        opening = Opening(
            entry,
            identity,
            source_start,
            self._slot.attempt,
            uncounted=run.lane.compacted,
            follows=-1 if run.acked is None else run.acked.source_next,
        )
        openings = self._slot.openings.setdefault(self._rules.target, Openings(self.ledger, self._now_ms))
        won = await openings.open(opening)
        if run.lane.compacted and won.attempt != self._slot.attempt:
            raise ConnectionLost("another attempt opened this generation first")
        return won


def _is_of(entry: LedgerEntry, lane: Lane) -> bool:
    """Whether an entry counts the topics that the plan knows; one that was created again has another generation."""
    return not (
        is_another(entry.source_topic_id, lane.source_topic_id)
        or is_another(entry.target_topic_id, lane.target_topic_id)
    )
