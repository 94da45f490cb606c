"""The ledger's keys and values, the book made of them, and how a lane begins."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest

from heliograph.errors import SetupError
from heliograph.model.events import EventKind
from heliograph.model.lanes import Identity, Lane, LaneId, LedgerEntry, Rule, Scanned
from heliograph.model.policies import Policies
from heliograph.replication.generations import (
    Holder,
    LedgerBook,
    decode_entry,
    decode_holder,
    encode_entry,
    encode_holder,
)
from heliograph.replication.ledger_keys import (
    PRODUCER_NOTE,
    ClaimKey,
    EntryKey,
    HolderKey,
    LedgerKey,
    NoteKey,
    ledger_partition,
    parse_key,
)
from heliograph.replication.openings import Continue, New, Opening, Refused, Start, opening

LANE = LaneId("A->B", "orders", 3)
OTHER = LaneId("A->B", "orders", 4)
ENTRY = LedgerEntry(
    lane=LANE,
    generation=2,
    identity=Identity(1001, 7),
    rule=Rule(),
    target_cluster_id="cluster-b",
    source_topic_id="11111111-1111-1111-1111-111111111111",
    target_topic_id="22222222-2222-2222-2222-222222222222",
    source_start=10,
    target_start=0,
    source_next=50,
    source_epoch=4,
    target_next=40,
    sequence_next=40,
    time_ms=1_700_000_000_000,
    attempt="run/0.1",
    anchors=((10, 0), (30, 15)),
    last=(48, 39),
)
LATER = (
    "version",
    "scanned",
    "follows",
    "uncounted",
    "mm2_offset",
    "last",
    "filling",
    "filler_to",
    "differs_at",
    "without",
)
"""Fields that came later: older entries are read without them."""
HOLDER = Holder("A->B", "host-1", 4711, "run-1", since_ms=5, renewed_ms=9, released=False)


def lane(source_id: str = ENTRY.source_topic_id, target_id: str = ENTRY.target_topic_id) -> Lane:
    return Lane(LANE, "A", "B", "A.orders", source_id, target_id)


def book_of(*records: tuple[EntryKey | ClaimKey | HolderKey, LedgerEntry | Holder | None]) -> LedgerBook:
    book = LedgerBook()
    for offset, (key, value) in enumerate(records):
        encoded = encode_holder(value) if isinstance(value, Holder) else encode_entry(value) if value else None
        book.apply(str(key), encoded, offset)
    return book


# keys


def test_keys_are_the_lanes_key_with_its_generation_and_the_claims_uuid() -> None:
    assert str(EntryKey(LANE, 2)) == "A->B/orders/3/2"
    assert str(ClaimKey(LANE, 2, "c-1")) == "A->B/orders/3/2#c-1"
    assert str(HolderKey("A->B", "run-1")) == "holder/A->B#run-1"


@pytest.mark.parametrize(
    "key",
    [
        EntryKey(LANE, 0),
        ClaimKey(LANE, 12, "5b1d0a2c-0000-4000-8000-000000000000"),
        HolderKey("A->B", "run-1"),
        HolderKey("weird/alias#1->B", "run-1"),
        EntryKey(LaneId("weird/alias#1->B", "a.b_c-d", 0), 1),
        ClaimKey(LaneId("weird/alias#1->B", "a.b_c-d", 0), 1, "c"),
        NoteKey("A->B", "configs", "orders"),
        NoteKey("weird/alias#1->B", "configs", "a.b_c-d"),
        EntryKey(LaneId("note/x->B", "orders", 0), 1),
        ClaimKey(LaneId("note/x->B", "orders", 0), 1, "c"),
    ],
    ids=str,
)
def test_a_key_is_read_back_as_it_was_written(key: LedgerKey) -> None:
    assert parse_key(str(key)) == key


def test_a_jobs_notes_are_kept_by_flow_kind_and_subject_until_they_are_taken_out() -> None:
    book = LedgerBook()
    for number, subject in enumerate(("orders", "payments")):
        book.apply(str(NoteKey("A->B", "configs", subject)), b"%d" % number, number)
    book.apply(str(NoteKey("B->A", "configs", "orders")), b"other flow", 2)
    book.apply(str(NoteKey("A->B", "deletes", "orders")), b"other kind", 3)
    assert book.notes("A->B", "configs") == {"orders": b"0", "payments": b"1"}
    book.apply(str(NoteKey("A->B", "configs", "orders")), None, 4)
    book.apply(str(NoteKey("A->B", "configs", "never-there")), None, 5)
    assert book.notes("A->B", "configs") == {"payments": b"1"}
    assert book.lanes() == () and book.strange_keys == set()


@pytest.mark.parametrize(
    "key",
    [
        "",
        "A->B",
        "A->B/orders/3",
        "A->B/orders/x/2",
        "A->B/orders/3/x",
        "A->B/orders/3/2#",
        "A->B/orders/3/#c",
        "holder/A->B",
        "holder/#run",
        "note/A->B#orders",
        "note/configs/A->B",
        "note/configs/A->B#",
        "note/configs/#orders",
    ],
)
def test_a_key_of_no_known_kind_is_an_error_that_names_it(key: str) -> None:
    with pytest.raises(ValueError, match="is no ledger key"):
        parse_key(key)


def test_all_records_of_a_lane_are_in_one_partition() -> None:
    keys: list[LedgerKey] = [EntryKey(LANE, 0), EntryKey(LANE, 7), ClaimKey(LANE, 7, "a"), ClaimKey(LANE, 8, "b")]
    assert len({ledger_partition(key, 16) for key in keys}) == 1


def test_where_a_key_lives_never_changes_between_releases() -> None:
    assert [ledger_partition(EntryKey(LaneId("A->B", "orders", n), 0), 16) for n in range(4)] == [4, 2, 8, 14]
    assert ledger_partition(HolderKey("A->B", "run-1"), 16) == ledger_partition(HolderKey("A->B", "run-2"), 16) == 6


def test_lanes_are_spread_over_all_partitions() -> None:
    keys = [EntryKey(LaneId("A->B", "orders", number), 0) for number in range(500)]
    assert {ledger_partition(key, 16) for key in keys} == set(range(16))


# values


def test_an_entry_is_read_back_as_it_was_written() -> None:
    assert decode_entry(encode_entry(ENTRY)) == ENTRY


def test_a_holder_is_read_back_as_it_was_written() -> None:
    assert decode_holder(encode_holder(HOLDER)) == HOLDER
    assert decode_holder(encode_holder(replace(HOLDER, released=True))).released


def test_fields_of_a_later_release_are_passed_over() -> None:
    entry = json.dumps({**json.loads(encode_entry(ENTRY)), "since_release_9": [1]}).encode()
    holder = json.dumps({**json.loads(encode_holder(HOLDER)), "since_release_9": [1]}).encode()
    assert decode_entry(entry) == ENTRY and decode_holder(holder) == HOLDER


@pytest.mark.parametrize("version", [2, 0, None, "1"])
def test_another_version_is_refused_with_both_versions_named(version: object) -> None:
    value = json.dumps({**json.loads(encode_entry(ENTRY)), "version": version}).encode()
    with pytest.raises(SetupError, match=f"entry of version {version!r}, this Heliograph reads version 1"):
        decode_entry(value)
    with pytest.raises(SetupError, match="holder of version"):
        decode_holder(value)


@pytest.mark.parametrize("value", [b"", b"{", b"\xff", b"[]", b'{"version":1}', b'{"version":1,"flow":"f"}'])
def test_a_value_that_cannot_be_read_is_an_error_of_ours(value: bytes) -> None:
    with pytest.raises(SetupError, match="the ledger holds a"):
        decode_entry(value)
    with pytest.raises(SetupError, match="the ledger holds a"):
        decode_holder(value)


@pytest.mark.parametrize("name", [name for name in json.loads(encode_entry(ENTRY)) if name not in LATER])
def test_every_field_of_an_entry_is_written_and_needed(name: str) -> None:
    fields = json.loads(encode_entry(ENTRY))
    del fields[name]
    with pytest.raises(SetupError, match=name):
        decode_entry(json.dumps(fields).encode())


def test_an_entry_from_before_the_first_take_over_knows_no_progress_of_mirrormaker_2() -> None:
    fields = json.loads(encode_entry(replace(ENTRY, mm2_offset=41)))
    assert decode_entry(json.dumps(fields).encode()).mm2_offset == 41
    del fields["mm2_offset"]
    assert decode_entry(json.dumps(fields).encode()).mm2_offset == -1


def test_how_far_the_remote_partition_was_read_is_kept() -> None:
    fields = json.loads(encode_entry(replace(ENTRY, scanned=Scanned(900, 4, 17))))
    assert decode_entry(json.dumps(fields).encode()).scanned == Scanned(900, 4, 17)
    del fields["scanned"]
    assert decode_entry(json.dumps(fields).encode()).scanned is None


def test_an_entry_from_before_flows_in_both_directions_leaves_nothing_out() -> None:
    fields = json.loads(encode_entry(replace(ENTRY, rule=Rule(without="B->A"))))
    assert decode_entry(json.dumps(fields).encode()).rule == Rule(without="B->A")
    del fields["without"]
    assert decode_entry(json.dumps(fields).encode()).rule == Rule()


def test_a_flows_producers_are_known_from_notes_entries_and_claims_and_outlive_generations() -> None:
    book = LedgerBook()
    flow = ENTRY.lane.flow
    first = replace(ENTRY, generation=0, identity=Identity(41, 0))
    book.apply(str(EntryKey(ENTRY.lane, 0)), encode_entry(first), 0)
    second = replace(ENTRY, generation=1, identity=Identity(42, 0))
    book.apply(str(ClaimKey(ENTRY.lane, 1, "x")), encode_entry(second), 1)
    other = replace(ENTRY, lane=LaneId("C->D", "t", 0), identity=Identity(99, 0))
    book.apply(str(EntryKey(other.lane, 0)), encode_entry(other), 2)
    assert (book.producers(flow), book.noted_producers(flow)) == ({41, 42}, set())
    book.apply(str(NoteKey(flow, PRODUCER_NOTE, "41")), b"{}", 3)
    book.apply(str(NoteKey(flow, PRODUCER_NOTE, "strange")), b"{}", 4)
    book.apply(str(EntryKey(ENTRY.lane, 0)), None, 5)
    assert (book.producers(flow), book.noted_producers(flow)) == ({41, 42}, {41})


@pytest.mark.parametrize(
    ("start", "anchors", "since"),
    [((10, 10), [[30, 30]], -1), ((10, 10), [[30, 28], [40, 37]], 30), ((10, 0), [[30, 20]], 10)],
)
def test_since_when_offsets_differ_is_told_from_the_pairs_of_an_entry_that_does_not_say_it(
    start: tuple[int, int], anchors: list[list[int]], since: int
) -> None:
    fields = {**json.loads(encode_entry(ENTRY)), "source_start": start[0], "target_start": start[1], "anchors": anchors}
    assert decode_entry(json.dumps(fields).encode()).differs_at == -1
    del fields["differs_at"]
    assert decode_entry(json.dumps(fields).encode()).differs_at == since


def test_an_entry_from_before_it_was_kept_knows_no_last_record() -> None:
    fields = json.loads(encode_entry(ENTRY))
    del fields["last"]
    assert decode_entry(json.dumps(fields).encode()) == replace(ENTRY, last=None)
    assert decode_entry(encode_entry(replace(ENTRY, last=None))).last is None


@pytest.mark.parametrize(
    ("name", "value"), [("partition", "x"), ("last", [1]), ("anchors", [[1]]), ("anchors", 5), ("generation", None)]
)
def test_a_field_of_the_wrong_kind_is_an_error_of_ours(name: str, value: object) -> None:
    fields = {**json.loads(encode_entry(ENTRY)), name: value}
    with pytest.raises(SetupError, match="cannot be read"):
        decode_entry(json.dumps(fields).encode())


# the book


def test_an_empty_book_knows_nothing() -> None:
    book = LedgerBook()
    assert book.latest(LANE) is None and book.winner(LANE, 0) is None and book.holder("A->B") is None
    assert book.lanes() == () and book.claims(LANE, 0) == () and book.generations(LANE) == ()


def test_the_highest_generation_is_the_latest_whatever_was_written_last() -> None:
    newer = replace(ENTRY, generation=10)
    book = book_of((EntryKey(LANE, 10), newer), (EntryKey(LANE, 9), replace(ENTRY, generation=9, source_next=99)))
    assert book.latest(LANE) == newer and book.generations(LANE) == (9, 10)


def attempts(*positions: int, written: tuple[int, ...] = (), **changes: object) -> LedgerBook:
    """Generation 0 of a driver, then one for each position, opened by attempts on a compacted source."""
    book = LedgerBook()
    for number, position in enumerate(positions):
        own = number > 0
        entry = replace(
            ENTRY,
            generation=number,
            identity=Identity(1001, number),
            source_start=0,
            source_next=position,
            sequence_next=position if number in written else 0,
            uncounted=own,
        )
        if number == len(positions) - 1:
            entry = replace(entry, **changes)  # type: ignore[arg-type]  the fields of an entry, by name
        book.apply(str(EntryKey(LANE, number)), encode_entry(entry), number)
    return book


def test_an_attempt_that_only_opened_a_generation_does_not_move_a_lane_back() -> None:
    """H1: the position is the furthest, the number is the newest; who writes has the identity of the furthest."""
    found = attempts(0, 6000, 1000, 1000, written=(1,)).latest(LANE)
    assert found is not None
    assert (found.generation, found.source_next, found.identity.producer_epoch) == (3, 6000, 1)


def test_a_generation_that_has_written_is_in_force_although_an_older_one_was_further() -> None:
    """It repeats in order what the older one copied last: jumping ahead would leave old values after newer ones."""
    found = attempts(0, 6000, 5900, written=(1, 2)).latest(LANE)
    assert found is not None and (found.generation, found.source_next) == (2, 5900)


def test_a_generation_that_went_back_on_purpose_is_in_force() -> None:
    found = attempts(0, 6000, 0, written=(1,), follows=6000).latest(LANE)
    assert found is not None and (found.generation, found.source_next) == (2, 0)


@pytest.mark.parametrize("topic", ["source_topic_id", "target_topic_id"])
def test_a_generation_of_another_topic_is_in_force(topic: str) -> None:
    found = attempts(0, 6000, 0, written=(1,), **{topic: "33333333-3333-3333-3333-333333333333"}).latest(LANE)
    assert found is not None and (found.generation, found.source_next) == (2, 0)


def test_a_counted_generation_is_in_force_wherever_it_starts() -> None:
    """Its sequences are counted from its own start: another position would be wrong by as many records."""
    found = attempts(0, 6000, 1000, written=(1,), uncounted=False).latest(LANE)
    assert found is not None and (found.generation, found.source_next) == (2, 1000)


def test_of_attempts_alone_the_furthest_counts() -> None:
    """The driver's generation has left the ledger, and none of theirs has written."""
    book = attempts(0, 700, 600)
    book.apply(str(EntryKey(LANE, 0)), None, 9)
    found = book.latest(LANE)
    assert found is not None and (found.generation, found.source_next) == (2, 700)


