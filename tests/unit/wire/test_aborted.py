"""Only what a read_committed consumer may see is copied; markers and empty batches never are."""

from __future__ import annotations

from heliograph.wire.aborted import CommittedView
from heliograph.wire.record_batch import walk
from tests.unit.wire.batches import CONTROL, TRANSACTIONAL, Rec, Shape, write_batch, write_marker


def data(offset: int, producer_id: int, *, transactional: bool = True, count: int = 1) -> bytearray:
    attributes = TRANSACTIONAL if transactional else 0
    shape = Shape(
        attributes=attributes, producer=(producer_id, 0, 0), base_offset=offset, last_offset=offset + count - 1
    )
    return write_batch([Rec(offset + i) for i in range(count)], shape)


def reasons(batches: list[bytearray], aborted: list[tuple[int, int]], read_committed: bool = True) -> list[str | None]:
    buffer = b"__" + b"".join(batches)
    view = CommittedView(aborted, read_committed)
    return [view.dropped_because(memoryview(buffer), at, header) for at, header in walk(buffer, 2, len(buffer))]


def test_committed_and_plain_batches_are_copied() -> None:
    batches = [data(0, 5), data(1, -1, transactional=False), write_marker(2, 5, commit=True)]
    assert reasons(batches, []) == [None, None, "control"]


def test_aborted_transaction_is_dropped_and_the_next_of_its_producer_is_not() -> None:
    batches = [data(0, 5), data(1, 5), write_marker(2, 5, commit=False), data(3, 5), write_marker(4, 5, commit=True)]
    assert reasons(batches, [(5, 0)]) == ["aborted", "aborted", "control", None, "control"]


def test_transaction_begins_inside_a_run_of_its_producer() -> None:
    batches = [data(0, 5), write_marker(1, 5, commit=True), data(2, 5), write_marker(3, 5, commit=False)]
    assert reasons(batches, [(5, 2)]) == [None, "control", "aborted", "control"]


def test_two_aborted_transactions_of_one_producer_are_told_apart() -> None:
    batches = [
        data(0, 5),
        write_marker(1, 5, commit=False),
        data(2, 5),
        write_marker(3, 5, commit=True),
        data(4, 5, count=3),
        write_marker(7, 5, commit=False),
    ]
    assert reasons(batches, [(5, 4), (5, 0)]) == ["aborted", "control", None, "control", "aborted", "control"]


def test_producers_between_each_other_are_told_apart() -> None:
    batches = [data(0, 5), data(1, 6), data(2, 5), write_marker(3, 6, commit=True), write_marker(4, 5, commit=False)]
    assert reasons(batches, [(5, 0)]) == ["aborted", None, "aborted", "control", "control"]


def test_idempotent_batch_of_an_aborted_producer_is_copied() -> None:
    assert reasons([data(0, 5), data(1, 5, transactional=False)], [(5, 0)]) == ["aborted", None]


def test_commit_marker_does_not_end_an_aborted_transaction() -> None:
    assert reasons([data(0, 5), write_marker(1, 5, commit=True), data(2, 5)], [(5, 0)]) == [
        "aborted",
        "control",
        "aborted",
    ]


def test_uncommitted_reader_gets_aborted_records_but_no_markers() -> None:
    batches = [data(0, 5), write_marker(1, 5, commit=False), data(2, 7, count=0)]
    assert reasons(batches, [(5, 0)], read_committed=False) == [None, "control", "empty"]


def test_transaction_that_began_before_the_answer_is_dropped_from_its_first_batch() -> None:
    assert reasons([data(100, 5), write_marker(101, 5, commit=False)], [(5, 3)]) == ["aborted", "control"]


def test_cleaned_marker_ends_nothing() -> None:
    shape = Shape(attributes=TRANSACTIONAL | CONTROL, producer=(5, 0, -1), base_offset=1, last_offset=1)
    assert reasons([data(0, 5), write_batch([], shape), data(2, 5)], [(5, 0)]) == ["aborted", "control", "aborted"]


def test_marker_with_a_key_too_short_for_a_type_ends_nothing() -> None:
    shape = Shape(attributes=TRANSACTIONAL | CONTROL, producer=(5, 0, -1))
    odd = write_batch([Rec(1, key=b"\0\0")], shape)
    assert reasons([data(0, 5), odd, data(2, 5)], [(5, 0)]) == ["aborted", "control", "aborted"]
