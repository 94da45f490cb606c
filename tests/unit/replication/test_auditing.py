"""The account of a lane: every source offset in one place, and what is left over named."""

from __future__ import annotations

import pytest

from heliograph.replication.auditing import (
    Account,
    SourceView,
    TargetView,
    account_cleaned,
    account_counted,
    account_left_out,
    total,
)

SOURCE = SourceView(deleted=0, records=10, control=2, aborted=3, holes=1)
CUT = SourceView(deleted=5, records=10, control=2, aborted=3)
KNOWN = Account(control=2, aborted=3, compacted=1)


def test_accounts_are_added_and_sum_up_without_repeats() -> None:
    whole = total([Account(copied=1, repeated=4), Account(copied=2, missing=1), Account()])
    assert whole == Account(copied=3, missing=1, repeated=4)
    assert whole.offsets == 4
    assert total([]) == Account()


@pytest.mark.parametrize(
    ("account", "closes"),
    [(Account(copied=3), True), (Account(missing=1), False), (Account(repeated=1), False)],
)
def test_an_account_closes_when_nothing_is_left_over(account: Account, closes: bool) -> None:
    assert account.closes is closes


def test_what_was_left_out_was_skipped_or_lost() -> None:
    account = account_left_out(SourceView(deleted=4, records=1, control=2, aborted=3, holes=5))
    assert account == Account(control=2, aborted=3, compacted=5, skipped=1, lost=4)
    assert account.offsets == 15 and account.closes


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (SOURCE, TargetView(10, False), KNOWN + Account(copied=10)),
        (SOURCE, TargetView(8, False), KNOWN + Account(copied=8, missing=2)),
        (SOURCE, TargetView(11, False), KNOWN + Account(copied=10, repeated=1)),
        (SOURCE, TargetView(4, True), KNOWN + Account(copied=10)),
        (SOURCE, TargetView(11, True), KNOWN + Account(copied=10, repeated=1)),
        (CUT, TargetView(12, False), Account(copied=12, control=2, aborted=3, deleted=3)),
        (CUT, TargetView(15, False), Account(copied=15, control=2, aborted=3)),
        (CUT, TargetView(16, False), Account(copied=15, control=2, aborted=3, repeated=1)),
        (CUT, TargetView(9, False), Account(copied=9, control=2, aborted=3, deleted=5, missing=1)),
        (CUT, TargetView(99, True), Account(copied=10, control=2, aborted=3, deleted=5)),
    ],
)
def test_a_counted_window_closes_where_both_sides_agree(
    source: SourceView, target: TargetView, expected: Account
) -> None:
    found = account_counted(source, target)
    assert found == expected
    assert found.offsets == source.deleted + source.records + source.control + source.aborted + source.holes


@pytest.mark.parametrize("missing", [0, 3])
def test_a_cleaned_window_closes_when_every_record_was_found(missing: int) -> None:
    found = account_cleaned(SOURCE, missing)
    assert found == KNOWN + Account(copied=10 - missing, missing=missing)
    assert found.offsets == 16
