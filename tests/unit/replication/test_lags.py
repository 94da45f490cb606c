from __future__ import annotations

from dataclasses import replace

from heliograph.model.lanes import Scanned
from heliograph.replication.lags import LogSize, Place, behind, bytes_behind, place_of, target_lag
from tests.support.entries import FRESH


def test_a_lag_is_the_distance_to_the_end_and_never_less_than_nothing() -> None:
    assert (behind(7, 5), behind(5, 5), behind(5, 7)) == (2, 0, 0)
    assert (behind(-1, 5), behind(5, -1)) == (-1, -1)


def test_seven_records_against_five_are_two() -> None:
    at = replace(FRESH, source_next=0, target_next=0)
    assert target_lag(at, 7, 5) == 2


def test_the_targets_end_counts_from_what_the_ledger_knows() -> None:
    """Source offsets 0 to 99 with a marker at 50 and one at 99 are 98 records."""
    at = replace(FRESH, source_next=100, target_next=98)
    assert target_lag(at, 100, 98) == 0
    assert target_lag(at, 110, 98) == 10
    assert target_lag(at, 110, 105) == 3
    assert target_lag(at, 110, 97) == 10, "what the target lost since is told by attach, not by the lag"
    assert target_lag(at, -1, 98) == -1
    assert target_lag(at, 100, -1) == -1
    assert target_lag(None, 100, 98) == -1


def test_what_others_wrote_into_the_remote_partition_is_no_copy() -> None:
    at = replace(FRESH, source_next=100, target_next=98)
    assert target_lag(replace(at, scanned=Scanned(500, 0)), 110, 503) == 7
    assert target_lag(replace(at, scanned=Scanned(500, 0, 400)), 110, 103) == 5, "some of it is ours"


def test_bytes_are_the_average_of_the_log() -> None:
    assert bytes_behind(10, LogSize(0, 100, 5_000)) == 500
    assert bytes_behind(10, LogSize(90, 100, 5_000)) == 5_000
    assert bytes_behind(200, LogSize(90, 100, 5_000)) == 5_000, "what retention took is no longer to be copied"
    assert bytes_behind(0, LogSize(100, 100, 0)) == 0
    assert bytes_behind(3, LogSize(100, 100, 0)) == -1
    assert bytes_behind(-1, LogSize(0, 100, 5_000)) == -1
    assert bytes_behind(1, LogSize(0, 100, -1)) == -1
    assert bytes_behind(1, LogSize(-1, 100, 10)) == -1


AT = replace(FRESH, source_next=100, target_next=90)


def test_a_lane_that_is_read_stands_where_its_task_saw_it_whatever_the_logs_have_got_since() -> None:
    """Held against newer ends a healthy lane under load would never be said to be without lag."""
    reported = Place(source_end=120, position=120, target_next=110)
    assert place_of(reported, AT, (150, 139), is_read=True) == reported
    assert reported.lag == 0


def test_what_nobody_reads_is_held_against_the_source_as_it_is_now() -> None:
    reported = Place(120, 120, 110)
    assert place_of(reported, AT, (150, 110), is_read=False) == Place(150, 120, 110)
    assert place_of(reported, AT, (-1, -1), is_read=False) == reported, "a source that does not answer says nothing"


def test_a_ledger_that_is_further_than_the_report_counts_with_its_own_pair() -> None:
    assert place_of(Place(95, 95, 85), AT, (150, 139), is_read=True) == Place(100, 100, 90)
    assert place_of(Place(-1, 95, 85), AT, (-1, -1), is_read=True) == Place(-1, 100, 90), "unknown is not zero"
    assert place_of(Place(95, 95, 85), None, (150, 139), is_read=True) == Place(95, 95, 85)


def test_without_a_report_the_ledger_is_held_against_both_logs() -> None:
    for nothing in (None, Place(-1, -1, -1)):
        assert place_of(nothing, AT, (150, 139), is_read=False) == Place(150, 100, 139)
    assert place_of(None, None, (150, -1), is_read=False) == Place(150, -1, -1)
    assert Place(150, -1, -1).lag == -1
