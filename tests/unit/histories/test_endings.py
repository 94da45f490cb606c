"""Of each way in which a run can end: whether the mirror is to blame."""

from __future__ import annotations

import pytest

from tests.histories.endings import after_sigterm, by_itself

CARRYING = "Spark is starting\n9 lanes: 100 records/s, 10 kB/s, 0 records behind\nwhat it said last\n"
STARTING = "Spark is starting\nSpark did not start\n"


@pytest.mark.parametrize("was_hit", [True, False])
def test_a_run_that_carried_must_not_end_by_itself_whatever_hit_it(was_hit: bool) -> None:
    assert by_itself(1, CARRYING, was_hit) == ("the mirror ended by itself with 1: what it said last", True)


def test_a_run_that_nothing_hit_must_not_end_while_it_starts() -> None:
    assert by_itself(1, STARTING, False) == ("the mirror ended by itself with 1: Spark did not start", True)


def test_a_run_whose_spark_was_killed_before_it_worked_may_end() -> None:
    ending = by_itself(1, STARTING, True)
    assert ending == ("the mirror was hit while it started, and ended with 1: Spark did not start", False)


def test_a_run_that_ends_without_a_word_has_no_last_line() -> None:
    assert by_itself(-9, "", False) == ("the mirror ended by itself with -9: ", True)


def test_after_sigterm_there_is_nothing_to_say_of_a_run_that_ends_well() -> None:
    assert after_sigterm(0, CARRYING) is None


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (None, "the mirror did not end after SIGTERM and was killed"),
        (1, "the mirror ended with 1 after SIGTERM"),
        (-15, "the mirror ended with -15 after SIGTERM"),
    ],
)
def test_after_sigterm_a_run_that_carried_must_end_and_with_zero(status: int | None, text: str) -> None:
    assert after_sigterm(status, CARRYING) == (text, True)


def test_sigterm_may_end_python_before_it_knows_what_to_do() -> None:
    assert after_sigterm(-15, "") == ("SIGTERM met a mirror whose Python was still being loaded", False)
