"""Where another mirror stopped: tails as MirrorMaker 2 leaves them, whole and killed."""

from __future__ import annotations

from heliograph.replication.tail import LookFurther, SourceRecord, Stopped, Tail, Unlike, find_end, mark


def word(value: object) -> bytes:
    return mark(1, None, str(value).encode())


def source(*values: object, first: int = 0, optional: tuple[int, ...] = ()) -> list[SourceRecord]:
    return [
        SourceRecord(first + place, word(value), 7, optional=first + place in optional)
        for place, value in enumerate(values)
    ]


def tail(*values: object, whole: bool = True) -> Tail:
    return Tail([word(value) for value in values], whole)


def test_a_tail_that_ends_at_the_stored_offset_goes_on_after_it() -> None:
    assert find_end(tail(3, 4, 5), source(*range(20)), copied=5) == Stopped(6, -1, 0)


def test_what_was_written_after_the_last_store_is_found() -> None:
    assert find_end(tail(3, 4, 5, 6, 7, 8), source(*range(20)), copied=5) == Stopped(9, 7, 3)


def test_a_repeat_after_a_kill_does_not_lead_back() -> None:
    """Stored 3; wrote to 9, killed; started at 4, wrote to 6, killed: 7 to 9 are there."""
    killed_twice = tail(2, 3, 4, 5, 6, 7, 8, 9, 4, 5, 6)
    assert find_end(killed_twice, source(*range(20)), copied=3) == Stopped(10, 7, 6)


def test_a_record_that_is_missing_ends_the_stretch() -> None:
    assert find_end(tail(2, 3, 4, 6, 7), source(*range(20)), copied=3) == Stopped(5, 7, 1)


def test_between_compacted_sides_a_missing_record_does_not_end_it() -> None:
    assert find_end(tail(2, 3, 4, 6, 7), source(*range(20)), copied=3, may_miss=True) == Stopped(8, 7, 3)


def test_records_of_transactions_may_be_missing() -> None:
    """They were aborted, and this MirrorMaker 2 read committed records only."""
    records = source(*range(10), optional=(4, 5, 6))
    assert find_end(tail(2, 3, 7), records, copied=2) == Stopped(8, 7, 2)
    assert find_end(tail(2, 3, 5, 7), records, copied=2) == Stopped(8, 7, 3)
    assert find_end(tail(2, 3), source(0, 1, 2, 3, 4, optional=(4,)), copied=2) == Stopped(4, 7, 1)


def test_records_of_somebody_else_are_passed_over() -> None:
    assert find_end(tail(2, 3, "x", 4, "y", 5), source(*range(9)), copied=3) == Stopped(6, 7, 2)


def test_equal_records_are_told_apart_by_their_neighbours() -> None:
    records = source("x", "a", "a", "a", "y", "a", "a", "z")
    assert find_end(tail("x", "a", "a"), records, copied=0) == Stopped(3, 7, 2)
    assert find_end(tail("y", "a"), records, copied=4) == Stopped(6, 7, 1)


def test_of_equal_places_the_first_one_counts_which_loses_nothing() -> None:
    assert find_end(tail("a", "a"), source(*"aaaa"), copied=None) == Stopped(2, 7, 2)
    assert find_end(tail(*"a" * 50), source(*"a" * 90), copied=None) == Stopped(50, 7, 50)


def test_a_tail_that_does_not_reach_back_is_read_further() -> None:
    assert find_end(tail(7, 8, 9, whole=False), source(*range(20)), copied=5) == LookFurther()
    assert find_end(tail("x", whole=False), source(*range(20)), copied=5) == LookFurther()
    assert find_end(tail(8, 9, whole=False), source(8, 9, 10, first=8), copied=5) == Stopped(10, 7, 2)
    assert find_end(tail(9, whole=False), source(8, 9, 10, first=8), copied=5) == LookFurther()


def test_without_a_stored_offset_the_first_record_found_is_the_beginning() -> None:
    assert find_end(tail(4, 5, 6), source(*range(20)), copied=None) == Stopped(7, 7, 3)


def test_a_tail_with_nothing_of_the_source_is_unlike() -> None:
    assert find_end(tail("x", "y"), source(*range(20)), copied=5) == Unlike()
    assert find_end(tail(), [], copied=5) == Unlike()
    assert find_end(tail("x"), source(*range(20)), copied=None) == Unlike()


def test_a_source_that_ends_with_the_stored_offset_has_nothing_beyond() -> None:
    assert find_end(tail(1, 2), source(0, 1, 2), copied=2) == Stopped(3, -1, 0)


def test_a_mark_tells_null_from_empty_and_key_from_value() -> None:
    contents = [(None, None), (b"", None), (None, b""), (b"ab", b""), (b"a", b"b"), (b"", b"ab")]
    marks = {mark(5, key, value) for key, value in contents}
    assert len(marks) == len(contents)
    assert mark(5, b"k", b"v") != mark(6, b"k", b"v")
    assert mark(None, b"k", b"v") == mark(None, b"k", b"v")


def test_a_target_that_lost_what_was_stored_as_copied_gets_it_again() -> None:
    assert find_end(tail(2, 3), source(*range(20)), copied=5) == Stopped(4, 7, 0)
    assert find_end(tail(2, 3), source(*range(20)), copied=5, may_miss=True) == Stopped(6, -1, 0)
    assert find_end(tail(2, 3), source(*range(8), optional=(4, 5)), copied=5) == Stopped(6, -1, 0)
    assert find_end(tail(6, 7), source(*range(9)), copied=5) == Stopped(8, 7, 2)
    assert find_end(tail(6, 7), source(5, 6, 7, 8, first=5, optional=(5,)), copied=5) == Stopped(8, 7, 2)
