"""Whose turn it is to carry a flow, as one run sees it: it holds the flow, or stands by for the run that does.

That a hold is lost is noticed at once, whatever a renewal waits for, and told. Knows no lanes: `FlowWatch` opens and lets go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from heliograph.control.clock import Clock
from heliograph.control.tenure import Tenure
from heliograph.errors import HeliographError
from heliograph.kafka.ledger import Ledger
from heliograph.model.events import Event, EventKind
from heliograph.replication.generations import Holder

_log = logging.getLogger(__name__)
_RENEWAL_SECONDS = 10.0
_NOTICE_SECONDS = 0.25


def carried_by(holder: Holder) -> str:
    """Which run carries a flow, in words.

    >>> carried_by(Holder("A->B", "north", 7, "run", 0, 0, released=False))
    'A->B is carried by north, process 7, since 1970-01-01 00:00:00 UTC'
    """
    since = datetime.fromtimestamp(holder.since_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"{holder.flow} is carried by {holder.host}, process {holder.process}, since {since}"


class Turns:
    """Of one flow. `tell` is told what a person must know."""

    def __init__(self, me: Holder, takeover_wait_s: float, clock: Clock, tell: Callable[[Event], None]) -> None:
        self._me = me
        self._wait_s = takeover_wait_s
        self._clock = clock
        self._tell = tell
        self._was_held = self._is_lost = False
        self.tenure: Tenure | None = None
        self.standing_by = False
        self.on_renewed: Callable[[], None] = lambda: None
        """Called after each time that the ledger was read, or could not be."""

    @property
    def is_mine(self) -> bool:
        return self.tenure is not None and self.tenure.is_mine

    @property
    def may_work(self) -> bool:
        return self.tenure is not None and self.tenure.may_work

    # -- beginning and waiting --------------------------------------------------------------------------------------

    async def may_begin(self, ledger: Ledger) -> bool:
        """Whether the flow is free, ours, or its holder not heard any more; asked before anything is made on the target."""
        if self.tenure is None:
            holder = (await ledger.refresh_if_there()).holder(self._me.flow)
            if holder is None or holder.released:
                return True
            return await self.join(ledger)
        return self.tenure.may_carry

    async def join(self, ledger: Ledger) -> bool:
        """Claim the flow, or wait for it; whether this run may carry it."""
        if self.tenure is None:
            tenure = Tenure(ledger, self._me, self._wait_s, self._clock)
            tenure.stands_by = True
            await tenure.renew()
            self.tenure = tenure
        return self.tenure.may_carry

    def stand_by(self) -> None:
        if not self.standing_by:
            self.standing_by = True
            _log.info("%s", self.sentence())

    def take_over(self) -> None:
        """It carries the flow from now on."""
        if self.standing_by and self.tenure is not None:
            self.standing_by = False
            other = self.tenure.other
            why = f"process {other.process} on {other.host} is not heard any more" if other else "no other run holds it"
            self._say(EventKind.TAKEN_OVER, f"this run carries the flow: {why}")

    def sentence(self) -> str:
        """Who carries the flow, and what this run waits for."""
        other = self.tenure.carrier if self.tenure is not None else None
        if self.tenure is None or other is None or self.tenure.is_cut_off:
            return f"{self._me.flow}: this run cannot say that it holds the flow, and carries none of its lanes until it can"
        return (
            f"{carried_by(other)}; this run stands by and takes over when that one is not heard for "
            f"{self.tenure.silence_s:g} s (lanes that the target does not guard: {self._wait_s:g} s)"
        )

    @property
    def refusal(self) -> str:
        """Why nothing of the flow is changed by this run; empty where it may be."""
        if not self.standing_by:
            return ""
        other = self.tenure.carrier if self.tenure is not None else None
        if other is None or (self.tenure is not None and self.tenure.is_cut_off):
            return self.sentence()
        return f"{carried_by(other)}; this run stands by: make the change there"

    def view(self) -> dict[str, Any]:
        """Who holds the flow and who waits for it, as values."""
        tenure = self.tenure
        other = tenure.carrier if tenure is not None and not tenure.may_carry else None
        waiting = tenure.waiting if tenure is not None else []
        return {
            "standing_by": self.standing_by,
            "carried_by": None
            if other is None
            else {"host": other.host, "process": other.process, "since_ms": other.since_ms},
            "standbys": [{"host": one.host, "process": one.process, "since_ms": one.since_ms} for one in waiting],
        }

    # -- while it lasts ---------------------------------------------------------------------------------------------

    async def keep(self) -> None:
        """Say again and again that the flow is ours, or that we wait for it."""
        while True:
            await asyncio.sleep(self.tenure.renew_s if self.tenure is not None else _NOTICE_SECONDS)
            await self.hold()

    async def hold(self) -> None:
        """Say so once."""
        try:
            async with asyncio.timeout(_RENEWAL_SECONDS):
                if self.tenure is not None:
                    await self.tenure.renew()
        except (HeliographError, TimeoutError) as error:
            _log.debug("%s: the hold on the flow was not renewed: %s", self._me.flow, error)
        self.on_renewed()

    async def notice(self, on_lost: Callable[[], None], take_turns: Callable[[], None]) -> None:
        """That the hold is lost, by another run's word or by time, and whose turn it is; whatever a renewal waits for."""
        while True:
            await asyncio.sleep(_NOTICE_SECONDS)
            is_mine = self.is_mine
            if self._was_held and not is_mine:
                self._say_lost()
                on_lost()
            elif is_mine and self._is_lost:
                self._is_lost = False
                self._say(EventKind.RECOVERED, "this run holds the flow again")
            self._was_held = is_mine
            take_turns()

    def _say_lost(self) -> None:
        self._is_lost = True
        other = self.tenure.other if self.tenure is not None else None
        if other is not None:
            self._say(EventKind.TAKEN_OVER, f"process {other.process} on {other.host} took the flow over")
        else:
            why = "the hold on the flow could not be renewed: another run may take it over"
            self._say(EventKind.TROUBLE, f"{why}; lanes that the target does not guard wait")

    def _say(self, kind: EventKind, reason: str) -> None:
        self._tell(Event(self._clock.now_ms(), self._me.flow, self._me.flow, kind, reason))

    async def leave(self) -> None:
        """In good order: whoever wants the flow may have it at once."""
        if self.tenure is not None:
            await self.tenure.release()
            await self.tenure.withdraw()