def test_the_newest_generation_is_known_by_its_entries() -> None:
    assert attempts(0, 6000, 1000).newest(LANE) == 2
    assert LedgerBook().newest(LANE) == -1


def test_a_claim_of_before_the_lane_was_carried_further_is_not_adopted() -> None:
    """H3: its writer ended before it wrote the entry."""
    outlived, wanted = replace(ENTRY, follows=1), replace(ENTRY, follows=900)
    book = book_of((ClaimKey(LANE, 2, "old"), outlived), (ClaimKey(LANE, 2, "new"), wanted))
    assert book.opened_as(wanted) is None
    assert book.opened_as(replace(wanted, follows=1)) == outlived, "nothing was copied since: its start is as good"


def test_a_generation_that_has_an_entry_is_what_the_entry_says() -> None:
    wanted = replace(ENTRY, follows=900)
    assert book_of((EntryKey(LANE, 2), ENTRY), (ClaimKey(LANE, 2, "c"), wanted)).opened_as(wanted) == ENTRY


def test_claims_up_to_a_generation_that_has_written_are_moot() -> None:
    keys = [ClaimKey(LANE, number, "c") for number in (1, 2, 3)]
    book = book_of(*((key, ENTRY) for key in keys), (ClaimKey(OTHER, 1, "c"), replace(ENTRY, lane=OTHER)))
    assert book.moot_claims(LANE, 2) == (keys[0], keys[1])


