from __future__ import annotations

from dataclasses import replace

from heliograph.replication.lags import LogSize, behind, bytes_behind, target_lag
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


def test_bytes_are_the_average_of_the_log() -> None:
    assert bytes_behind(10, LogSize(0, 100, 5_000)) == 500
    assert bytes_behind(10, LogSize(90, 100, 5_000)) == 5_000
    assert bytes_behind(200, LogSize(90, 100, 5_000)) == 5_000, "what retention took is no longer to be copied"
    assert bytes_behind(0, LogSize(100, 100, 0)) == 0
    assert bytes_behind(3, LogSize(100, 100, 0)) == -1
    assert bytes_behind(-1, LogSize(0, 100, 5_000)) == -1
    assert bytes_behind(1, LogSize(0, 100, -1)) == -1
    assert bytes_behind(1, LogSize(-1, 100, 10)) == -1
