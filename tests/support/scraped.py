"""Metrics as a scraper sees them, and the rule that every one of them is caused by a test which sees it change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec

from heliograph.metrics.table import METRICS
from tests.support.exposition import Family

P = ParamSpec("P")

CAUSES: dict[str, list[str]] = {}
"""By metric: the tests that cause it."""
CONSTANT = {"heliograph_run_info", "heliograph_run_start_time_seconds", "heliograph_flow_info"}
"""What says the same as long as a run lives: it is enough to look."""
_seen: dict[str, dict[object, set[float]]] = {}
"""By metric and series: what the test that runs now has read."""


def causes(*names: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """The test causes these metrics: it fails if it did not see a series of each say one thing and then another."""

    def mark(test: Callable[P, None]) -> Callable[P, None]:
        for name in names:
            CAUSES.setdefault(name, []).append(test.__name__)

        @wraps(test)
        def watched(*args: P.args, **kwargs: P.kwargs) -> None:
            _seen.clear()
            test(*args, **kwargs)
            still = [name for name in names if not _has_changed(name)]
            assert not still, f"not seen to change: {still}"

        return watched

    return mark


def _has_changed(name: str) -> bool:
    least = 1 if name in CONSTANT else 2
    return any(len(values) >= least for values in _seen.get(name, {}).values())


@dataclass(frozen=True)
class Scrape:
    """All metrics at one moment; those that have a flow as label are this one's unless another is named."""

    families: dict[str, Family]
    flow: str

    def of(self, name: str, end: str = "", **labels: str) -> float:
        """A number; 0 if it is not told yet, as rate() would have it."""
        mine = {"flow": self.flow} if "flow" in METRICS[name].labels else {}
        family = self.families.get(name)
        value = (family.value(end, **{**mine, **labels}) or 0.0) if family is not None else 0.0
        return _read(name, (end, *sorted(labels.items())), value)

    def sum(self, name: str, **labels: str) -> float:
        """Over all series with these labels."""
        family = self.families.get(name)
        samples = family.samples.items() if family is not None else ()
        value = sum(value for (_, have), value in samples if set(labels.items()) <= have)
        return _read(name, ("sum", *sorted(labels.items())), value)


def _read(name: str, series: object, value: float) -> float:
    _seen.setdefault(name, {}).setdefault(series, set()).add(value)
    return value
