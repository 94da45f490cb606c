"""How a consumer group does, judged by a window of its commits: LinkedIn Burrow's rules, which need no threshold.

A partition's window holds its newest commits, each with the lag that it had then, and where the log ended at the newest looks.
Burrow reads every commit from `__consumer_offsets`; here groups are asked at intervals, so a look counts as a commit if the offset
changed, or if the group has members: who is there commits, though it may be the same again. Knows no brokers and no clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

Partition = tuple[str, int]


class Health(StrEnum):
    """From good to bad, in Burrow's words and order. A group is OK, WARN or ERR, a partition anything but ERR."""

    NOT_FOUND = "NOTFOUND"
    OK = "OK"
    WARN = "WARN"
    """It reads on, and falls behind."""
    ERR = "ERR"
    STOP = "STOP"
    """It has not committed for longer than the window spans."""
    STALL = "STALL"
    """It commits the same offset again and again."""
    REWIND = "REWIND"
    """It went back and is not where it was."""


_ORDER = list(Health)


@dataclass(frozen=True)
class HealthRules:
    """Burrow's `storage.intervals`, `evaluator.minimum-complete` and `evaluator.allowed-lag`."""

    intervals: int = 10
    minimum_complete: float = 0.0
    """A partition whose window is filled less than this is OK."""
    allowed_lag: int = 0


@dataclass(frozen=True)
class Commit:
    """`lag` is what it was at that time; None: not known."""

    offset: int
    time_ms: int
    lag: int | None


@dataclass
class Window:
    """The newest commits of a group for one partition, oldest first."""

    commits: deque[Commit]

    def see(self, offset: int, end: int | None, now_ms: int, is_live: bool) -> None:
        """A look at the group: `is_live` if it has members."""
        if self.commits and self.commits[-1].offset == offset and not is_live:
            return
        self.commits.append(Commit(offset, now_ms, None if end is None else max(0, end - offset)))


@dataclass(frozen=True)
class PartitionHealth:
    topic: str
    partition: int
    status: Health
    start: Commit | None
    end: Commit | None
    current_lag: int
    complete: float


@dataclass(frozen=True)
class GroupHealth:
    """The worst of its partitions, as a group's word; `complete` is the share of partitions whose window is full."""

    status: Health
    complete: float
    partitions: tuple[PartitionHealth, ...]
    max_lag: PartitionHealth | None
    total_lag: int

    @property
    def bad_partitions(self) -> tuple[PartitionHealth, ...]:
        return tuple(part for part in self.partitions if part.status is not Health.OK)


@dataclass
class GroupWindows:
    """All groups of one cluster, and where its partitions ended at the newest looks."""

    rules: HealthRules
    groups: dict[str, dict[Partition, Window]] = field(default_factory=dict)
    ends: dict[Partition, deque[int]] = field(default_factory=dict)

    def see_ends(self, found: Mapping[Partition, int]) -> None:
        """Partitions that are not in it are gone, or nobody reads them any more."""
        self.ends = {place: self.ends.get(place) or deque(maxlen=self.rules.intervals) for place in found}
        for place, end in found.items():
            self.ends[place].append(end)

    def see_groups(self, found: Mapping[str, Mapping[Partition, int]], live: Iterable[str], now_ms: int) -> None:
        """What each group committed, after `see_ends` of the same look; groups that are not in it are gone."""
        alive = set(live)
        before, self.groups = self.groups, {}
        for group, offsets in found.items():
            known = before.get(group, {})
            windows = {place: known.get(place) or Window(deque(maxlen=self.rules.intervals)) for place in offsets}
            for place, offset in offsets.items():
                windows[place].see(offset, self._end(place), now_ms, group in alive)
            self.groups[group] = windows

    def _end(self, place: Partition) -> int | None:
        ends = self.ends.get(place)
        return ends[-1] if ends else None

    def health(self, group: str, now_ms: int) -> GroupHealth | None:
        """None for a group that is not there."""
        windows = self.groups.get(group)
        if windows is None:
            return None
        return group_health(
            [
                partition_health(place, window.commits, self.ends.get(place, ()), now_ms, self.rules)
                for place, window in sorted(windows.items())
            ]
        )


def group_health(partitions: Sequence[PartitionHealth]) -> GroupHealth:
    worst = max((part.status for part in partitions), key=_ORDER.index, default=Health.OK)
    full = sum(part.complete == 1.0 for part in partitions)
    return GroupHealth(
        status=min(worst, Health.ERR, key=_ORDER.index),
        complete=full / len(partitions) if partitions else 0.0,
        partitions=tuple(partitions),
        max_lag=max(partitions, key=lambda part: part.current_lag, default=None),
        total_lag=sum(part.current_lag for part in partitions),
    )


def partition_health(
    place: Partition, commits: Iterable[Commit], ends: Iterable[int], now_ms: int, rules: HealthRules
) -> PartitionHealth:
    """`ends` are where the log ended at the newest looks, the newest last."""
    window, logs = list(commits), list(ends)
    if not window:
        return PartitionHealth(*place, Health.OK, None, None, 0, 0.0)
    lag = max(0, logs[-1] - window[-1].offset) if logs else 0
    complete = len(window) / rules.intervals
    status = judge(window, logs, lag, now_ms, rules.allowed_lag) if complete >= rules.minimum_complete else Health.OK
    return PartitionHealth(*place, status, window[0], window[-1], lag, complete)


def judge(
    commits: Sequence[Commit], ends: Sequence[int], current_lag: int, now_ms: int, allowed_lag: int = 0
) -> Health:
    """The rules in Burrow's order; the first that applies counts."""
    if current_lag <= allowed_lag:
        return Health.OK
    if _has_stopped(commits, now_ms) and not _was_at_the_end(commits, ends):
        return Health.STOP
    if commits[-1].offset < max(commit.offset for commit in commits):
        return Health.REWIND
    if any(commit.lag is not None and commit.lag <= allowed_lag for commit in commits):
        return Health.OK
    if len({commit.offset for commit in commits}) == 1:
        return Health.STALL
    return Health.WARN if _never_caught_up(commits) else Health.OK


def _has_stopped(commits: Sequence[Commit], now_ms: int) -> bool:
    first, last = commits[0].time_ms, commits[-1].time_ms
    return now_ms - last > last - first


def _was_at_the_end(commits: Sequence[Commit], ends: Sequence[int]) -> bool:
    """Not long ago the log ended where the last commit is: what came since may be too new to have been read."""
    return any(end <= commits[-1].offset for end in ends)


def _never_caught_up(commits: Sequence[Commit]) -> bool:
    lags = [commit.lag for commit in commits if commit.lag is not None]
    return all(later >= earlier for earlier, later in pairwise(lags))