def test_a_claim_alone_is_not_an_entry() -> None:
    book = book_of((ClaimKey(LANE, 0, "c"), ENTRY))
    assert book.latest(LANE) is None and book.lanes() == (LANE,)


def test_a_tombstone_removes_a_generation() -> None:
    older, newer = replace(ENTRY, generation=1), ENTRY
    book = book_of((EntryKey(LANE, 1), older), (EntryKey(LANE, 2), newer), (EntryKey(LANE, 2), None))
    assert book.latest(LANE) == older
    book.apply(str(EntryKey(LANE, 1)), None, 9)
    assert book.latest(LANE) is None and book.lanes() == ()


def test_a_tombstone_of_what_was_never_seen_is_nothing() -> None:
    book = book_of((EntryKey(LANE, 1), None), (ClaimKey(LANE, 1, "c"), None), (HolderKey("A->B", "r"), None))
    assert book.lanes() == () and book.holder("A->B") is None


def test_within_a_generation_the_entry_that_is_further_on_is_kept() -> None:
    ahead = replace(ENTRY, source_next=60, sequence_next=50, target_next=50)
    assert book_of((EntryKey(LANE, 2), ENTRY), (EntryKey(LANE, 2), ahead)).latest(LANE) == ahead
    assert book_of((EntryKey(LANE, 2), ahead), (EntryKey(LANE, 2), ENTRY)).latest(LANE) == ahead


