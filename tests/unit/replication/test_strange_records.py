"""One record of the ledger that cannot be read costs one lane at most, and is named once."""

from __future__ import annotations

import json

import pytest

from heliograph.model.lanes import LaneId
from heliograph.replication.generations import Holder, LedgerBook, encode_entry, encode_holder
from heliograph.replication.ledger_keys import EntryKey, HolderKey
from heliograph.replication.strange_records import StrangeRecords
from tests.unit.kafka.lanes import entry

LANE = entry().lane
KEY = str(EntryKey(LANE, 0)).encode()
HOLDER = Holder("A->B", "host", 7, "run", 1, 2, released=False, held=True)
FUTURE = json.dumps({"version": 99}).encode()


def told(strange: StrangeRecords, flow: str = "A->B") -> list[str]:
    return [str(found) for found in strange.take_untold(flow)]


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"\xff\xfe key", b"x", r"record '\xff\xfe key' cannot be read: its key is not UTF-8"),
        (b"foreign", b"x", "record 'foreign' cannot be read: its key is of no kind that is known here"),
        (KEY, encode_entry(entry())[:-20], "JSONDecodeError"),
        (KEY, b"[" * 100_000, "RecursionError"),
        (KEY, encode_entry(entry()).replace(b'"time_ms":0', b'"time_ms":1e999'), "OverflowError"),
        (KEY, FUTURE, "the ledger holds an entry of version 99, this Heliograph reads version 1"),
        (KEY + b"#claim", b"[]", "not a JSON object"),
        (b"holder/A->B#other", b"{", "JSONDecodeError"),
    ],
)
def test_a_strange_record_is_passed_over_and_named_once(key: bytes, value: bytes, reason: str) -> None:
    book, strange = LedgerBook(), StrangeRecords()
    other = EntryKey(LaneId("A->B", "payments", 1), 0)
    strange.fold(book, key, value, 1)
    strange.fold(book, str(HolderKey("A->B", "run")).encode(), encode_holder(HOLDER), 2)
    strange.fold(book, str(other).encode(), encode_entry(entry()), 3)
    strange.fold(book, key, value, 4)
    assert book.holder("A->B") == HOLDER, "holds are renewed"
    assert book.latest(other.lane) is not None and strange.fault(other.lane, [0]) is None
    [sentence] = told(strange)
    assert reason in sentence and key.decode(errors="backslashreplace") in sentence
    assert told(strange) == []


def test_a_lane_is_concerned_by_what_may_be_newer_than_what_can_be_read() -> None:
    book, strange = LedgerBook(), StrangeRecords()
    assert strange.fault(LANE, []) is None
    for key in ("A->B/orders/3/1", "A->B/orders/3/2#claim", "note/kind/A->B#x", "holder/A->B#y"):
        strange.fold(book, key.encode(), b"{", 1)
    found = strange.fault(LANE, [0, 1])
    assert found is not None and (found.key, found.lane) == ("A->B/orders/3/1", LANE)
    assert found.what_to_do.startswith("the lane waits: write a tombstone for that key")
    found = strange.fault(LANE, [2])
    assert found is None, "its claim was settled, its older entry is outlived"
    strange.fold(book, b"A->B/orders/3/1", None, 2)
    found = strange.fault(LANE, [0, 1])
    assert found is not None and found.key == "A->B/orders/3/2#claim"
    strange.fold(book, b"A->B/orders/3/2#claim", encode_entry(entry()), 3)
    assert strange.fault(LANE, [0, 1]) is None, "replaced by one that can be read"


def test_each_is_given_to_the_flow_that_it_is_about_and_what_is_nobodys_to_whoever_comes_first() -> None:
    book, strange = LedgerBook(), StrangeRecords()
    for key in (b"A->B/orders/0/0", b"C->B/orders/0/0", b"foreign", b"holder/C->B#run"):
        strange.fold(book, key, b"{", 1)
    strange.note_batch("ledger-3@17", "its zstd data cannot be decompressed")
    assert [found.key for found in strange.take_untold("A->B")] == ["A->B/orders/0/0", "foreign", "ledger-3@17"]
    found = strange.take_untold("C->B")
    assert [one.key for one in found] == ["C->B/orders/0/0", "holder/C->B#run"]
    assert found[1].what_to_do == "it is passed over: see that no other run of this flow is alive"


def test_a_strange_key_that_was_taken_out_is_forgotten() -> None:
    book, strange = LedgerBook(), StrangeRecords()
    strange.fold(book, b"foreign", b"x", 1)
    strange.fold(book, b"foreign", None, 2)
    assert told(strange) == []
    strange.fold(book, b"\xff", b"x", 1)
    assert [found.what_to_do for found in strange.take_untold("A->B")] == ["it is passed over"]
