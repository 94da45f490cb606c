"""Which batches of a source came home: those that the flow in the other direction wrote there.

Where two flows keep names, what one of them wrote lies among what applications wrote, and only the producer id in its header
tells it apart. That flow's ledger, on this flow's source, names every id under which it writes, and names it *before* the first
append under it (kafka/claims.py). So whoever meets an id that is not known reads the ledger on to its end, and then knows for
good whose it is. While the ledger cannot be read, or is another one than the flow began with, nothing is decided: one that
was made anew knows nothing of what was written before.
"""

from __future__ import annotations

from collections.abc import Iterable

from heliograph.errors import BrokerRefused, ConnectionLost, HeliographError
from heliograph.kafka.ledger import Ledger
from heliograph.wire.error_codes import describe

_NO_PRODUCER = -1
_MOST_OTHERS = 200_000


class HomeNotKnown(ConnectionLost):
    """Whose records lie in the source cannot be told; `reason` says why."""

    def __init__(self, flow: str, why: str) -> None:
        self.reason = f"it cannot be told which records {flow} wrote: {why}"
        super().__init__(f"waiting, because {self.reason}")


class Home:
    """The producer ids of one flow, as its ledger names them; what was found out once stays true."""

    def __init__(self, ledger: Ledger, flow: str, trusted: str = "") -> None:
        """`trusted` is the topic id of the ledger that is believed; empty: whichever is there."""
        self._ledger = ledger
        self._flow = flow
        self._trusted = trusted
        self._theirs: set[int] = set()
        self._others: set[int] = {_NO_PRODUCER}

    def is_theirs(self, producer_id: int) -> bool:
        """Of an id that was learned."""
        return producer_id in self._theirs

    async def learn(self, producer_ids: Iterable[int]) -> None:
        """Find out whose these ids are; ConnectionLost while that cannot be known."""
        unknown = {number for number in producer_ids if number not in self._theirs and number not in self._others}
        if not unknown:
            return
        try:
            book = await (self._ledger.refresh_of(self._trusted) if self._trusted else self._ledger.refresh())
        except BrokerRefused as error:
            raise self._not_known(f"{error.what}: {describe(error.code)}") from error
        except HeliographError as error:
            raise self._not_known(str(error)) from error
        self._theirs |= book.producers(self._flow)
        if len(self._others) > _MOST_OTHERS:
            self._others = {_NO_PRODUCER}
        self._others |= unknown - self._theirs

    def _not_known(self, why: str) -> HomeNotKnown:
        return HomeNotKnown(self._flow, why)
