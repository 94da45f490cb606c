"""Generations that many lanes open at the same moment: what the ledger is asked for does not grow with the lanes (P8)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

import pytest

from heliograph.errors import BrokerRefused, ConnectionLost
from heliograph.kafka.claims import Opening, Openings
from heliograph.kafka.ledger import Ledger
from heliograph.model.lanes import Identity, LaneId, LedgerEntry
from heliograph.replication.generations import LedgerBook
from heliograph.replication.ledger_keys import ClaimKey, LedgerKey
from tests.unit.kafka.lanes import NOW, entry

MANY = 1000
FRESH = Identity(4711, 3)


class MemoryLedger:
    """A ledger that counts what it is asked for; `broken` is raised by the next writes, `refused` by those of one lane's claim."""

    def __init__(self) -> None:
        self.book = LedgerBook()
        self.offset = self.writes = self.readings = 0
        self.broken: list[Exception] = []
        self.refused: LaneId | None = None

    async def refresh(self) -> LedgerBook:
        self.readings += 1
        await asyncio.sleep(0)
        return self.book

    async def write(self, records: Iterable[tuple[LedgerKey, bytes | None]], now_ms: int) -> None:
        del now_ms
        self.writes += 1
        await asyncio.sleep(0)
        wanted = list(records)
        if self.broken:
            raise self.broken.pop()
        if any(isinstance(key, ClaimKey) and key.lane == self.refused for key, _ in wanted):
            raise BrokerRefused(10, "writing the ledger")
        for key, value in wanted:
            self.offset += 1
            self.book.apply(str(key), value, self.offset)


def opening(number: int, attempt: str = "mine") -> Opening:
    known = replace(entry(), lane=LaneId("A->B", "orders", number))
    return Opening(known, FRESH, known.source_next, attempt, uncounted=True)


def openings(ledger: MemoryLedger) -> Openings:
    return Openings(cast(Ledger, ledger), lambda: NOW)


def opened_by(lanes: int) -> MemoryLedger:
    """The ledger after so many lanes opened a generation at the same moment."""
    ledger = MemoryLedger()

    async def play() -> list[LedgerEntry]:
        together = openings(ledger)
        return await asyncio.gather(*(together.open(opening(number)) for number in range(lanes)))

    won = asyncio.run(play())
    assert [(one.lane.partition, one.generation, one.attempt) for one in won] == [
        (number, 1, "mine") for number in range(lanes)
    ]
    assert all(ledger.book.newest(one.lane) == 1 and not ledger.book.claims(one.lane, 1) for one in won)
    return ledger


def test_a_thousand_lanes_cost_the_ledger_as_much_as_two() -> None:
    few, many = opened_by(2), opened_by(MANY)
    assert (many.writes, many.readings) == (few.writes, few.readings)


def test_the_book_is_looked_through_once_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    inner = LedgerBook.producers
    monkeypatch.setattr(LedgerBook, "producers", lambda book, flow: (looks.append(flow), inner(book, flow))[1])
    opened_by(MANY)
    assert looks == ["A->B"], "each look passes over every lane of the flow"


def test_who_asks_while_a_round_is_under_way_shares_the_next() -> None:
    ledger = MemoryLedger()

    async def play() -> None:
        together = openings(ledger)
        first = asyncio.create_task(together.open(opening(0)))
        while not ledger.writes:
            await asyncio.sleep(0.001)
        alone = MemoryLedger()
        await asyncio.gather(first, *(together.open(opening(number)) for number in range(1, 50)))
        await openings(alone).open(opening(0))
        assert ledger.readings == 2 * alone.readings

    asyncio.run(play())


def test_two_that_want_the_same_lane_get_one_numbering_each() -> None:
    ledger = MemoryLedger()

    async def play() -> list[LedgerEntry]:
        together = openings(ledger)
        return await asyncio.gather(together.open(opening(0, "one")), together.open(opening(0, "two")))

    first, second = asyncio.run(play())
    assert (first.generation, first.attempt) == (1, "one")
    assert (second.generation, second.attempt) == (1, "one"), "told that another attempt was first"


def test_a_lane_that_left_before_the_round_began_leaves_no_trace() -> None:
    ledger = MemoryLedger()

    async def play() -> None:
        together = openings(ledger)
        leaving = asyncio.create_task(together.open(opening(0)))
        staying = asyncio.create_task(together.open(opening(1)))
        await asyncio.sleep(0)
        leaving.cancel()
        await staying
        assert leaving.cancelled()

    asyncio.run(play())
    assert ledger.book.lanes() == (opening(1).entry.lane,)


def test_a_ledger_out_of_reach_is_everybodys_trouble_and_the_next_try_is_as_ever() -> None:
    ledger = MemoryLedger()
    ledger.broken.append(ConnectionLost("closed by the broker"))

    async def play() -> None:
        together = openings(ledger)
        wanted = [together.open(opening(number)) for number in range(3)]
        found = await asyncio.gather(*wanted, return_exceptions=True)
        assert [type(one) for one in found] == [ConnectionLost] * 3
        assert (await together.open(opening(0))).generation == 1

    asyncio.run(play())


def test_a_record_that_is_refused_is_the_trouble_of_its_lane_alone() -> None:
    ledger = MemoryLedger()
    ledger.refused = opening(1).entry.lane

    async def play() -> None:
        together = openings(ledger)
        wanted = [together.open(opening(number)) for number in range(3)]
        first, second, third = await asyncio.gather(*wanted, return_exceptions=True)
        assert isinstance(second, BrokerRefused)
        assert isinstance(first, LedgerEntry)
        assert isinstance(third, LedgerEntry)

    asyncio.run(play())


def test_a_closed_one_writes_no_more() -> None:
    ledger = MemoryLedger()

    async def play() -> None:
        together = openings(ledger)
        waiting = asyncio.create_task(together.open(opening(0)))
        await asyncio.sleep(0)
        together.close()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.sleep(0.01)

    asyncio.run(play())
    assert ledger.writes == 0
    openings(ledger).close()
