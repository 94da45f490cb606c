"""The ledger's formats and the book, for any records in any order."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from heliograph.model.lanes import Identity, LaneId, LedgerEntry, Rule
from heliograph.replication.generations import (
    Holder,
    LedgerBook,
    decode_entry,
    decode_holder,
    encode_entry,
    encode_holder,
)
from heliograph.replication.ledger_keys import ClaimKey, EntryKey, HolderKey, parse_key

OFFSETS = st.integers(0, 2**63 - 1)
TEXTS = st.text(max_size=12)
FLOWS = st.text(min_size=1, max_size=8).map(lambda alias: f"{alias}->B").filter(lambda flow: "holder/" not in flow)
TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=249)
LANES = st.builds(LaneId, FLOWS, TOPICS, st.integers(0, 10_000))
ENTRIES = st.builds(
    LedgerEntry,
    lane=LANES,
    generation=st.integers(0, 10_000),
    identity=st.builds(Identity, OFFSETS, st.integers(0, 32767)),
    rule=st.builds(Rule, TEXTS, st.integers(0, 9)),
    target_cluster_id=TEXTS,
    source_topic_id=TEXTS,
    target_topic_id=TEXTS,
    source_start=OFFSETS,
    target_start=OFFSETS,
    source_next=OFFSETS,
    source_epoch=st.integers(-1, 2**31 - 1),
    target_next=OFFSETS,
    sequence_next=st.integers(0, 2**31 - 1),
    time_ms=OFFSETS,
    attempt=TEXTS,
    anchors=st.lists(st.tuples(OFFSETS, OFFSETS), max_size=4).map(tuple),
)
HOLDERS = st.builds(Holder, FLOWS, TEXTS, OFFSETS, TEXTS, OFFSETS, OFFSETS, st.booleans(), st.booleans(), TEXTS)

ONE = LaneId("A->B", "t", 0)
BASE = LedgerEntry(ONE, 0, Identity(1, 0), Rule(), "c", "s", "t", 0, 0, 0, -1, 0, 0)
POSITIONS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), min_size=1, max_size=30)


@given(ENTRIES)
def test_every_entry_survives_the_round_trip(entry: LedgerEntry) -> None:
    assert decode_entry(encode_entry(entry)) == entry


@given(HOLDERS)
def test_every_holder_survives_the_round_trip(holder: Holder) -> None:
    assert decode_holder(encode_holder(holder)) == holder


@given(LANES, st.integers(0, 10_000), st.uuids().map(str), FLOWS)
def test_every_key_survives_the_round_trip(lane: LaneId, generation: int, claim: str, flow: str) -> None:
    for key in (EntryKey(lane, generation), ClaimKey(lane, generation, claim), HolderKey(flow, claim)):
        assert parse_key(str(key)) == key


@given(POSITIONS)
def test_the_latest_entry_is_the_furthest_of_the_highest_generation(written: list[tuple[int, int]]) -> None:
    book = LedgerBook()
    for offset, (generation, position) in enumerate(written):
        entry = replace(BASE, generation=generation, source_next=position)
        book.apply(str(EntryKey(ONE, generation)), encode_entry(entry), offset)
    found = book.latest(ONE)
    assert found is not None and (found.generation, found.source_next) == max(written)


@given(st.permutations(range(6)), st.integers(1, 6), st.booleans())
def test_all_readers_of_a_race_see_the_same_winner(order: list[int], seen: int, entry_written: bool) -> None:
    """Six drivers claim in some order; each reads at least to its own claim, some read on and see the entry."""
    claims = [replace(BASE, source_start=100 + driver) for driver in order]
    readers = []
    for last in range(seen, len(order) + 1):
        book = LedgerBook()
        for offset, claim in enumerate(claims[:last]):
            book.apply(str(ClaimKey(ONE, 0, f"driver-{claim.source_start}")), encode_entry(claim), offset)
        if entry_written and last == len(order):
            book.apply(str(EntryKey(ONE, 0)), encode_entry(claims[0]), last)
            for claim in claims:
                book.apply(str(ClaimKey(ONE, 0, f"driver-{claim.source_start}")), None, last + 1)
        readers.append(book.winner(ONE, 0))
    assert set(readers) == {claims[0]}
