"""The remote partition where others write too: read once, remembered, and not believed when the target was cut back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from heliograph.errors import ConnectionLost
from heliograph.kafka import target_scan
from heliograph.kafka.target_scan import Found, TargetScan, among_others
from heliograph.kafka.walked import Position
from heliograph.model.lanes import LedgerEntry, Scanned
from heliograph.replication.generations import LedgerBook, decode_entry, encode_entry
from tests.unit.kafka.fetched_log import FetchedLog, fetches
from tests.unit.kafka.lanes import IDENTITY, NOW, entry

__all__ = ["fetches"]

pytestmark = pytest.mark.usefixtures("fetches")
OURS = (IDENTITY.producer_id, IDENTITY.producer_epoch)


class Book:
    """The target's ledger, in memory."""

    def __init__(self, known: LedgerEntry) -> None:
        self.book = LedgerBook()
        self.fails = False
        self._apply(known)

    def _apply(self, known: LedgerEntry) -> None:
        self.book.apply(f"{known.lane.key}/{known.generation}", encode_entry(known), 0)

    async def write(self, records: list[tuple[Any, bytes]], now_ms: int) -> None:
        if self.fails:
            raise ConnectionLost("gone")
        for _, value in records:
            self._apply(decode_entry(value))

    @property
    def scanned(self) -> Scanned | None:
        latest = self.book.latest(entry().lane)
        assert latest is not None
        return latest.scanned


def written(ours: int = 1) -> FetchedLog:
    """Forty records, the last batch of them ours; then some of others'."""
    log = FetchedLog()
    log.add(30)
    log.add(10, producer=(*OURS, 30))
    for _ in range(5):
        log.add(20)
    return log


def last(
    log: FetchedLog, known: LedgerEntry, scan: TargetScan | None = None, note_ms: int = 0, begin: int = 40
) -> Found:
    scan = scan or TargetScan(log)  # type: ignore[arg-type]  # stands in
    log.fetched.clear()
    return asyncio.run(scan.last(log.side(), begin, known, note_ms))


def test_what_was_read_is_remembered_and_checked_but_not_read_again() -> None:
    log = written()
    found = last(log, entry())
    assert (found.last, found.scanned) == (None, Scanned(140, 4))
    log.add(20)
    again = last(log, replace(entry(), scanned=found.scanned))
    assert (again.last, again.known_to, again.scanned) == (None, 140, Scanned(160, 4))
    assert min(log.fetched) == 140


def test_the_last_batch_of_ours_is_remembered_with_what_was_read() -> None:
    log = written()
    log.add(5, producer=(*OURS, 40))
    log.add(20)
    found = last(log, entry())
    assert found.last is not None and found.last.header.base_sequence == 40
    assert found.scanned == Scanned(165, 4, 140)
    log.add(20)
    again = last(log, replace(entry(), scanned=found.scanned))
    assert again.last is not None and again.last.header.base_sequence == 40
    assert again.scanned == Scanned(185, 4, 140)
    assert log.fetched[-1] == 165, "only what came since was read"


def test_a_last_batch_of_ours_is_found_without_reading_what_lies_before() -> None:
    log = written()
    log.add(5, producer=(*OURS, 40))
    found = last(log, entry())
    assert found.last is not None and found.scanned is None
    assert log.fetched == [144]


def test_a_target_that_was_cut_back_since_is_read_again() -> None:
    """An unclean election: ours may lie since then where others' were read before."""
    log = written()
    known = replace(entry(), scanned=last(log, entry()).scanned)
    log.cut_back(40)
    log.add(5, producer=(*OURS, 40), leader_epoch=5)
    for _ in range(6):
        log.add(20, leader_epoch=5)
    found = last(log, known)
    assert found.last is not None and found.last.header.base_offset == 40
    assert found.known_to == -1


def test_a_batch_of_ours_that_is_another_one_now_is_not_believed() -> None:
    """A next generation takes over what was read, and its own number is not there."""
    log = written()
    log.add(5, producer=(*OURS, 40))
    log.add(20)
    known = replace(entry(), scanned=last(log, entry()).scanned)
    later = replace(known, identity=replace(IDENTITY, producer_epoch=IDENTITY.producer_epoch + 1))
    assert last(log, later).last is None


