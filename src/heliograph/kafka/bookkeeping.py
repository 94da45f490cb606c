"""Writing down how far the lanes of a slot have come: every second into the ledger of each target (P3.6).

Each target has a task of its own: one that does not answer must not keep the positions of the others from being written. A
ledger that stays unwritten is an event, because on a compacted source a kill repeats everything since its last entry (P8).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from heliograph.errors import BrokerRefused, HeliographError
from heliograph.kafka.life import now_ms
from heliograph.model.events import Event, EventKind
from heliograph.replication.generations import EntryKey, encode_entry
from heliograph.wire.error_codes import describe

if TYPE_CHECKING:
    from heliograph.kafka.lane import LaneRun
    from heliograph.kafka.ledger import Ledger
    from heliograph.kafka.life import LaneLife
    from heliograph.kafka.slot import Slot
    from heliograph.model.lanes import LedgerEntry

TELL_SECONDS = 10.0
_WRITE_SECONDS = 5.0
"""After this long newer positions are tried: what is further counts, whichever of the two arrives last."""
_LAST_WRITE_SECONDS = 3.0


class Bookkeeper:
    """Of one slot."""

    def __init__(self, slot: Slot) -> None:
        self._slot = slot
        self._written: dict[str, LedgerEntry] = {}
        self._buried: set[EntryKey] = set()
        self._failing: dict[str, float] = {}
        self._told: set[str] = set()

    async def keep(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for target in self._targets():
                group.create_task(self._keep(target))

    async def close(self) -> None:
        """The last positions; where this fails, the next attempt counts from an older entry."""
        await asyncio.gather(*(self._try(target, _LAST_WRITE_SECONDS) for target in self._targets()))

    def _targets(self) -> set[str]:
        return {rules.target for rules in self._slot.plan.flows.values()}

    def _lives(self, target: str) -> list[LaneLife]:
        return [life for life in self._slot.lives.values() if life.rules.target == target]

    async def _keep(self, target: str) -> None:
        interval = self._slot.plan.settings.ledger_interval_ms / 1000
        due = time.monotonic() + interval
        while True:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due = time.monotonic() + interval
            await self._try(target, _WRITE_SECONDS)

    async def _try(self, target: str, seconds: float) -> None:
        ledger = self._slot.warm.ledger(self._slot.plan.clusters[target])
        try:
            async with asyncio.timeout(seconds):
                await self._write(target, ledger)
        except BrokerRefused as error:
            self._failed(target, f"{error.what}: {describe(error.code)}")
        except (HeliographError, TimeoutError) as error:
            self._failed(target, str(error) or ledger.trouble or "it did not answer in time")
        else:
            self._succeeded(target)

    async def _write(self, target: str, ledger: Ledger) -> None:
        """The positions that moved since they were last written."""
        stirred = [run for run in self._slot.unwritten if self._slot.plan.flows[run.lane.id.flow].target == target]
        self._slot.unwritten.difference_update(stirred)
        try:
            await self._write_down(stirred, ledger)
        except BaseException:
            self._slot.unwritten.update(stirred)
            raise

    async def _write_down(self, runs: list[LaneRun], ledger: Ledger) -> None:
        now = now_ms()
        found = [(run, entry) for run in runs if (entry := run.entry(now)) is not None]
        moved = [entry for run, entry in found if not (self._is_known(entry) or self._is_there(ledger, run, entry))]
        if not moved:
            return
        records: list[tuple[EntryKey, bytes | None]] = [
            (EntryKey(entry.lane, entry.generation), encode_entry(entry)) for entry in moved
        ]
        outlived = [key for entry in moved for key in self._outlived(ledger, entry)]
        await ledger.write([*records, *((key, None) for key in outlived)], now)
        self._buried.update(outlived)
        self._written.update((entry.lane.key, entry) for entry in moved)

    def _is_known(self, entry: LedgerEntry) -> bool:
        """This slot wrote it."""
        written = self._written.get(entry.lane.key)
        return written is not None and (written.generation, written.source_next, written.target_next) == (
            entry.generation,
            entry.source_next,
            entry.target_next,
        )

    def _is_there(self, ledger: Ledger, run: LaneRun, entry: LedgerEntry) -> bool:
        """The slot before wrote it: of thousands of idle lanes that are handed over none is written again.

        On a compacted source a lower entry that a zombie wrote since would be believed after compaction, and repeat (P8).
        """
        latest = ledger.book.latest(entry.lane)
        same = latest is not None and replace(latest, time_ms=entry.time_ms) == entry
        return same and not run.lane.compacted and not self._outlived(ledger, entry)

    def _outlived(self, ledger: Ledger, entry: LedgerEntry) -> list[EntryKey]:
        """P1.1: older generations are taken out of the ledger once a newer one has an acknowledged record."""
        if entry.source_next == entry.source_start:
            return []
        older = [EntryKey(entry.lane, number) for number in ledger.book.generations(entry.lane)]
        return [key for key in older if key.generation < entry.generation and key not in self._buried]

    # -- what a person must know ------------------------------------------------------------------------------------

    def _failed(self, target: str, why: str) -> None:
        since = self._failing.setdefault(target, time.monotonic())
        if time.monotonic() - since >= TELL_SECONDS and target not in self._told:
            self._told.add(target)
            reason = f"the ledger on {target} has not been written for {TELL_SECONDS:.0f} s: {why}"
            cure = "records go on; killed now, a lane of a compacted topic would repeat what it copied since"
            self._tell(target, EventKind.LEDGER, reason, cure)

    def _succeeded(self, target: str) -> None:
        self._failing.pop(target, None)
        if target in self._told:
            self._told.discard(target)
            self._tell(target, EventKind.RECOVERED, f"the ledger on {target} is written again")

    def _tell(self, target: str, kind: EventKind, reason: str, what_to_do: str = "") -> None:
        """Once for each flow, with whichever lane's report goes first."""
        speakers = {life.rules.flow: life for life in reversed(self._lives(target))}
        for flow, life in speakers.items():
            life.pass_on(Event(now_ms(), flow, flow, kind, reason, what_to_do))
