"""Tells a person, once, of records in the ledger that nobody can use: unreadable ones, and claims of lanes that are not carried.

The driver reads the ledger every few seconds anyway; tasks read it too and pass over the same records without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from heliograph.kafka.ledger import Ledger
from heliograph.model.events import Event, EventKind
from heliograph.model.lanes import LaneId
from heliograph.replication.ledger_keys import ClaimKey


class LedgerWatch:
    """Of one flow; flows with the same target share a ledger, and each of its records is told by one of them."""

    def __init__(
        self, flow: str, ledger: Callable[[], Ledger], tell: Callable[[Event], None], now_ms: Callable[[], int]
    ) -> None:
        self._flow = flow
        self._ledger = ledger
        self._tell = tell
        self._now_ms = now_ms
        self._unknown: set[ClaimKey] = set()

    def look(self, lanes: Collection[LaneId]) -> bool:
        """Tell what is new. Whether a lane of the flow is concerned: its opening refuses it, and says why."""
        concerned = False
        for found in self._ledger().strange.take_untold(self._flow):
            if found.lane is not None and found.lane in lanes:
                concerned = True
            else:
                self._say(found.key, str(found), found.what_to_do)
        return concerned

    def look_at_claims(self, lanes: Collection[LaneId]) -> None:
        """Claims of lanes that the flow does not carry and never did: somebody gave up while the topic was taken in."""
        book = self._ledger().book
        for lane in book.lanes():
            if lane.flow != self._flow or lane in lanes or book.latest(lane) is not None:
                continue
            for key in book.claim_keys(lane):
                if key not in self._unknown:
                    self._unknown.add(key)
                    reason = f"the ledger's record '{key}' is a claim of a partition that this flow does not carry"
                    self._say(str(key), reason, "it is passed over")

    def _say(self, key: str, reason: str, what_to_do: str) -> None:
        self._tell(Event(self._now_ms(), self._flow, key, EventKind.LEDGER, reason, what_to_do))
