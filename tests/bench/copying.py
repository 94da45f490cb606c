"""Measures one copy: all records are on the source, a mirror starts, the target's end offsets are watched."""

from __future__ import annotations

import time
from dataclasses import dataclass

from heliograph.errors import HeliographError
from tests.bench.figures import Figures, Span, copy_figures
from tests.bench.gauge import Family, Sampler
from tests.bench.lab import Ends, Lab
from tests.bench.mirrors import Mirror

LOOK_SECONDS = 0.05
LIMIT_SECONDS = 420.0


class RunFailed(HeliographError):
    """A mirror did not do what was to be measured; the sentence says what."""


@dataclass(frozen=True)
class Wanted:
    """What must be on the target at the end."""

    remote: str
    records: int
    payload_mb: float


def measure_copy(lab: Lab, mirror: Mirror, wanted: Wanted) -> Figures:
    """Start the mirror, watch it to the last record, stop it. Nothing of it lives afterwards."""
    ends = Ends(lab.target.bootstrap, wanted.remote)
    ends.total()  # connects before the clock runs
    began = time.monotonic()
    mirror.start()
    family = Family(mirror.pid)
    try:
        with Sampler(family) as sampler:
            span = _watch(lab, mirror, ends, wanted, (family, began))
            sampler.sample()
        stopping = time.monotonic()
        mirror.stop()
        stopped = time.monotonic()
        arrived = ends.total()
    finally:
        mirror.stop()
        left = family.kill()
    return copy_figures(span) | {
        "peak_pss_mb": sampler.peak_pss_mb,
        "stop_seconds": stopped - stopping,
        "lost": max(0, wanted.records - arrived),
        "repeated": max(0, arrived - wanted.records),
        "left_behind": len(left),
    }


def _watch(lab: Lab, mirror: Mirror, ends: Ends, wanted: Wanted, since: tuple[Family, float]) -> Span:
    family, began = since
    first, first_cpu, brokers_cpu = 0.0, 0.0, 0.0
    while True:
        looked = time.monotonic() - began
        total = ends.total()
        if not total:
            first, first_cpu, brokers_cpu = looked, family.cpu_seconds(), lab.cpu_seconds()
        if total >= wanted.records:
            answered, used = time.monotonic() - began, lab.cpu_seconds() - brokers_cpu
            family.look()
            return Span(wanted.records, wanted.payload_mb, first, first_cpu, answered, family.cpu_seconds(), used)
        _check(mirror, looked, f"{total:,} of {wanted.records:,} records were on the target")
        time.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - began - looked)))


def _check(mirror: Mirror, seconds: float, so_far: str) -> None:
    if seconds > LIMIT_SECONDS:
        raise RunFailed(f"after {seconds:.0f} s {so_far}")
    try:
        _ = mirror.pid
    except HeliographError as error:
        raise RunFailed(f"it ended after {seconds:.0f} s, when {so_far}: {error}") from error
