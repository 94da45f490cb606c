"""Does every source offset of a lane have a place in the account? What both logs show of a window, to a sum that must close.

`copied` is measured on the target, everything else on the source. What is left over is `missing` or `repeated`: a finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Account:
    """Source offsets by what became of them. `repeated` is of the target: records that lie there more than once."""

    copied: int = 0
    control: int = 0
    aborted: int = 0
    came_home: int = 0
    """Written by the flow in the other direction."""
    compacted: int = 0
    """Cleaned away on the source, before or after they were copied."""
    skipped: int = 0
    """Left out by on.bad.record, or by a policy that went on behind a damage; an event tells of each."""
    lost: int = 0
    """Deleted from the source before they were copied, or left out and deleted since."""
    deleted: int = 0
    """No longer on the source, and not on the target: markers, aborted records, or deleted there too."""
    not_yet: int = 0
    missing: int = 0
    repeated: int = 0

    @property
    def offsets(self) -> int:
        return sum(getattr(self, field.name) for field in fields(self) if field.name != "repeated")

    @property
    def closes(self) -> bool:
        return not self.missing and not self.repeated

    def __add__(self, other: Account) -> Account:
        return Account(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


@dataclass(frozen=True)
class SourceView:
    """The source's side of a window: `deleted` offsets below its log start, then what its headers show."""

    deleted: int
    records: int
    control: int
    aborted: int
    holes: int = 0
    came_home: int = 0


@dataclass(frozen=True)
class TargetView:
    """The target's side: records of ours, and whether its log begins inside the window."""

    records: int
    cut: bool


def account_left_out(source: SourceView) -> Account:
    """A window that has no place on the target."""
    return Account(
        control=source.control,
        aborted=source.aborted,
        came_home=source.came_home,
        compacted=source.holes,
        skipped=source.records,
        lost=source.deleted,
    )


def account_counted(source: SourceView, target: TargetView) -> Account:
    """A window in which nothing was cleaned: as many records on both sides, where both are whole."""
    known = Account(control=source.control, aborted=source.aborted, came_home=source.came_home, compacted=source.holes)
    if target.cut:
        # What the target deleted was there; more than was ever read cannot be.
        return known + Account(
            copied=source.records,
            deleted=source.deleted,
            repeated=0 if source.deleted else max(0, target.records - source.records),
        )
    beyond = target.records - source.records
    before = min(max(0, beyond), source.deleted)
    return known + Account(
        copied=min(source.records, target.records) + before,
        deleted=source.deleted - before,
        missing=max(0, -beyond),
        repeated=max(0, beyond - source.deleted),
    )


def account_cleaned(source: SourceView, missing: int) -> Account:
    """A window in which a cleaner was: every record that the source still has was looked for."""
    return Account(
        copied=source.records - missing,
        control=source.control,
        aborted=source.aborted,
        came_home=source.came_home,
        compacted=source.holes,
        deleted=source.deleted,
        missing=missing,
    )


def total(accounts: Iterable[Account]) -> Account:
    return sum(accounts, Account())