def test_a_scan_that_is_interrupted_is_continued() -> None:
    log = written()
    scan = TargetScan(log)  # type: ignore[arg-type]  # stands in
    whole, log.batches = log.batches, log.batches[:5]

    async def interrupted() -> None:
        reading = asyncio.create_task(scan.last(log.side(), 40, entry()))
        while 100 not in log.fetched:
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

    async def stuck(offset: int) -> None:
        if offset == 100:
            await asyncio.Event().wait()

    fetch = log.fetch

    async def slow(at: Any, offset: int, max_bytes: int) -> Any:
        answer = await fetch(at, offset, max_bytes)
        await stuck(offset)
        return answer

    log.fetch = slow  # type: ignore[method-assign]  # a broker that does not answer
    asyncio.run(interrupted())
    log.fetch, log.batches = fetch, whole  # type: ignore[method-assign]  # it answers again
    assert last(log, entry(), scan).scanned == Scanned(140, 4)
    assert 40 not in log.fetched and 100 in log.fetched


@pytest.mark.parametrize("fails", [False, True])
def test_how_far_it_is_is_noted_on_the_way(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    monkeypatch.setattr(target_scan, "_NOTE_SECONDS", 0.0)
    monkeypatch.setattr(target_scan, "_LOOK_AT_CLOCK_BYTES", 1)
    log, book = written(), Book(entry())
    book.fails = fails
    assert last(log, entry(), TargetScan(log, book), NOW).scanned == Scanned(140, 4)  # type: ignore[arg-type]  # stand in
    assert book.scanned == (None if fails else Scanned(140, 4))


@pytest.mark.parametrize("change", [{"source_next": 101}, {"generation": 1}])
def test_nothing_is_noted_that_the_ledger_knows_better(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    monkeypatch.setattr(target_scan, "_NOTE_SECONDS", 0.0)
    log, book = written(), Book(replace(entry(), **change))
    last(log, entry(), TargetScan(log, book), NOW)  # type: ignore[arg-type]  # stand in
    assert book.scanned is None


def test_a_log_without_epochs_is_not_remembered() -> None:
    log = written()
    log.add(20, leader_epoch=-1)
    assert last(log, entry()).scanned is None


def test_who_else_writes_is_seen_by_the_first_batch() -> None:
    log = written()
    scan = TargetScan(log)  # type: ignore[arg-type]  # stands in
    first = asyncio.run(scan.first_of_others(log.side(), entry()))
    assert first is not None and first.base_offset == 40
    assert log.fetched == [40]
    again = asyncio.run(scan.first_of_others(log.side(), entry(target_next=30)))
    assert again is not None and again.base_offset == 40, "ours lies before it"
    assert asyncio.run(scan.first_of_others(log.side(), entry(target_next=140))) is None


def test_the_batch_before_the_entrys_position_is_ours_or_nothing() -> None:
    log = written()
    scan = TargetScan(log)  # type: ignore[arg-type]  # stands in
    found = asyncio.run(scan.batch_before(log.side().log, entry()))
    assert found is not None and found.header.base_offset == 30
    assert asyncio.run(scan.batch_before(log.side().log, entry(target_next=60))) is None
    assert asyncio.run(scan.batch_before(log.side().log, entry(target_next=0))) is None


def test_the_last_records_of_ours_are_taken_over_others() -> None:
    log = FetchedLog()
    log.add(values=[b"a", b"b"], producer=(*OURS, 0))
    log.add(3)
    log.add(values=[b"c"], producer=(*OURS, 2), attributes=0x08)
    scan = TargetScan(log)  # type: ignore[arg-type]  # stands in
    found = last(log, entry(target_next=0), scan, begin=0).last
    assert found is not None
    run = asyncio.run(scan.run_before(log.side(), found, 64))
    assert [(content[2], append_time) for content, append_time in run] == [(b"a", False), (b"b", False), (b"c", True)]


def test_an_entry_among_others_ends_with_our_last_record() -> None:
    log = written()
    log.add(5, producer=(*OURS, 40))
    log.add(20)
    found = last(log, entry())
    here = FetchedLog(100)
    here.add(5)
    walked = asyncio.run(_first(here))
    moved = among_others(entry(), Position(105, 4, walked), 45, found)
    assert (moved.source_next, moved.target_next, moved.sequence_next) == (105, 145, 45)
    assert (moved.scanned, moved.differs_at, moved.last) == (Scanned(165, 4), 100, (104, 144))
    unsure = among_others(entry(), Position(110, 4, walked), 50, found)
    assert (unsure.source_next, unsure.target_next, unsure.sequence_next) == (100, 40, 40), "not replicated yet"
    assert unsure.scanned == Scanned(165, 4, 140)


async def _first(log: FetchedLog) -> Any:
    from heliograph.kafka.ranges import read_range

    async for seen in read_range(log, log.side().log, log.start, log.end, committed=False):  # type: ignore[arg-type]  # stands in
        return seen
    return None
