"""How long delivery stood still after each fault, from when records arrived. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import inf

from tests.histories.history import Arrival, Fault, Place

_MOMENT_SECONDS = 1.0
"""A partition that got its last record so shortly before a fault stood still because of it."""


def standstills(faults: list[Fault], arrivals: list[Arrival]) -> list[tuple[Fault, float]]:
    """By fault: the longest time in which some partition got nothing.

    Producers write to every partition all the time, so a partition that gets nothing stands still. A pause belongs to the fault
    after which it began, also if others follow before it ends.
    """
    times: dict[Place, list[float]] = {}
    for arrival in arrivals:
        times.setdefault(arrival.place, []).append(arrival.at)
    starts = [fault.at for fault in faults]
    found = []
    for fault, until in zip(faults, [*starts[1:], inf], strict=True):
        found.append((fault, max((_longest(fault.at, until, each) for each in times.values()), default=0.0)))
    return found


def _longest(begin: float, until: float, times: Iterable[float]) -> float:
    """The longest pause that began with a fault at `begin`, and not with the next one."""
    first, beyond = begin - _MOMENT_SECONDS, until - _MOMENT_SECONDS
    pauses = [after - max(before, begin) for before, after in pairwise(times) if first <= before < beyond]
    return max([0.0, *pauses])


def by_kind(found: list[tuple[Fault, float]]) -> dict[str, list[float]]:
    """Faults of one kind together, whichever broker it was and however long it lasted."""
    kinds: dict[str, list[float]] = {}
    for fault, seconds in found:
        kinds.setdefault(fault.kind, []).append(seconds)
    return kinds
