"""Where a lane begins: the words of start.from, what they mean for a partition, and when a comparison is due."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heliograph.errors import ConfigError
from heliograph.model.lanes import Identity, LaneId, LedgerEntry, Rule
from heliograph.replication.starts import (
    From,
    Look,
    NoPlace,
    Place,
    Span,
    StartFrom,
    needs_look,
    parse_offsets,
    parse_start,
    place,
    taken_over,
)
from heliograph.replication.tail import Stopped, Unlike

SPAN = Span(10, 100)
EARLIEST, LATEST = StartFrom(From.EARLIEST), StartFrom(From.LATEST)
ENTRY = LedgerEntry(LaneId("A->B", "t", 0), 0, Identity(1, 0), Rule(), "c", "s", "t", 0, 0, 50, -1, 40, 40)


@pytest.mark.parametrize(
    "text",
    ["earliest", "latest", "timestamp:2026-05-01T12:00:00Z", "timestamp:2026-05-01", "offsets:my:file", "group:g"],
)
def test_a_start_is_read_and_shown_as_it_was_written(text: str) -> None:
    assert str(parse_start(f" {text} ")) == text


@pytest.mark.parametrize(
    "text", ["", "first", "earliest:1", "timestamp", "timestamp:", "timestamp:noon", "offsets: ", "group:", "latest:"]
)
def test_anything_else_is_refused_with_the_allowed_values(text: str) -> None:
    with pytest.raises(ValueError, match="earliest, latest, timestamp:ISO"):
        parse_start(text)


def test_a_time_without_a_zone_is_utc() -> None:
    assert parse_start("timestamp:2026-05-01T12:00:00").timestamp_ms == 1_777_636_800_000
    assert parse_start("timestamp:2026-05-01T14:00:00+02:00").timestamp_ms == 1_777_636_800_000


def test_both_ends_of_the_log() -> None:
    assert place(EARLIEST, SPAN, None, LATEST) == Place(10, "start.from = earliest")
    assert place(LATEST, SPAN, None, EARLIEST) == Place(100, "start.from = latest")


def test_a_time_after_the_last_record_is_the_end() -> None:
    wish = parse_start("timestamp:2026-05-01")
    assert place(wish, SPAN, 42, EARLIEST) == Place(42, "start.from = timestamp:2026-05-01")
    assert place(wish, SPAN, None, EARLIEST) == Place(100, "start.from = timestamp:2026-05-01: no record is that young")


def test_a_partition_that_the_group_does_not_name_begins_as_a_consumer_would() -> None:
    wish = parse_start("group:g")
    why = "start.from = group:g does not name this partition: consumer.auto.offset.reset = "
    assert place(wish, SPAN, None, EARLIEST) == Place(10, why + "earliest")
    assert place(wish, SPAN, None, LATEST) == Place(100, why + "latest")


def test_an_offset_outside_the_log_is_moved_to_its_start_or_refused() -> None:
    wish = parse_start("offsets:f")
    assert place(wish, SPAN, 100, EARLIEST) == Place(100, "start.from = offsets:f")
    assert place(wish, SPAN, 3, EARLIEST) == Place(10, "start.from = offsets:f gives offset 3, the source begins at 10")
    refused = place(wish, SPAN, 101, EARLIEST)
    assert isinstance(refused, NoPlace) and "gives offset 101, the source ends at 100" in refused.reason


def test_an_offsets_file_has_the_form_of_kafkas_own_tool() -> None:
    text = '"orders",0,15\norders,1, 7 # by hand\n\n# nothing\n'
    assert parse_offsets(text, "f.csv") == {("orders", 0): 15, ("orders", 1): 7}


def test_every_wrong_line_of_an_offsets_file_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_offsets("orders,0\norders,0,5\norders,x,5\n,0,5\norders,0,-5", "f.csv")
    assert [fault.partition(": ")[0] for fault in caught.value.faults] == ["f.csv:1", "f.csv:3", "f.csv:4", "f.csv:5"]


def test_a_flow_that_mirrormaker_2_never_carried_needs_no_look() -> None:
    assert needs_look(ENTRY, None, target_end=77) is Look.NONE


def test_progress_that_changed_since_asks_for_a_comparison() -> None:
    assert needs_look(ENTRY, 60, target_end=40) is Look.COMPARE
    assert needs_look(replace(ENTRY, mm2_offset=49), 49, target_end=40) is Look.NONE


def test_records_after_the_ledgers_end_ask_whose_they_are() -> None:
    """MirrorMaker 2 was killed before it stored anything, or a run of ours was."""
    assert needs_look(replace(ENTRY, mm2_offset=49), 49, target_end=41) is Look.FOREIGN


REMOTE = "A.t-0"


def test_a_tail_with_more_than_was_stored_moves_the_start() -> None:
    found = taken_over(Stopped(60, 4, 9), 50, SPAN, REMOTE)
    known = "MirrorMaker 2 or the ledger has source offset 50 as copied"
    assert found == Place(60, f"{known}, A.t-0 has 9 records more", 4)
    assert taken_over(Stopped(51, -1, 0), 50, SPAN, REMOTE) == Place(51, f"{known}, A.t-0 has 0 records more")
    assert taken_over(Stopped(48, 4, 0), 50, SPAN, REMOTE) == Place(48, f"{known}, A.t-0 ends with 47", 4)


def test_an_empty_remote_partition_goes_on_as_stored() -> None:
    found = taken_over(None, 50, SPAN, REMOTE)
    assert isinstance(found, Place) and found.offset == 51 and found.reason.endswith("A.t-0 is empty")


def test_progress_beyond_the_source_is_refused() -> None:
    found = taken_over(None, 100, SPAN, REMOTE)
    assert isinstance(found, NoPlace) and "the source ends at 100" in found.reason


def test_a_tail_unlike_the_source_is_refused_unless_the_source_has_forgotten_it() -> None:
    refused = taken_over(Unlike(), 50, SPAN, REMOTE)
    assert isinstance(refused, NoPlace) and "--reset" in refused.reason
    forgotten = taken_over(Unlike(), 5, SPAN, REMOTE)
    assert isinstance(forgotten, Place) and forgotten.offset == 6


def test_without_stored_progress_only_a_tail_like_the_source_counts() -> None:
    assert taken_over(None, None, SPAN, REMOTE) is None
    assert taken_over(Unlike(), None, SPAN, REMOTE) is None
    assert taken_over(Stopped(60, 4, 9), None, SPAN, REMOTE) == Place(60, "A.t-0 ends with source record 59", 4)
