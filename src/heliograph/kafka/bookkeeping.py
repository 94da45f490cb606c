"""Writing down how far the lanes of a slot have come: every second into the ledger of each target (P3.6).

Each target has a task of its own: one that does not answer must not keep the positions of the others from being written. A
ledger that stays unwritten is an event. On a compacted source a kill repeats everything since its last entry (P8), so lanes of
compacted topics wait until it is written again.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from heliograph.errors import BrokerRefused, HeliographError
from heliograph.kafka.life import now_ms
from heliograph.kafka.mishaps import described
from heliograph.model.events import Event, EventKind
from heliograph.replication.generations import encode_entry
from heliograph.replication.ledger_keys import ClaimKey, EntryKey
from heliograph.wire.error_codes import describe

if TYPE_CHECKING:
    from heliograph.kafka.lane import LaneRun
    from heliograph.kafka.ledger import Ledger
    from heliograph.kafka.life import LaneLife
    from heliograph.kafka.slot import Slot
    from heliograph.model.lanes import LedgerEntry

_log = logging.getLogger(__name__)
TELL_SECONDS = 10.0
WAITING_FOR_LEDGER = (
    "lanes of compacted topics wait: killed now, they would repeat what they copied since; all others continue"
)
CLOCK_MS = 600_000
"""A sixth of the margin with which the target's memory is trusted (replication/attach.py)."""
_WRITE_SECONDS = 5.0
"""After this long newer positions are tried: what is further counts, whichever of the two arrives last."""
_LAST_WRITE_SECONDS = 3.0


class Bookkeeper:
    """Of one slot."""

    def __init__(self, slot: Slot) -> None:
        self._slot = slot
        self._written: dict[str, LedgerEntry] = {}
        self._buried: set[EntryKey | ClaimKey] = set()
        self._failing: dict[str, float] = {}
        self._told: set[str] = set()
        self._slow: set[str] = set()

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
        except Exception as error:  # noqa: BLE001  an outermost loop: a fault of ours must not end the lanes
            if target not in self._failing:
                _log.error("writing the ledger on %s", target, exc_info=error)
            self._failed(target, f"an error that was not foreseen: {described(error)}")
        else:
            self._succeeded(target)
            self._compare_clocks(target, ledger)

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
        return written is not None and (
            written.generation,
            written.source_next,
            written.target_next,
            written.scanned,
        ) == (entry.generation, entry.source_next, entry.target_next, entry.scanned)

    def _is_there(self, ledger: Ledger, run: LaneRun, entry: LedgerEntry) -> bool:
        """The slot before wrote it: of thousands of idle lanes that are handed over none is written again.

        On a compacted source a lower entry that a zombie wrote since would be believed after compaction, and repeat (P8).
        """
        latest = ledger.book.latest(entry.lane)
        same = latest is not None and replace(latest, time_ms=entry.time_ms) == entry
        return same and not run.lane.compacted and not self._outlived(ledger, entry)

    def _outlived(self, ledger: Ledger, entry: LedgerEntry) -> list[EntryKey | ClaimKey]:
        """P1.1: older generations leave the ledger once a newer one has an acknowledged record, and their claims with them."""
        if not entry.has_written:
            return []
        numbers = (number for number in ledger.book.generations(entry.lane) if number < entry.generation)
        older: list[EntryKey | ClaimKey] = [EntryKey(entry.lane, number) for number in numbers]
        older += ledger.book.moot_claims(entry.lane, entry.generation)
        return [key for key in older if key not in self._buried]

    # -- what a person must know ------------------------------------------------------------------------------------

    def late(self, target: str) -> str:
        """Why lanes that cannot be counted after a kill must wait: their positions are written nowhere. Empty: they are."""
        return f"the ledger on {target} has not been written for {TELL_SECONDS:.0f} s" if target in self._told else ""

    def _failed(self, target: str, why: str) -> None:
        since = self._failing.setdefault(target, time.monotonic())
        if time.monotonic() - since >= TELL_SECONDS and target not in self._told:
            self._told.add(target)
            late = self.late(target)
            for life in self._lives(target):
                life.wait_for_ledger(late)
            self._tell(target, EventKind.LEDGER, f"{late}: {why}", WAITING_FOR_LEDGER)

    def _compare_clocks(self, target: str, ledger: Ledger) -> None:
        if ledger.behind_ms > CLOCK_MS and target not in self._slow:
            self._slow.add(target)
            minutes = CLOCK_MS // 60_000
            reason = f"the clock of {socket.gethostname()} is more than {minutes} minutes behind that of the brokers of {target}"
            self._tell(
                target, EventKind.TROUBLE, reason, "set it; until then lanes count as forgotten by the target sooner"
            )

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
