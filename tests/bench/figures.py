"""The arithmetic of the benchmark: quantiles, ratios, the aims and whether they are met. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

HELIOGRAPH = "heliograph"
MIRRORMAKER = "mirrormaker2"
SYSTEMS = (HELIOGRAPH, MIRRORMAKER)

FAULTS = ("lost", "repeated", "left_behind")

Figures = dict[str, float]


@dataclass(frozen=True)
class Span:
    """A copy as it was watched. Times are seconds since the process started, CPU is of all its processes.

    `first` is the last look that saw nothing on the target, so that a rate is never flattered by the looks' distance.
    """

    records: int
    payload_mb: float
    first: float
    first_cpu: float
    last: float
    last_cpu: float
    brokers_cpu: float
    """Of both clusters, from the first record to the last."""


def copy_figures(span: Span) -> Figures:
    """`copy`: from the first record on the target to the last; `total`: from the start of the process."""
    seconds = span.last - span.first
    figures = {
        "start_seconds": span.first,
        "start_cpu_seconds": span.first_cpu,
        "copy_seconds": seconds,
        "records_per_second": span.records / seconds,
        "mb_per_second": span.payload_mb / seconds,
        "brokers_cpu_seconds": span.brokers_cpu,
    }
    for name, cpu in (("copy", span.last_cpu - span.first_cpu), ("total", span.last_cpu)):
        figures[f"{name}_cpu_seconds"] = cpu
        figures[f"{name}_cpu_ms_per_mb"] = 1_000 * cpu / span.payload_mb
        figures[f"{name}_cpu_us_per_record"] = 1_000_000 * cpu / span.records
    return figures


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all values do not exceed (nearest rank).

    >>> quantile([1.0, 2.0, 3.0, 4.0], 0.5)
    2.0
    """
    if not ordered:
        raise ValueError("a quantile of nothing: no record was measured")
    rank = -int(-share * len(ordered) // 1)
    return ordered[min(len(ordered), max(1, rank)) - 1]


def latency_figures(milliseconds: Iterable[float]) -> Figures:
    ordered = sorted(milliseconds)
    return {
        "p50_ms": quantile(ordered, 0.5),
        "p99_ms": quantile(ordered, 0.99),
        "p999_ms": quantile(ordered, 0.999),
        "max_ms": quantile(ordered, 1.0),
        "measured_records": len(ordered),
    }


def medians(rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of the rounds that did not fail; the slowest and the fastest, the worst fault and what failed stay in sight."""
    done = [figures for figures in rounds if "failed" not in figures]
    failed = [figures["failed"] for figures in rounds if "failed" in figures]
    outcome: dict[str, Any] = {"failed": failed[0]} if failed else {}
    for name in done[0] if done else ():
        pick = max if name in FAULTS else statistics.median
        outcome[name] = pick([figures[name] for figures in done])
    if len(done) > 1 and "records_per_second" in done[0]:
        rates = [figures["records_per_second"] for figures in done]
        outcome |= {"slowest_round": min(rates), "fastest_round": max(rates)}
    return outcome


def ratio(ours: float, theirs: float) -> float | None:
    """Heliograph's figure as a multiple of MirrorMaker 2's; None where that is 0."""
    return ours / theirs if theirs else None


class Bound(StrEnum):
    AT_LEAST = "at least"
    AT_MOST = "at most"
    BELOW = "below"


@dataclass(frozen=True)
class Aim:
    """What the ratio of a figure must be in these cases."""

    cases: tuple[str, ...]
    figure: str
    bound: Bound
    value: float

    def is_met(self, found: float) -> bool:
        match self.bound:
            case Bound.AT_LEAST:
                return found >= self.value
            case Bound.AT_MOST:
                return found <= self.value
            case Bound.BELOW:
                return found < self.value

    def __str__(self) -> str:
        return f"{self.bound} {self.value:g}×"


_LARGE = ("lz4", "zstd", "none")
_COPIES = (*_LARGE, "small", "single")
_STREAMS = ("latency-2000", "latency-200")

AIMS = (
    Aim(_LARGE, "records_per_second", Bound.AT_LEAST, 5.0),
    Aim(_LARGE, "copy_cpu_us_per_record", Bound.AT_MOST, 0.1),
    Aim(_LARGE, "total_cpu_us_per_record", Bound.AT_MOST, 0.1),
    Aim(("single",), "records_per_second", Bound.AT_LEAST, 1.5),
    Aim(_COPIES, "peak_pss_mb", Bound.BELOW, 1.0),
    Aim(_STREAMS, "p50_ms", Bound.AT_MOST, 1.0),
    Aim(_STREAMS, "p99_ms", Bound.AT_MOST, 1.0),
    Aim(("start",), "start_seconds", Bound.BELOW, 1.0),
)


def aim_of(case: str, figure: str) -> Aim | None:
    return next((aim for aim in AIMS if case in aim.cases and aim.figure == figure), None)


def judge(cases: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every aim of the measured cases, with `met`, `missed`, or `not measured` where a run failed."""
    return [_verdict(name, aim, case) for name, case in cases.items() for aim in AIMS if name in aim.cases]


def _verdict(name: str, aim: Aim, case: Mapping[str, Any]) -> dict[str, Any]:
    found = case_ratio(case, aim.figure)
    verdict = "not measured" if found is None else "met" if aim.is_met(found) else "missed"
    return {"case": name, "figure": aim.figure, "aim": str(aim), "ratio": found, "verdict": verdict}


def case_ratio(case: Mapping[str, Any], figure: str) -> float | None:
    ours, theirs = (case.get(system, {}).get(figure) for system in SYSTEMS)
    return None if ours is None or theirs is None else ratio(ours, theirs)


def faults(case: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What went wrong in a case, by system: a run that failed, records lost or repeated, processes left behind."""
    for system in SYSTEMS:
        figures = case.get(system, {})
        if "failed" in figures:
            yield system, str(figures["failed"])
        for what in ("lost", "repeated"):
            if figures.get(what):
                yield system, f"{int(figures[what]):,} records {what}"
        if figures.get("left_behind"):
            yield system, f"{int(figures['left_behind'])} processes lived on after it was stopped"
