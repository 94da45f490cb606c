"""A lane's lag in three ways, from offsets that brokers and the ledger tell. Knows no brokers.

End minus committed progress counts what is not safely written down as copied; end minus read position leaves out what was read and
is still on its way; source end against target end asks nobody but the two logs. -1 where a number is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

from heliograph.model.lanes import LedgerEntry


def behind(end: int, position: int) -> int:
    """A position may be newer than the end that it is held against: then nothing is behind."""
    return max(0, end - position) if end >= 0 and position >= 0 else -1


def target_lag(entry: LedgerEntry | None, source_end: int, remote_end: int) -> int:
    """What the target has beyond the entry's place was copied since; markers that the entry has passed count as copied."""
    if entry is None or remote_end < 0:
        return -1
    return behind(source_end, entry.source_next + max(0, remote_end - entry.target_next))


@dataclass(frozen=True)
class LogSize:
    """A source partition: its first offset, its end, and its bytes on disk (-1: not known)."""

    start: int
    end: int
    size: int


def bytes_behind(lag: int, log: LogSize) -> int:
    """About how many bytes a lag is, by the average of the log."""
    offsets = log.end - log.start
    if lag < 0 or log.size < 0 or log.start < 0 or offsets <= 0:
        return 0 if lag == 0 else -1
    return min(lag, offsets) * log.size // offsets
