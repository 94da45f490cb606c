"""A source offset to the offset of its copy, and back: what the ledger's points, counts and keys can show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heliograph.model.lanes import SEQUENCE_MASK
from heliograph.replication.translation import (
    IN_ABORTED,
    MARKER,
    Answer,
    Counted,
    Exact,
    Gone,
    Kept,
    KeptLog,
    NeverCopied,
    NotKnown,
    NotYetCopied,
    Point,
    Runs,
    Window,
    by_count,
    by_key,
    is_marked,
    is_plain,
    nothing_copied,
    points,
    position_of,
    window_of,
)
from tests.support.entries import FRESH

ENTRY = replace(
    FRESH,
    source_start=100,
    source_next=200,
    target_next=95,
    sequence_next=90,
    anchors=((100, 0), (150, 47), (180, 80)),
)


@pytest.mark.parametrize(
    ("answer", "position"),
    [
        (Exact(5), 5),
        (Exact(6, is_record=False), 6),
        (Gone("source", "deleted", 7), 7),
        (NeverCopied("a marker", 8), 8),
        (NotYetCopied(3), None),
        (NotKnown("why"), None),
    ],
)
def test_where_a_reader_goes_on(answer: Answer, position: int | None) -> None:
    assert position_of(answer) == position


def test_an_entrys_points_are_its_start_its_anchors_and_its_end() -> None:
    assert points(ENTRY) == (Point(100, 0), Point(150, 47), Point(180, 80), Point(200, 95))


def test_points_that_were_overtaken_are_left_out() -> None:
    """The target lost what lay behind (120, 18); it was copied again with another delta."""
    went_back = replace(ENTRY, anchors=((100, 0), (150, 47), (120, 18), (180, 80)))
    assert points(went_back) == (Point(100, 0), Point(120, 18), Point(180, 80), Point(200, 95))


def test_points_of_older_generations_stand_before_the_start() -> None:
    later = replace(ENTRY, generation=4, source_start=160, target_start=60)
    assert points(later) == (Point(100, 0), Point(150, 47), Point(160, 60), Point(180, 80), Point(200, 95))


def test_points_of_older_generations_behind_the_start_are_left_out() -> None:
    """The source was cut back to 120: what was copied from beyond it is not there any more."""
    cut = replace(ENTRY, generation=4, source_start=120, target_start=60, source_next=130, target_next=70)
    assert points(cut) == (Point(100, 0), Point(120, 60), Point(130, 70))


@pytest.mark.parametrize(
    ("offset", "reverse", "expected"),
    [
        (100, False, Window(Point(100, 0), Point(150, 47))),
        (149, False, Window(Point(100, 0), Point(150, 47))),
        (150, False, Window(Point(150, 47), Point(180, 80))),
        (199, False, Window(Point(180, 80), Point(200, 95))),
        (200, False, Exact(95, is_record=False)),
        (203, False, NotYetCopied(3)),
        (99, False, NeverCopied("the lane began at source offset 100", 0)),
        (46, True, Window(Point(100, 0), Point(150, 47))),
        (47, True, Window(Point(150, 47), Point(180, 80))),
        (95, True, Exact(200, is_record=False)),
        (96, True, NotKnown("the ledger knows this lane up to target offset 95")),
    ],
)
def test_the_window_of_an_offset(offset: int, reverse: bool, expected: Window | Answer) -> None:
    assert window_of(ENTRY, offset, reverse) == expected


def test_what_lay_on_the_target_before_the_lane_was_never_copied() -> None:
    entry = replace(ENTRY, target_start=10, anchors=(), target_next=105)
    assert window_of(entry, 9, True) == NeverCopied("it lies before the first record of this lane, 10", 100)


def test_what_an_older_generation_copied_is_not_known_without_its_points() -> None:
    answer = window_of(replace(ENTRY, generation=2), 99, False)
    assert answer == NotKnown(
        "the lane is in generation 2, and the ledger keeps nothing of it from before source offset 100"
    )


@pytest.mark.parametrize(
    ("end", "sequences", "plain"),
    [
        (Point(20, 25), (3, 13), True),
        (Point(20, 25), (SEQUENCE_MASK - 1, 8), True),
        (Point(20, 25), (3, 12), False),
        (Point(20, 24), (3, 13), False),
    ],
)
def test_a_plain_window_has_one_record_per_offset_on_both_sides(
    end: Point, sequences: tuple[int, int], plain: bool
) -> None:
    assert is_plain(Window(Point(10, 15), end), *sequences) is plain


def test_a_window_without_a_place_on_the_target_was_left_out() -> None:
    assert nothing_copied(Window(Point(10, 5), Point(12, 5))) == NeverCopied(
        "source offsets 10 to 11 were left out: skipped, or lost to retention", 5
    )
    assert nothing_copied(Window(Point(10, 5), Point(12, 6))) is None


def test_runs() -> None:
    runs = Runs([(10, 3), (13, 0), (20, 2)])
    assert runs.total == 5
    assert [runs.holds(offset) for offset in (9, 10, 12, 13, 20, 22)] == [False, True, True, False, True, False]
    assert [runs.from_end(offset) for offset in (0, 10, 12, 13, 19, 20, 21, 22, 99)] == [5, 5, 3, 2, 2, 2, 1, 0, 0]
    assert [runs.offset_of(left) for left in (5, 4, 3, 2, 1)] == [10, 11, 12, 20, 21]


def counted(here: Runs, there: Runs, is_cut: tuple[bool, bool] = (False, False)) -> Counted:
    return Counted(here, there, 900, is_cut, "target")


def test_the_same_number_of_records_lies_behind_a_record_and_its_copy() -> None:
    both = counted(Runs([(10, 3), (20, 2)]), Runs([(100, 1), (105, 4)]))
    answers = {offset: by_count(offset, both) for offset in (10, 11, 12, 13, 20, 21, 22)}
    assert answers == {
        10: Exact(100),
        11: Exact(105),
        12: Exact(106),
        13: Exact(107, is_record=False),
        20: Exact(107),
        21: Exact(108),
        22: Exact(900, is_record=False),
    }


@pytest.mark.parametrize("is_cut", [(False, False), (True, False)])
def test_sums_that_do_not_close_are_said(is_cut: tuple[bool, bool]) -> None:
    """M5: only what a log has deleted may be missing. Two of ours on a whole target are no place for three."""
    answer = by_count(11, counted(Runs([(10, 3)]), Runs([(100, 2)]), is_cut))
    assert isinstance(answer, NotKnown)
    assert "3 records lie on one side and 2 on the other" in answer.reason


def test_a_log_that_begins_inside_the_window_is_counted_from_its_end() -> None:
    assert by_count(12, counted(Runs([(11, 2)]), Runs([(100, 3)]), (True, False))) == Exact(102)
    assert isinstance(by_count(12, counted(Runs([(11, 2)]), Runs([(100, 3)]), (False, True))), NotKnown)


@pytest.mark.parametrize(("there", "resume"), [(Runs([(102, 1)]), 102), (Runs([]), 900)])
def test_a_copy_that_the_target_deleted_is_gone(there: Runs, resume: int) -> None:
    assert by_count(10, counted(Runs([(10, 3)]), there, (False, True))) == Gone(
        "target", "the target has deleted it", resume
    )


def record(offset: int, key: bytes, value: str = "v") -> Kept:
    return Kept(offset, key, (key, value))


SOURCE = KeptLog([record(10, b"a", "1"), record(14, b"b"), record(17, b"a", "2"), record(18, b"c")])


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (10, Exact(1)),
        (11, Exact(5, is_record=False)),
        (14, Exact(5)),
        (17, Exact(8)),
        (18, Gone("target", "the target has no such record in this range any more", 30)),
        (19, Exact(30, is_record=False)),
    ],
)
def test_a_cleaned_log_is_matched_by_key(offset: int, expected: Answer) -> None:
    target = KeptLog(
        [record(0, b"x"), record(1, b"a", "1"), record(4, b"b", "old"), record(5, b"b"), record(8, b"a", "2")]
    )
    assert by_key(offset, SOURCE, target, 30, "target") == expected


def test_a_reader_goes_on_with_the_next_record_that_both_sides_have() -> None:
    target = KeptLog([record(1, b"a", "1"), record(8, b"a", "2")])
    assert by_key(12, SOURCE, target, 30, "target") == Exact(8, is_record=False)
    assert by_key(14, SOURCE, target, 30, "target") == Gone(
        "target", "the target has no such record in this range any more", 8
    )


def test_a_reader_of_equal_records_whose_order_does_not_tell_is_not_sent_anywhere() -> None:
    source = KeptLog([record(11, b"a"), record(12, b"a"), record(13, b"a", "other")])
    target = KeptLog([record(0, b"a"), record(1, b"a")])
    assert isinstance(by_key(10, source, target, 3, "target"), NotKnown)


def test_equal_records_of_a_key_are_told_apart_from_the_end() -> None:
    """The source's cleaner took the first of three equal records, the target still has all of them."""
    source = KeptLog([record(11, b"a"), record(12, b"a")])
    target = KeptLog([record(0, b"a"), record(1, b"a"), record(2, b"a")])
    assert [by_key(offset, source, target, 3, "target") for offset in (11, 12)] == [Exact(1), Exact(2)]