def test_of_two_entries_equally_far_the_later_one_is_kept() -> None:
    later = replace(ENTRY, time_ms=ENTRY.time_ms + 1)
    assert book_of((EntryKey(LANE, 2), ENTRY), (EntryKey(LANE, 2), later)).latest(LANE) == later


def test_an_entry_with_another_identity_replaces_the_one_before_as_compaction_would() -> None:
    other = replace(ENTRY, identity=Identity(1001, 8), source_next=5)
    assert book_of((EntryKey(LANE, 2), ENTRY), (EntryKey(LANE, 2), other)).latest(LANE) == other


def test_the_first_claim_by_offset_wins_while_there_is_no_entry() -> None:
    first, second = replace(ENTRY, source_start=100), replace(ENTRY, source_start=120)
    book = book_of((ClaimKey(LANE, 2, "z"), first), (ClaimKey(LANE, 2, "a"), second))
    assert book.winner(LANE, 2) == first
    assert [(claim.claim, claim.offset) for claim in book.claims(LANE, 2)] == [("z", 0), ("a", 1)]


def test_the_entry_wins_over_every_claim() -> None:
    claim = replace(ENTRY, source_start=100)
    book = book_of((ClaimKey(LANE, 2, "c"), claim), (EntryKey(LANE, 2), ENTRY))
    assert book.winner(LANE, 2) == ENTRY


