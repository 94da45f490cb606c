"""Attach as a pure decision: every combination of what ledger, target and source may show, against the protocol's text."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import pytest

from heliograph.model.lanes import Identity, LaneId, LedgerEntry, Rule, Scanned
from heliograph.replication.attach import (
    Ahead,
    AskLedger,
    Behind,
    Lost,
    NextSequence,
    OurBatch,
    Park,
    ReadTail,
    Remembered,
    TargetTail,
    already_read,
    contradiction,
    distance,
    expected_offset,
    guard_margin_ms,
    is_guarded,
    is_overtaken,
    lost_before,
    next_by_headers,
    next_in_sequence,
)

WRAP = 2**31
LAST = WRAP - 1
TARGET_NEXT = 500
EPOCH = 7
HOUR = 3_600_000
DAY = 24 * HOUR
NOW = 1_700_000_000_000


def entry(sequence_next: int, target_next: int = TARGET_NEXT, epoch: int = EPOCH) -> LedgerEntry:
    return LedgerEntry(
        lane=LaneId("A->B", "orders", 0),
        generation=1,
        identity=Identity(1001, epoch),
        rule=Rule(),
        target_cluster_id="b",
        source_topic_id="s",
        target_topic_id="t",
        source_start=0,
        target_start=0,
        source_next=900,
        source_epoch=3,
        target_next=target_next,
        sequence_next=sequence_next,
    )


@dataclass(frozen=True)
class World:
    """What one attach may meet. `remembered` is (epoch, last sequence); `ours` are (sequence, count, last offset delta)."""

    sequence_next: int
    remembered: tuple[int, int] | None
    log_start: int
    end: int
    ours: tuple[tuple[int, int, int], ...]


def by_the_text(world: World) -> tuple[str, int]:
    """P2.3 a to d as the protocol's text has them: ("next", sequence), ("ask", epoch), ("park", 0) or ("lost", 0)."""
    if world.remembered is not None:
        epoch, last = world.remembered
        if epoch == EPOCH:  # a
            return ("next", 0) if last == -1 else ("next", (last + 1) % WRAP)
        if epoch > EPOCH:  # b
            return ("ask", epoch)
        stays = "lost" if world.end < TARGET_NEXT else "park"
        return ("next", 0) if world.sequence_next == 0 else (stays, 0)  # c
    if world.ours:  # d: the last batch by lastOffsetDelta; a count of 0 is the cleaner's
        sequence, _, delta = world.ours[-1]
        return ("next", (sequence + delta + 1) % WRAP)
    if world.end < TARGET_NEXT:  # acknowledged records are gone, and nothing says how many
        return ("lost", 0)
    if world.end == TARGET_NEXT or world.log_start <= TARGET_NEXT:
        return ("next", world.sequence_next)
    return ("lost", 0)


def decided(world: World) -> tuple[str, int]:
    known = None if world.remembered is None else Remembered(*world.remembered, last_timestamp=NOW)
    tail = TargetTail(world.log_start, world.end, known)
    here = entry(world.sequence_next)
    found = next_in_sequence(here, tail)
    if isinstance(found, ReadTail):
        shrunk = world.end < TARGET_NEXT
        assert found.offset == (world.log_start if shrunk else max(world.log_start, TARGET_NEXT))
        assert known is None
        places = itertools.count(found.offset, 10)
        found = next_by_headers(here, tail, (OurBatch(next(places), seq, delta) for seq, _, delta in world.ours))
    match found:
        case NextSequence(sequence):
            return ("next", sequence)
        case AskLedger(epoch):
            return ("ask", epoch)
        case Park(reason):
            assert reason
            return ("park", 0)
        case Lost(reason):
            assert reason
            return ("lost", 0)
    raise AssertionError(found)


SEQUENCES = (0, 1, 40, LAST - 2, LAST)
MEMORIES: tuple[tuple[int, int] | None, ...] = (
    None,
    *((epoch, last) for epoch in (EPOCH - 1, EPOCH, EPOCH + 1) for last in (-1, 0, 39, 59, LAST - 1, LAST)),
)
LOG_STARTS = (0, TARGET_NEXT - 1, TARGET_NEXT, TARGET_NEXT + 1, TARGET_NEXT + 30)
ENDS_AFTER_START = (0, 1, 25)
OURS: tuple[tuple[tuple[int, int, int], ...], ...] = (
    (),
    ((40, 10, 9),),
    ((40, 10, 9), (50, 5, 4)),
    ((40, 0, 9),),
    ((40, 10, 9), (50, 0, 9)),
    ((LAST - 1, 5, 4),),
    ((LAST - 9, 10, 9),),
)


def worlds() -> list[World]:
    found = []
    for sequence, memory, start, after, ours in itertools.product(
        SEQUENCES, MEMORIES, LOG_STARTS, ENDS_AFTER_START, OURS
    ):
        for end in {start + after, max(start, TARGET_NEXT) + after}:
            found.append(World(sequence, memory, start, end, ours))
    return found


