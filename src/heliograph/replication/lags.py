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
    read = entry.scanned
    theirs = read.to if read is not None and read.ours_at < 0 else 0  # up to here nothing of it is ours
    return behind(source_end, entry.source_next + max(0, remote_end - max(entry.target_next, theirs)))


@dataclass(frozen=True)
class Place:
    """Where a lane stands on both sides, all of one moment, so that its numbers add up; -1 where one is not known."""

    source_end: int
    position: int
    target_next: int

    @property
    def lag(self) -> int:
        return behind(self.source_end, self.position)


def place_of(reported: Place | None, entry: LedgerEntry | None, logs: tuple[int, int], is_read: bool) -> Place:
    """The lane as its task reported it, or as the ledger has it where that is further; `logs` are both ends now.

    `is_read`: the task read the source's end a moment ago. Held against an end that is newer than the position, a healthy lane
    would always be behind. Without a report the ledger's position is held against both logs.
    """
    source_end, remote_end = logs
    written = (entry.source_next, entry.target_next) if entry is not None else (-1, -1)
    if reported is None or reported.position < 0:
        return Place(source_end, written[0], remote_end)
    position, target_next = max((reported.position, reported.target_next), written)
    end = reported.source_end if is_read else max(source_end, reported.source_end)
    return Place(max(end, position) if end >= 0 else end, position, target_next)


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
