"""Adding up what many tasks count, each from 0: nested numbers in, nested sums out.

Reports are running totals, so the sum grows by what is new in each. Peaks are the most of the last while.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PEAKS = "peaks"


def add_news(sums: dict[str, Any], now: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Add to `sums` what `now` has more than `before`; all three have the same shape. Peaks are no sums and are left out."""
    for name, value in now.items():
        if name == PEAKS:
            continue
        if isinstance(value, Mapping):
            add_news(sums.setdefault(name, {}), value, before.get(name, {}))
        elif isinstance(value, list):
            old = before.get(name) or [0] * len(value)
            sums[name] = [
                sum_ + new - then for sum_, new, then in zip(_padded(sums, name, value), value, old, strict=True)
            ]
        else:
            sums[name] = sums.get(name, 0) + value - before.get(name, 0)


def _padded(sums: Mapping[str, Any], name: str, value: list[Any]) -> list[Any]:
    found: list[Any] = sums.get(name) or [0] * len(value)
    return found


def difference(now: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """What came to `before` to make it `now`."""
    found: dict[str, Any] = {}
    add_news(found, now, before)
    return found


def copy_of(sums: Mapping[str, Any]) -> dict[str, Any]:
    return difference(sums, {})


class Peaks:
    """The most of each name within the last one to two spans: two samples that take turns."""

    def __init__(self, span_s: float) -> None:
        self._span = span_s
        self._since = 0.0
        self._now: dict[str, float] = {}
        self._before: dict[str, float] = {}

    def take(self, found: Mapping[str, float], now: float) -> None:
        self._turn(now)
        for name, value in found.items():
            if value > self._now.get(name, 0):
                self._now[name] = value

    def most(self, now: float) -> dict[str, float]:
        self._turn(now)
        return {name: max(self._now.get(name, 0), self._before.get(name, 0)) for name in {*self._now, *self._before}}

    def _turn(self, now: float) -> None:
        if now - self._since >= self._span:
            self._before = self._now if now - self._since < 2 * self._span else {}
            self._now, self._since = {}, now
