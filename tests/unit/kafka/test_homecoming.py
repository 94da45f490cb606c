"""Whose a producer is: decided only with the ledger read, and then for good."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from heliograph.errors import BrokerRefused, ConnectionLost, HeliographError
from heliograph.kafka import homecoming
from heliograph.kafka.homecoming import Home
from heliograph.kafka.ledger import Ledger
from heliograph.replication.generations import LedgerBook
from heliograph.replication.ledger_keys import PRODUCER_NOTE, NoteKey


class FakeLedger:
    """A ledger that says what it is told to say, and counts how often it is asked."""

    def __init__(self, *producers: int) -> None:
        self.book = LedgerBook()
        self.asked = 0
        self.topic_id = "1"
        self.fault: HeliographError | None = None
        self.note(*producers)

    def note(self, *producers: int) -> None:
        for number in producers:
            self.book.apply(str(NoteKey("B->A", PRODUCER_NOTE, str(number))), b"{}", 0)

    async def refresh_of(self, topic_id: str) -> LedgerBook:
        if topic_id != self.topic_id:
            raise ConnectionLost("is not the one that this flow began with")
        return await self.refresh()

    async def refresh(self) -> LedgerBook:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return self.book


def home_of(ledger: FakeLedger) -> Home:
    return Home(cast(Ledger, ledger), "B->A")


def test_the_ledger_is_read_on_for_every_id_that_is_not_known_and_once_only() -> None:
    ledger = FakeLedger(7)
    home = home_of(ledger)

    async def check() -> None:
        await home.learn([-1])
        assert ledger.asked == 0, "a batch without a producer is an application's"
        await home.learn([7, 8])
        await home.learn([7, 8, -1])
        assert ledger.asked == 1
        assert (home.is_theirs(7), home.is_theirs(8), home.is_theirs(-1)) == (True, False, False)
        ledger.note(9)
        await home.learn([9])
        assert ledger.asked == 2
        assert home.is_theirs(9)

    asyncio.run(check())


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (BrokerRefused(29, "cluster A: the ledger (this needs READ)"), "cluster A: the ledger (this needs READ): "),
        (ConnectionLost("the broker is gone"), "the broker is gone"),
    ],
)
def test_nothing_is_decided_while_the_ledger_cannot_be_read(fault: HeliographError, why: str) -> None:
    ledger = FakeLedger(7)
    home = home_of(ledger)

    async def check() -> None:
        ledger.fault = fault
        with pytest.raises(ConnectionLost, match="cannot be told which records B->A wrote") as caught:
            await home.learn([7])
        assert why in str(caught.value)
        ledger.fault = None
        await home.learn([7])
        assert home.is_theirs(7)

    asyncio.run(check())


def test_by_a_ledger_that_was_made_anew_nothing_is_decided_and_what_was_known_stays_known() -> None:
    ledger = FakeLedger(7)
    home = Home(cast(Ledger, ledger), "B->A", "1")

    async def check() -> None:
        await home.learn([7, 8])
        ledger.topic_id, ledger.book = "2", LedgerBook()
        await home.learn([7, 8])
        assert (home.is_theirs(7), home.is_theirs(8)) == (True, False)
        with pytest.raises(ConnectionLost, match="cannot be told which records B->A wrote: is not the one"):
            await home.learn([7, 8, 9])

    asyncio.run(check())


def test_the_memory_of_other_producers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homecoming, "_MOST_OTHERS", 10)
    ledger = FakeLedger(7)
    home = home_of(ledger)

    async def check() -> None:
        for number in range(100, 130):
            await home.learn([number])
        assert len(home._others) <= 11
        await home.learn([7])
        assert home.is_theirs(7)
        assert not home.is_theirs(101)

    asyncio.run(check())
