"""What a person is told of records in the ledger that nobody can use: once, with their keys."""

from __future__ import annotations

from typing import Any, cast

from heliograph.control.ledger_watch import LedgerWatch
from heliograph.kafka.ledger import Ledger
from heliograph.model.events import Event
from heliograph.model.lanes import LaneId
from heliograph.replication.generations import LedgerBook, encode_entry
from heliograph.replication.ledger_keys import ClaimKey, EntryKey
from heliograph.replication.strange_records import StrangeRecords
from tests.unit.kafka.lanes import entry

LANE = entry().lane
GHOST = LaneId("A->B", "ghost", 0)


class Read:
    """A ledger as far as it was read."""

    def __init__(self) -> None:
        self.book, self.strange = LedgerBook(), StrangeRecords()

    def fold(self, key: object, value: bytes) -> None:
        name = key if isinstance(key, bytes) else str(key).encode()
        self.strange.fold(self.book, name, value, 1)


def watch(read: Read, told: list[Event], flow: str = "A->B") -> LedgerWatch:
    return LedgerWatch(flow, lambda: cast(Ledger, cast(Any, read)), told.append, lambda: 5)


def test_a_foreign_record_is_told_once_by_one_flow_and_one_of_a_lane_makes_its_flow_look() -> None:
    read, told = Read(), list[Event]()
    one, other = watch(read, told), watch(read, told, "C->B")
    read.fold(b"foreign", b"x")
    assert [watching.look({LANE}) for watching in (one, other, one)] == [False] * 3
    [event] = told
    assert (event.flow, event.subject, event.kind) == ("A->B", "foreign", "ledger")
    read.fold(EntryKey(LANE, 0), b"{")
    assert other.look(set()) is False and one.look({LANE}) is True and one.look({LANE}) is False
    read.fold(EntryKey(GHOST, 0), b"{")
    assert one.look({LANE}) is False
    assert [event.subject for event in told] == ["foreign", str(EntryKey(GHOST, 0))]


def test_each_claim_of_a_lane_that_the_flow_does_not_carry_is_told_once_with_its_key() -> None:
    read, told = Read(), list[Event]()
    read.fold(ClaimKey(LANE, 0, "a"), encode_entry(entry()))
    read.fold(ClaimKey(GHOST, 0, "b"), encode_entry(entry()))
    read.fold(ClaimKey(LaneId("C->B", "ghost", 0), 0, "c"), encode_entry(entry()))
    read.fold(EntryKey(LaneId("A->B", "once carried", 0), 0), encode_entry(entry()))
    one = watch(read, told)
    one.look_at_claims({LANE})
    one.look_at_claims({LANE})
    key = str(ClaimKey(GHOST, 0, "b"))
    reason = f"the ledger's record '{key}' is a claim of a partition that this flow does not carry"
    assert [(event.subject, event.reason) for event in told] == [(key, reason)]
    read.fold(ClaimKey(GHOST, 0, "another's"), encode_entry(entry()))
    one.look_at_claims({LANE})
    assert [event.subject for event in told] == [key, str(ClaimKey(GHOST, 0, "another's"))]