def test_the_last_of_its_like_is_meant_where_a_crash_repeated_records() -> None:
    source = KeptLog([record(11, b"a"), record(12, b"a", "other")])
    target = KeptLog([record(0, b"a"), record(1, b"a"), record(2, b"a", "other")])
    assert by_key(11, source, target, 3, "target") == Exact(1)


def test_an_equal_record_that_was_written_later_is_not_taken_for_it() -> None:
    """The target's cleaner took the first of two equal records, the source still has both."""
    source = KeptLog([record(11, b"a"), record(12, b"a")])
    assert isinstance(by_key(11, source, KeptLog([record(1, b"a")]), 3, "target"), Gone)
    assert by_key(12, source, KeptLog([record(1, b"a")]), 3, "target") == Exact(1)


def test_equal_records_whose_order_does_not_tell_are_not_guessed() -> None:
    source = KeptLog([record(11, b"a"), record(12, b"a"), record(13, b"a", "other")])
    target = KeptLog([record(0, b"a"), record(1, b"a")])
    assert by_key(11, source, target, 3, "target") == NotKnown(
        "the other side has 2 records like this one, and their order does not tell which"
    )


def test_what_no_reader_of_committed_records_gets_is_told_from_what_was_left_out() -> None:
    assert is_marked(MARKER) and is_marked(IN_ABORTED)
    assert not is_marked("the lane began at source offset 5")