def test_every_combination_of_ledger_target_and_headers_is_decided_as_the_protocol_says() -> None:
    everything = worlds()
    wrong = [
        (world, decided(world), by_the_text(world)) for world in everything if decided(world) != by_the_text(world)
    ]
    assert wrong == []
    kinds = {by_the_text(world)[0] for world in everything}
    assert kinds == {"next", "ask", "park", "lost"}
    assert len(everything) > 10_000


def test_the_broker_is_said_to_have_state_only_when_it_remembers_a_record_of_our_epoch() -> None:
    for world in worlds():
        known = None if world.remembered is None else Remembered(*world.remembered, last_timestamp=NOW)
        found = next_in_sequence(entry(world.sequence_next), TargetTail(world.log_start, world.end, known))
        if isinstance(found, NextSequence):
            assert world.remembered is not None
            epoch, last = world.remembered
            assert found.had_state == (epoch == EPOCH and last >= 0)


def test_headers_never_prove_that_the_broker_has_state() -> None:
    found = next_by_headers(entry(40), TargetTail(0, 510, None), [OurBatch(500, 40, 9)])
    assert found == NextSequence(50, False, "the last batch of ours in the target's log")


def test_a_batch_that_the_cleaner_emptied_counts_by_its_last_offset_delta() -> None:
    tail = TargetTail(0, 510, None)
    assert decided(World(40, None, 0, 510, ((40, 0, 9),))) == ("next", 50)
    assert isinstance(next_by_headers(entry(40), tail, []), NextSequence)


def test_a_deleted_tail_is_copied_again_from_the_ledgers_position_and_names_what_is_deleted() -> None:
    found = next_by_headers(entry(40), TargetTail(530, 560, None), [])
    assert isinstance(found, Lost) and not found.from_start
    assert "500 to 529" in found.reason and "position is unknown" in found.reason


def test_what_is_deleted_was_not_ours_where_it_was_read_before() -> None:
    found = next_by_headers(entry(40), TargetTail(530, 560, None), [], known_to=530)
    assert found == NextSequence(40, False, "nothing of ours after the ledger's position")
    assert isinstance(next_by_headers(entry(40), TargetTail(530, 560, None), [], known_to=529), Lost)


@pytest.mark.parametrize(
    ("known", "log_start", "end", "holds"),
    [
        (None, 0, 900, False),
        (Scanned(700, 3), 0, 900, True),
        (Scanned(700, 3), 0, 700, True),
        (Scanned(700, 3), 700, 900, True),
        (Scanned(700, 3), 701, 900, False),
        (Scanned(700, 3), 0, 699, False),
        (Scanned(500, 3), 0, 900, False),
        (Scanned(700, 3, 600), 600, 900, True),
        (Scanned(700, 3, 600), 601, 900, False),
    ],
)
def test_what_was_read_before_counts_as_long_as_it_lies_between_our_position_and_the_end(
    known: Scanned | None, log_start: int, end: int, holds: bool
) -> None:
    found = already_read(replace(entry(40), scanned=known), TargetTail(log_start, end, None))
    assert found == (known if holds else None)


@pytest.mark.parametrize(("end", "lost"), [(0, True), (499, True), (500, False), (620, False)])
def test_a_target_that_ends_early_but_claims_every_record_took_one_into_an_empty_log(end: int, lost: bool) -> None:
    found = contradiction(entry(40), TargetTail(0, end, None), Ahead(10))
    assert isinstance(found, Lost) == lost
    assert contradiction(entry(40), TargetTail(0, end, None), Behind(10)) is None


@pytest.mark.parametrize(
    ("log_start", "end", "offset"),
    [
        (0, 499, 0),
        (0, 0, 0),
        (300, 400, 300),
        (499, 499, 499),
        (0, 500, 500),
        (0, 501, 500),
        (500, 500, 500),
        (530, 560, 530),
    ],
)
def test_a_target_that_ends_before_the_ledgers_position_is_read_from_its_start(
    log_start: int, end: int, offset: int
) -> None:
    assert next_in_sequence(entry(40), TargetTail(log_start, end, None)) == ReadTail(offset)


@pytest.mark.parametrize(("log_start", "end"), [(0, 0), (0, 499), (300, 300), (499, 499)])
@pytest.mark.parametrize("sequence_next", [0, 40])
def test_an_emptied_target_lost_everything_and_says_both_offsets(log_start: int, end: int, sequence_next: int) -> None:
    found = next_by_headers(entry(sequence_next), TargetTail(log_start, end, None), [])
    assert found == Lost(f"it ends at {end} and has nothing of this lane any more, 500 was acknowledged")
    assert found.from_start


