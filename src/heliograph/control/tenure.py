"""Who holds a flow: told to people by `status`, and needed by the lanes that the target does not guard (P5.2).

A run claims the flow in the ledger, and holds it if no other live run does. It says so again every few seconds; a holder that
is not heard for the take-over time is known dead. Guarded lanes never wait for this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from heliograph.kafka.ledger import Ledger
from heliograph.replication.generations import Holder, HolderKey, encode_holder


class Tenure:
    """One run's hold on one flow. `clock` is monotonic: another host's clock is never compared with ours."""

    def __init__(
        self, ledger: Ledger, me: Holder, takeover_wait_s: float, clock: Callable[[], float], now_ms: Callable[[], int]
    ) -> None:
        self._ledger = ledger
        self._me = me
        self._wait_s = takeover_wait_s
        self._clock = clock
        self._now_ms = now_ms
        self._seen: tuple[str, int] = ("", 0)
        self._seen_at = clock()
        self._mine = False
        self._renewed_at = clock()
        self.other: Holder | None = None

    @property
    def is_mine(self) -> bool:
        """We hold it, and said so lately enough that nobody can have taken it over."""
        return self._mine and self._clock() - self._renewed_at < self._wait_s / 2

    async def renew(self) -> None:
        """Claim, or say again that we hold it; called every few seconds."""
        book = await self._ledger.refresh()
        holder = book.holder(self._me.flow)
        if holder is not None and holder.run != self._me.run and not holder.released:
            self._mine = False
            self.other = holder
            if (holder.run, holder.renewed_ms) != self._seen:
                self._seen = (holder.run, holder.renewed_ms)
                self._seen_at = self._clock()
            if self._clock() - self._seen_at < self._wait_s:
                return
            # Kept in every later record: after compaction it is the only one that names whom we took over from.
            self._me = replace(self._me, supersedes=holder.run)
            await self._write(held=False)
        elif holder is None or holder.released:
            await self._write(held=False)
        book = await self._ledger.refresh()
        holder = book.holder(self._me.flow)
        self._mine = holder is not None and holder.run == self._me.run
        if self._mine:
            self.other = None
            await self._write(held=True)
            self._renewed_at = self._clock()

    async def _write(self, held: bool) -> None:
        record = replace(self._me, renewed_ms=self._now_ms(), held=held)
        await self._ledger.write([(HolderKey(self._me.flow, self._me.run), encode_holder(record))], self._now_ms())

    async def release(self) -> None:
        """We leave in good order: the next run need not wait."""
        if self._mine:
            record = replace(self._me, renewed_ms=self._now_ms(), released=True)
            await self._ledger.write([(HolderKey(self._me.flow, self._me.run), encode_holder(record))], self._now_ms())