def test_a_claim_repeated_by_its_writer_keeps_its_place() -> None:
    mine, theirs = replace(ENTRY, source_start=100), replace(ENTRY, source_start=120)
    book = book_of((ClaimKey(LANE, 2, "m"), mine), (ClaimKey(LANE, 2, "t"), theirs), (ClaimKey(LANE, 2, "m"), mine))
    assert book.winner(LANE, 2) == mine and len(book.claims(LANE, 2)) == 2


def test_a_claim_that_was_withdrawn_does_not_win() -> None:
    theirs = replace(ENTRY, source_start=120)
    book = book_of((ClaimKey(LANE, 2, "m"), ENTRY), (ClaimKey(LANE, 2, "t"), theirs), (ClaimKey(LANE, 2, "m"), None))
    assert book.winner(LANE, 2) == theirs


def test_claims_count_for_their_own_lane_and_generation_only() -> None:
    book = book_of((ClaimKey(OTHER, 2, "a"), replace(ENTRY, lane=OTHER)), (ClaimKey(LANE, 1, "b"), ENTRY))
    assert book.winner(LANE, 2) is None and book.lanes() == (LANE, OTHER)


FIRST = replace(HOLDER, run="first")
SECOND = replace(HOLDER, run="second", process=4712)


def holder_after(*records: Holder) -> Holder | None:
    return book_of(*[(HolderKey(record.flow, record.run), record) for record in records]).holder("A->B")


