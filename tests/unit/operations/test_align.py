"""Planted faults are found and named; equal streams are equal however they are cut into chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from heliograph.operations.align import Alignment, Chunk, Content, Finding, Side

FIRST_OFFSET = 2


def records(count: int) -> list[Content]:
    return [(1_000 + place, b"k%d" % place, b"v%d" % place, None) for place in range(count)]


def chunks(contents: Sequence[Content], size: int = 7) -> Iterator[Chunk]:
    for start in range(0, len(contents), size):
        part = contents[start : start + size]
        yield list(range(FIRST_OFFSET + start, FIRST_OFFSET + start + len(part))), part


def align(source: Sequence[Content], target: Sequence[Content], *, prefix: bool = False, limit: int = 20) -> Alignment:
    alignment = Alignment(Side(chunks(source)), Side(chunks(target, 11)), prefix=prefix, limit=limit)
    while alignment.step():
        pass
    return alignment


def findings(source: Sequence[Content], target: Sequence[Content]) -> list[Finding]:
    return align(source, target).findings


def sentences(source: Sequence[Content], target: Sequence[Content]) -> list[str]:
    return [finding.what for finding in findings(source, target)]


def test_equal_streams_have_no_difference_and_every_record_is_counted() -> None:
    alignment = align(records(1_000), records(1_000))
    assert (alignment.findings, alignment.records) == ([], 1_000)


def test_two_empty_streams_are_equal() -> None:
    assert align([], []).records == 0


@pytest.mark.parametrize("place", [0, 17, 499])
def test_a_dropped_record_is_missing_on_the_target(place: int) -> None:
    target = records(500)
    del target[place]
    [finding] = findings(records(500), target)
    assert finding.what == f"source record {place} (offset {place + FIRST_OFFSET}) is missing on the target"
    assert finding.index == place
    assert finding.source is not None
    assert finding.source.value == b"v%d" % place
    assert finding.target is None


@pytest.mark.parametrize("place", [0, 16, 499])
def test_a_repeated_record_is_named_with_both_offsets(place: int) -> None:
    target = records(500)
    target.insert(place + 1, target[place])
    here, there = place + FIRST_OFFSET, place + FIRST_OFFSET + 1
    assert sentences(records(500), target) == [
        f"source record {place} (offset {here}) is repeated on the target at offset {there}"
    ]


def test_a_batch_repeated_later_is_recognised_record_by_record() -> None:
    target = records(100)
    target[50:50] = target[40:43]
    assert [what.split(" on ")[0] for what in sentences(records(100), target)] == [
        f"source record {place} (offset {place + FIRST_OFFSET}) is repeated" for place in (40, 41, 42)
    ]


@pytest.mark.parametrize("place", [0, 17, 498])
def test_two_neighbours_in_the_wrong_order_are_swapped(place: int) -> None:
    target = records(500)
    target[place], target[place + 1] = target[place + 1], target[place]
    one, other = f"{place} (offset {place + 2})", f"{place + 1} (offset {place + 3})"
    assert sentences(records(500), target) == [f"source records {one} and {other} are swapped on the target"]


def test_three_records_in_another_order_are_one_difference() -> None:
    target = records(50)
    target[10], target[11], target[12] = target[12], target[10], target[11]
    assert sentences(records(50), target) == [
        "source records 10 (offset 12) to 12 (offset 14) are in another order on the target"
    ]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ((9, b"k5", b"v5", None), "timestamp"),
        ((1_005, None, b"v5", None), "key"),
        ((1_005, b"k5", b"", None), "value"),
        ((1_005, b"k5", b"v5", (("h", None),)), "headers"),
        ((1_005, b"x", b"v5", (("h", b""),)), "key and headers"),
    ],
)
def test_a_changed_record_is_named_with_the_fields_that_changed(changed: Content, named: str) -> None:
    target = records(10)
    target[5] = changed
    assert sentences(records(10), target) == [
        f"source record 5 (offset 7) has another {named} on the target (offset 7 there)"
    ]


def test_headers_with_the_same_pairs_in_another_order_are_changed() -> None:
    one: Content = (1, None, b"v", (("a", b"1"), ("b", None)))
    other: Content = (1, None, b"v", (("b", None), ("a", b"1")))
    assert "another headers" in sentences([one], [other])[0]


def test_a_record_the_source_never_had_is_said_to_be_strange() -> None:
    target = records(30)
    target.insert(20, (5, b"strange", None, None))
    assert sentences(records(30), target) == ["the target has a record at offset 22 that the source does not have here"]


def test_several_faults_are_each_found() -> None:
    target = records(400)
    target[300], target[301] = target[301], target[300]
    target.insert(201, target[200])
    del target[100]
    found = sentences(records(400), target)
    assert [word for what in found for word in ("missing", "repeated", "swapped") if word in what] == [
        "missing",
        "repeated",
        "swapped",
    ]


def test_more_records_missing_than_the_window_holds_are_still_a_difference() -> None:
    found = sentences(records(2_000), records(100) + records(2_000)[1_500:])
    assert found[0].startswith("from source record 100 (offset 102) on, 256 records have no counterpart")


@pytest.mark.parametrize(
    ("source", "target", "what"),
    [
        (2_000, 100, "source record 100 (offset 102) and the 255 after it are missing on the target"),
        (100, 2_000, "the target has records from offset 102 on that the source does not have"),
    ],
)
def test_a_side_that_ends_much_too_early_is_said_so(source: int, target: int, what: str) -> None:
    assert sentences(records(source), records(target))[0] == what


def test_the_report_ends_at_its_limit() -> None:
    target = [(0, key, value, headers) for _, key, value, headers in records(100)]
    assert len(align(records(100), target, limit=3).findings) == 3


def test_a_running_mirror_may_be_ahead_of_where_the_comparison_ends() -> None:
    assert align(records(100), records(150), prefix=True).findings == []


def test_a_running_mirror_that_lost_the_last_record_is_found() -> None:
    target = records(150)
    del target[99]
    [finding] = align(records(100), target, prefix=True).findings
    assert finding.what == "source record 99 (offset 101) is missing on the target"


def test_without_ends_a_longer_target_is_a_difference() -> None:
    assert len(findings(records(10), records(11))) == 1
