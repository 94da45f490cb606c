"""Who holds a flow and who waits for it: one run carries it at a time, and another takes over when that one is gone.

A run claims the flow in the ledger, and holds it if no other live run does. It says so again every few seconds. A run that
waits writes a note of itself beside it. A holder that is not heard for a few seconds may be raced on lanes that the target
guards; one that is not heard for the take-over time is known dead, and superseded (P5, decision 0070).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from heliograph.control.clock import Clock
from heliograph.control.machine import is_gone
from heliograph.kafka.ledger import Ledger
from heliograph.model.takeover import hold_s
from heliograph.replication.generations import Holder, LedgerBook, encode_holder
from heliograph.replication.ledger_keys import HolderKey, NoteKey
from heliograph.replication.standbys import STANDBY_NOTE, Standby, encode_standby, standbys

SILENCE_SECONDS = 7.0
"""After so long without a word of the holder, lanes that the target guards are carried by who waits."""
YIELD_SECONDS = 5.0
"""Who carries, cannot say so for so long, and knows that somebody waits, stops carrying: before the other one begins."""
_RENEW_SECONDS = 2.0
_RENEW_WATCHED_SECONDS = 1.0
_RENEW_AT_MOST_SECONDS = 0.25
_DEAF_SECONDS = 10.0
"""Who could not read the ledger for so long does not know whether the holder was silent."""
_PRESENT_SECONDS = 15.0
_FORGET_SECONDS = 600.0


class Tenure:
    """One run's hold on one flow, or its wait for it. Another host's clock is never compared with ours."""

    def __init__(
        self,
        ledger: Ledger,
        me: Holder,
        takeover_wait_s: float,
        clock: Clock,
        is_gone: Callable[[str, int], bool] = is_gone,
    ) -> None:
        self._ledger = ledger
        self._me = me
        self._wait_s = takeover_wait_s
        self._clock = clock
        self._is_gone = is_gone
        self._seen: tuple[str, int] = ("", 0)
        self._seen_at = self._read_at = self._looked_at = clock.monotonic()
        self._mine = False
        self._renewed_at = clock.awake_or_not()
        self._other_is_gone = False
        self._notes: dict[str, tuple[bytes, float]] = {}
        """By run: the note of one that waits, and since when it is this."""
        self._noted = self._carries = False
        self.other: Holder | None = None
        self.stands_by = False
        """Shown to others while it waits."""

    # -- what may be done -------------------------------------------------------------------------------------------

    @property
    def is_mine(self) -> bool:
        """We hold it, and said so lately enough that whatever was sent is answered before anyone can take it over."""
        return self._mine and self._unrenewed_s() < hold_s(self._wait_s)

    @property
    def may_work(self) -> bool:
        """We hold it, and nobody else can yet: what is done around the records is ours to do."""
        return self._mine and self._unrenewed_s() < self._wait_s * 3 / 4

    @property
    def may_carry(self) -> bool:
        """Lanes that the target guards: the flow is ours, or its holder is not heard any more."""
        if self.waiting and self.is_cut_off:
            return False
        if self._mine:
            return True
        is_silent = self._other_is_gone or self.silent_s >= self.silence_s
        return self.other is not None and is_silent and self._is_next()

    @property
    def is_cut_off(self) -> bool:
        """It could not say for a while that it holds the flow, or waits for it."""
        return self._unrenewed_s() >= min(YIELD_SECONDS, hold_s(self._wait_s))

    @property
    def carrier(self) -> Holder | None:
        """The other run that carries the flow: its holder, or who took over and does not hold it yet."""
        racing = next((one for one in self._rivals() if one.carries), None)
        if self.other is None or racing is None:
            return self.other
        return replace(self.other, host=racing.host, process=racing.process, since_ms=racing.since_ms)

    def _is_next(self) -> bool:
        """Of several that wait for the same holder one takes over, and all of them come to the same answer."""
        mine = self._note().rank
        return not self.stands_by or all(mine < rival.rank for rival in self._rivals())

    def _rivals(self) -> list[Standby]:
        heard = standbys(self._heard_within(self.silence_s))
        return [one for one in heard if not self._is_gone(one.machine, one.process)]

    @property
    def silence_s(self) -> float:
        """How long the holder must be silent before its guarded lanes are carried."""
        return min(SILENCE_SECONDS, self._wait_s)

    @property
    def silent_s(self) -> float:
        """For how long the holder has been silent while we could have heard it."""
        return self._read_at - self._seen_at

    @property
    def waiting(self) -> list[Standby]:
        """Who else waits for the flow, and was heard lately; who cannot read the ledger does not forget them."""
        return standbys(self._heard_within(_PRESENT_SECONDS))

    def _heard_within(self, seconds: float) -> dict[str, bytes]:
        return {run: note for run, (note, at) in self._notes.items() if self._looked_at - at < seconds}

    @property
    def renew_s(self) -> float:
        """How often to say so again: often enough that one slow answer does not matter."""
        often = _RENEW_SECONDS if self._mine and not self.waiting else _RENEW_WATCHED_SECONDS
        return max(_RENEW_AT_MOST_SECONDS, min(often, self._wait_s / 8))

    def _unrenewed_s(self) -> float:
        return self._clock.awake_or_not() - self._renewed_at

    # -- the ledger -------------------------------------------------------------------------------------------------

    async def renew(self) -> None:
        """Claim, say again that we hold it, or that we wait for it; called every `renew_s`."""
        book = await self._ledger.refresh()
        self._look_around(book)
        holder = book.holder(self._me.flow)
        if holder is not None and holder.run != self._me.run and not holder.released:
            self._mine = False
            self._listen(holder)
            if self.silent_s < self._wait_s or not self._is_next():
                await self._wait_visibly()
                return
            # Kept in every later record: after compaction it is the only one that names whom we took over from.
            self._me = replace(self._me, supersedes=holder.run)
            await self._write(held=False)
        elif holder is None or holder.released:
            await self._write(held=False)
        if holder is None or holder.run != self._me.run or holder.released:
            # Whether our claim was the first.
            book = await self._ledger.refresh()
            holder = book.holder(self._me.flow)
        self._mine = holder is not None and holder.run == self._me.run
        self._carries = False
        if self._mine:
            self.other = None
            asked_at = self._clock.awake_or_not()  # others see it sooner than we know that it is written
            await self._write(held=True)
            self._renewed_at = asked_at
        elif holder is not None:
            self._listen(holder)

    def _listen(self, holder: Holder) -> None:
        now = self._clock.monotonic()
        heard = (holder.run, holder.renewed_ms)
        if heard != self._seen or now - self._read_at > _DEAF_SECONDS:
            self._seen, self._seen_at = heard, now
        self._read_at = now
        self.other = holder
        self._other_is_gone = self._is_gone(holder.machine, holder.process)

    def _look_around(self, book: LedgerBook) -> None:
        self._looked_at = now = self._clock.monotonic()
        found = book.notes(self._me.flow, STANDBY_NOTE)
        found.pop(self._me.run, None)
        known = self._notes
        self._notes = {
            run: known[run] if run in known and known[run][0] == note else (note, now) for run, note in found.items()
        }

    async def _wait_visibly(self) -> None:
        if self.stands_by:
            asked_at = self._clock.awake_or_not()
            self._carries = self.may_carry
            key = self._note_key(self._me.run)
            await self._ledger.write([(key, encode_standby(self._note()))], self._clock.now_ms())
            self._noted = True
            self._renewed_at = asked_at

    def _note(self) -> Standby:
        me = self._me
        return Standby(me.run, me.host, me.process, me.since_ms, self._clock.now_ms(), self._carries, me.machine)

    async def _write(self, held: bool) -> None:
        """With it go the notes that are not true any more: our own, and those of runs that have ended long ago."""
        now = self._clock.monotonic()
        over = [run for run, (_, at) in self._notes.items() if now - at > _FORGET_SECONDS] if held else []
        over += [self._me.run] if self._noted else []
        record = replace(self._me, renewed_ms=self._clock.now_ms(), held=held)
        gone = [(self._note_key(run), None) for run in over]
        await self._ledger.write([(self._key(), encode_holder(record)), *gone], self._clock.now_ms())
        self._noted = False

    def _key(self) -> HolderKey:
        return HolderKey(self._me.flow, self._me.run)

    def _note_key(self, run: str) -> NoteKey:
        return NoteKey(self._me.flow, STANDBY_NOTE, run)

    async def release(self) -> None:
        """We leave in good order: the next run need not wait."""
        if self._mine:
            record = replace(self._me, renewed_ms=self._clock.now_ms(), released=True)
            await self._ledger.write([(self._key(), encode_holder(record))], self._clock.now_ms())

    async def withdraw(self) -> None:
        """We do not wait any more."""
        if self._noted:
            await self._ledger.write([(self._note_key(self._me.run), None)], self._clock.now_ms())
            self._noted = False