def test_the_first_claim_holds_a_flow_and_a_later_one_says_nothing() -> None:
    assert holder_after(FIRST, SECOND) == FIRST
    assert holder_after(FIRST, replace(SECOND, released=True)) == FIRST


def test_a_holder_renews_what_it_says() -> None:
    renewed = replace(FIRST, renewed_ms=99, held=True)
    assert holder_after(FIRST, SECOND, renewed) == renewed


def test_a_flow_that_was_released_is_told_as_such_and_goes_to_the_next_claim() -> None:
    released = replace(FIRST, released=True)
    assert holder_after(FIRST, released) == released
    assert holder_after(FIRST, released, SECOND) == SECOND


def test_who_takes_over_must_name_the_holder() -> None:
    taker = replace(SECOND, supersedes="first")
    assert holder_after(FIRST, taker) == taker
    assert holder_after(FIRST, replace(SECOND, supersedes="nobody")) == FIRST


def test_of_two_that_take_over_the_first_holds() -> None:
    taker, later = replace(SECOND, supersedes="first"), replace(HOLDER, run="third", supersedes="first")
    assert holder_after(FIRST, taker, later) == taker


def test_a_run_that_has_seen_that_it_won_holds_before_one_that_only_claimed() -> None:
    """As a reader finds them after compaction: the winner's claim is gone, the loser's is still there."""
    winner = replace(SECOND, held=True)
    assert holder_after(FIRST, winner) == winner
    assert holder_after(replace(FIRST, held=True), winner) == replace(FIRST, held=True)


def test_flows_are_held_apart() -> None:
    other = replace(HOLDER, flow="B->A", run="other")
    book = book_of((HolderKey("A->B", "first"), FIRST), (HolderKey("B->A", "other"), other))
    assert book.holder("A->B") == FIRST and book.holder("B->A") == other and book.lanes() == ()


def test_a_key_of_no_known_kind_is_set_aside_by_name_and_its_value_is_not_read() -> None:
    book = LedgerBook()
    book.apply("since-release-9", b"\xff", 0)
    assert book.strange_keys == {"since-release-9"} and book.lanes() == ()


def test_a_value_of_another_version_stops_the_reader_rather_than_starting_a_lane_over() -> None:
    with pytest.raises(SetupError, match="version 2"):
        LedgerBook().apply(str(EntryKey(LANE, 0)), b'{"version":2}', 0)


# how a lane begins


def test_a_lane_that_the_ledger_does_not_know_begins_generation_0() -> None:
    found = opening(None, lane(), Rule(), "cluster-b")
    assert found == New(0, "new lane", Start.BY_OPTION) and not found.needs_drain


