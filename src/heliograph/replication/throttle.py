"""Byte limits of flows and topics: a bucket that fills with time, and how a limit is shared out among several tasks.

A limit is named by its key: a flow (`A->B`) or a topic of it (`A->B/orders`). A helping may be larger than what the bucket
holds (a batch comes whole or not at all): the bucket is then in debt, and nothing passes until that is paid, so that the
average is exact. The clock is an argument. Must not know who reads what.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TypeVar

from heliograph.model.lanes import LaneId

_BURST_SECONDS = 0.1
_HEADROOM = 1.5
_FOOT_IN_THE_DOOR = 0.1

Who = TypeVar("Who", bound=Hashable)


class Bucket:
    """Fills with `rate` bytes per second up to a tenth of a second's worth."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._level = rate * _BURST_SECONDS
        self._at = now

    def level(self, now: float) -> float:
        """Bytes that may pass now; not above 0 means none."""
        self._level = min(self._level + (now - self._at) * self._rate, self._rate * _BURST_SECONDS)
        self._at = now
        return self._level

    def spend(self, size: int, now: float) -> None:
        self._level = self.level(now) - size

    def change(self, rate: float, now: float) -> None:
        """What is owed stays owed."""
        self.level(now)
        self._rate = rate
        self._level = min(self._level, rate * _BURST_SECONDS)

    def wait(self, now: float) -> float:
        """Seconds until something may pass; who has to wait waits a little longer, so that a request is worth it."""
        level = self.level(now)
        return 0.0 if level > 0 else _BURST_SECONDS / 2 - level / self._rate


@dataclass(frozen=True)
class Spending:
    """What a task used of its limits since it was last asked: bytes by key, and the keys that held it back."""

    spent: Mapping[str, int]
    held: tuple[str, ...]


class Throttle:
    """The buckets of one task. Without one for a lane's flow or topic nothing is limited."""

    def __init__(self, clock: Callable[[], float], rates: Mapping[str, float] | None = None) -> None:
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}
        self._spent: dict[str, int] = {}
        self._held: set[str] = set()
        self.change(rates or {})

    def change(self, rates: Mapping[str, float]) -> None:
        """These limits and no others."""
        now = self._clock()
        for key in self._buckets.keys() - rates.keys():
            del self._buckets[key]
        for key, rate in rates.items():
            if key in self._buckets:
                self._buckets[key].change(rate, now)
            else:
                self._buckets[key] = Bucket(rate, now)

    @property
    def has_limits(self) -> bool:
        return bool(self._buckets)

    def allowance(self, lane: LaneId) -> float:
        """Bytes of this lane that may pass now; infinite without a limit, 0 when it is held back."""
        now = self._clock()
        least = inf
        for key in self._keys(lane):
            level = self._buckets[key].level(now)
            if level <= 0:
                self._held.add(key)
            least = min(least, level)
        return max(0.0, least)

    def spend(self, lane: LaneId, size: int) -> None:
        now = self._clock()
        for key in self._keys(lane):
            self._buckets[key].spend(size, now)
            self._spent[key] = self._spent.get(key, 0) + size

    def wait(self, lanes: Iterable[LaneId]) -> float:
        """Seconds until one of these lanes may pass something; 0 if one may now."""
        now = self._clock()
        waits = (max((self._buckets[key].wait(now) for key in self._keys(lane)), default=0.0) for lane in lanes)
        return min(waits, default=0.0)

    def take_spending(self) -> Spending:
        spent, held = self._spent, tuple(sorted(self._held))
        self._spent, self._held = {}, set()
        return Spending(spent, held)

    def _keys(self, lane: LaneId) -> list[str]:
        if not self._buckets:
            return []  # asked for every lane of every read: without limits it must cost nothing
        return [key for key in (lane.flow, topic_key(lane.flow, lane.topic)) if key in self._buckets]


def topic_key(flow: str, topic: str) -> str:
    return f"{flow}/{topic}"


def belongs(lane_key: str, key: str) -> bool:
    """Whether a lane counts towards a limit."""
    return lane_key.startswith(f"{key}/")


@dataclass(frozen=True)
class Use:
    """What one task does with its share: bytes per second, and whether it was held back."""

    rate: float
    wants_more: bool


def shares(limit: float, uses: Mapping[Who, Use]) -> dict[Who, float]:
    """A limit shared out: who was not held back keeps a little more than it uses, the others have the rest in equal parts.

    The shares are never more than the limit together, and nobody's is 0.
    """
    fair = limit / len(uses) if uses else 0.0
    hungry = [who for who, use in uses.items() if use.wants_more]
    if not hungry:
        return dict.fromkeys(uses, fair)
    modest = {
        who: min(fair, use.rate * _HEADROOM + fair * _FOOT_IN_THE_DOOR)
        for who, use in uses.items()
        if not use.wants_more
    }
    each = (limit - sum(modest.values())) / len(hungry)
    return modest | dict.fromkeys(hungry, each)