def test_a_target_that_lost_its_end_goes_on_after_the_last_batch_that_is_left() -> None:
    tail = TargetTail(0, 480, None)
    found = next_by_headers(entry(40), tail, [OurBatch(460, 0, 9), OurBatch(470, 10, 9)])
    assert found == NextSequence(20, False, "the last batch of ours in the target's log")
    assert distance(entry(40), 20) == Behind(20)
    assert expected_offset(entry(40), tail, -20) == 480


def test_a_new_lane_on_an_empty_target_goes_on_by_the_ledger() -> None:
    found = next_by_headers(entry(0, target_next=0), TargetTail(0, 0, None), [])
    assert found == NextSequence(0, False, "nothing of ours after the ledger's position")


def test_an_identity_conflict_names_both_epochs_and_the_ledgers_records() -> None:
    found = next_in_sequence(entry(40), TargetTail(0, 500, Remembered(5, 12, NOW)))
    assert isinstance(found, Park)
    assert found.reason == "identity conflict: the ledger has 40 records under epoch 7, the target only knows epoch 5"


@pytest.mark.parametrize(
    ("sequence_next", "sequence", "expected"),
    [
        (0, 0, Ahead(0)),
        (0, 1, Ahead(1)),
        (40, 90, Ahead(50)),
        (LAST, 0, Ahead(1)),
        (LAST - 2, 7, Ahead(10)),
        (0, 2**30 - 1, Ahead(2**30 - 1)),
        (0, 2**30, Behind(2**30)),
        (90, 40, Behind(50)),
        (0, LAST, Behind(1)),
        (7, LAST - 2, Behind(10)),
    ],
)
def test_the_distance_is_signed_and_crosses_the_wrap(
    sequence_next: int, sequence: int, expected: Ahead | Behind
) -> None:
    assert distance(entry(sequence_next), sequence) == expected


@pytest.mark.parametrize(
    ("end", "ahead", "expected"),
    [
        (500, 0, 500),
        (510, 10, 510),
        (511, 10, None),
        (509, 10, None),
        (500, 10, None),
        (510, 0, None),
        (490, -10, 490),
        (491, -10, None),
        (489, -10, None),
        (500, -10, None),
        (0, -500, 0),
    ],
)
def test_the_next_offset_is_known_only_where_nothing_foreign_lies_between(
    end: int, ahead: int, expected: int | None
) -> None:
    assert expected_offset(entry(40), TargetTail(0, end, None), ahead) == expected


@pytest.mark.parametrize("age_ms", [-DAY, 0, 22 * HOUR, 23 * HOUR - 1, 23 * HOUR, 24 * HOUR, 3 * DAY])
def test_a_lane_is_guarded_by_its_last_batch(age_ms: int) -> None:
    by_text = (NOW - age_ms) > NOW - DAY + HOUR
    assert is_guarded(NOW - age_ms, NOW, DAY) == by_text


def test_a_batch_without_a_timestamp_guards_nothing() -> None:
    assert not is_guarded(-1, NOW, DAY)


@pytest.mark.parametrize(("expiration_ms", "margin_ms"), [(DAY, HOUR), (2 * HOUR, HOUR), (HOUR, HOUR // 2), (10, 5)])
def test_the_margin_is_one_hour_or_half_of_a_shorter_memory(expiration_ms: int, margin_ms: int) -> None:
    assert guard_margin_ms(expiration_ms) == margin_ms


@pytest.mark.parametrize(
    ("sequence", "base", "delta", "overtaken"),
    [
        (30, 20, 9, False),
        (30, 20, 10, True),
        (30, 40, 0, True),
        (30, 10, 9, False),
        (3, LAST, 3, False),
        (3, 0, 4, True),
    ],
)
def test_a_batch_that_came_after_the_question_overtakes_it(
    sequence: int, base: int, delta: int, overtaken: bool
) -> None:
    assert is_overtaken(sequence, OurBatch(0, base, delta)) is overtaken


@pytest.mark.parametrize(
    ("epoch", "last", "end", "lost"),
    [
        (EPOCH, 39, TARGET_NEXT, ""),
        (EPOCH, 49, TARGET_NEXT + 10, ""),
        (EPOCH, 29, TARGET_NEXT + 5, "lost 10 records"),
        (EPOCH - 1, 29, TARGET_NEXT, ""),
        (EPOCH - 1, 29, TARGET_NEXT - 1, "stray batch"),
    ],
)
def test_what_the_target_lost_is_found_although_nothing_is_counted(epoch: int, last: int, end: int, lost: str) -> None:
    """L9: others wrote over the old end, so that only the target's memory of the last attempt tells."""
    found = lost_before(entry(40), TargetTail(0, end, Remembered(epoch, last, NOW)))
    assert (found is None) == (not lost)
    assert found is None or lost in found.reason


def test_a_target_that_forgot_the_lane_shows_a_loss_by_its_end_alone() -> None:
    assert lost_before(entry(40), TargetTail(0, TARGET_NEXT, None)) is None
    assert lost_before(entry(40), TargetTail(0, TARGET_NEXT - 1, None)) is not None