def expected(source: bool, cluster: bool, topic: bool, rule: bool) -> tuple[type[Opening], str]:
    """Which of the changes decides: the protocol's order, written out."""
    if source:
        return Refused, "orders was deleted and created again on the source (on.source.reset = fail)"
    if cluster:
        return New, "A.orders is on another cluster now: copied again from the source's start (on.target.loss = recopy)"
    if topic:
        return New, (
            "A.orders was deleted and created again on the target: copied again from the source's start "
            "(on.target.loss = recopy)"
        )
    return (New, "rule changed") if rule else (Continue, "")


@pytest.mark.parametrize(
    ("source", "cluster", "topic", "rule"),
    list(itertools.product([False, True], repeat=4)),
    ids=lambda changed: "changed" if changed else "same",
)
def test_every_combination_of_changes_has_one_opening(source: bool, cluster: bool, topic: bool, rule: bool) -> None:
    found = opening(
        ENTRY,
        lane(
            "99999999-0000-0000-0000-000000000000" if source else ENTRY.source_topic_id,
            "new" if topic else ENTRY.target_topic_id,
        ),
        Rule("read_uncommitted") if rule else Rule(),
        "cluster-c" if cluster else "cluster-b",
    )
    kind, reason = expected(source, cluster, topic, rule)
    assert isinstance(found, kind)
    match found:
        case Refused(why):
            assert why == reason and found.what_to_do
        case New(generation, why, start, previous):
            assert (generation, why, previous) == (3, reason, ENTRY)
            assert start is (Start.POSITION if reason == "rule changed" else Start.LOG_START)
            assert found.needs_drain == (reason == "rule changed")
        case Continue(entry):
            assert entry == ENTRY


ANOTHER = "99999999-0000-0000-0000-000000000000"


def test_a_source_made_anew_begins_again_where_the_policy_says_so() -> None:
    found = opening(ENTRY, lane(ANOTHER), Rule(), "cluster-b", Policies(source_reset="restart"))
    assert isinstance(found, New)
    assert (found.generation, found.start, found.kind) == (3, Start.LOG_START, EventKind.SOURCE_RESET)


@pytest.mark.parametrize(("source", "cluster"), [(ENTRY.source_topic_id, "cluster-c"), (ANOTHER, "cluster-b")])
def test_a_target_made_anew_is_refused_where_the_policy_says_so(source: str, cluster: str) -> None:
    """Also when the source was made anew at the same time, and that alone would begin again."""
    policies = Policies(source_reset="restart", target_loss="fail")
    found = opening(ENTRY, lane(source, ANOTHER), Rule(), cluster, policies)
    assert isinstance(found, Refused)
    assert found.kind is EventKind.TARGET_LOSS and "on.target.loss = fail" in found.reason


@pytest.mark.parametrize("rule", [Rule("read_uncommitted", 1), Rule("read_committed", 2)], ids=str)
def test_any_part_of_the_rule_that_changes_opens_a_generation(rule: Rule) -> None:
    found = opening(ENTRY, lane(), rule, "cluster-b")
    assert found == New(3, "rule changed", Start.POSITION, ENTRY)


@pytest.mark.parametrize("unknown", ["", "00000000-0000-0000-0000-000000000000"])
def test_a_topic_id_that_a_broker_does_not_tell_says_nothing(unknown: str) -> None:
    assert opening(ENTRY, lane(unknown, unknown), Rule(), "cluster-b") == Continue(ENTRY)
    old = replace(ENTRY, source_topic_id=unknown, target_topic_id=unknown)
    assert opening(old, lane(), Rule(), "cluster-b") == Continue(old)


def test_a_compacted_lane_continues_in_the_driver_and_opens_its_generation_in_the_attempt() -> None:
    assert opening(ENTRY, replace(lane(), compacted=True), Rule(), "cluster-b") == Continue(ENTRY)
