"""What the tasks of a run measured, summed over tasks and epochs: by flow, by slot, by target; and the figures of the last seconds.

Takes reports as they come, is asked once a second. What it says is a part of the scene (`meters`) and of the telemetry; the
metrics are made of it (metrics/).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from heliograph.metrics.histogram import LATENCY_BOUNDS_MS, Histogram, quantile
from heliograph.metrics.meters import BUSY, KINDS
from heliograph.metrics.series import GAP_BOUNDS_S
from heliograph.metrics.sums import PEAKS, Peaks, add_news, copy_of, difference

WINDOW_SECONDS = 15.0
_PEAK_SECONDS = 30.0
_SLOT_SUMS = ("seconds", "io_seconds", "time")
_SLOT_STANDS = ("epoch", "process", "memory_peak")

Sums = dict[str, Any]


class _Moment(NamedTuple):
    """All sums at the beginning of a window."""

    flows: dict[str, Sums]
    targets: dict[str, Sums]
    slots: dict[str, Sums]


class Meters:
    """`now` is always the driver's monotonic clock."""

    def __init__(self) -> None:
        self.flows: dict[str, Sums] = {}
        self.targets: dict[str, Sums] = {}
        self.slots: dict[str, Sums] = {}
        """By number: what the tasks in that place did one after the other."""
        self._stands: dict[str, Sums] = {}
        self._seen: dict[str, Mapping[str, Any]] = {}
        self._peaks: dict[tuple[str, str], Peaks] = {}
        self._windows: deque[tuple[float, _Moment]] = deque()
        self._gaps: dict[str, Histogram] = {}
        self._last_gap: dict[str, float] = {}
        self._epochs = 0
        self._epoch_seconds = self._last_epoch = 0.0

    # -- what is heard ------------------------------------------------------------------------------------------------

    def take(self, attempt: str, about: Mapping[str, Any], now: float) -> None:
        """A task's report of itself; one of before it measured anything says nothing."""
        if "time" not in about:
            return
        before = self._seen.get(attempt, {})
        self._seen[attempt] = about
        number = str(about["slot"])
        self._stands[number] = {name: about[name] for name in _SLOT_STANDS if name in about}
        mine = {name: about[name] for name in _SLOT_SUMS}
        add_news(self.slots.setdefault(number, {}), mine, before)
        for kind, sums in (("flows", self.flows), ("targets", self.targets)):
            for name, found in about[kind].items():
                add_news(sums.setdefault(name, {}), found, before.get(kind, {}).get(name, {}))
                self._peaks.setdefault((kind, name), Peaks(_PEAK_SECONDS)).take(found[PEAKS], now)

    def gap(self, lane: str, seconds: float) -> None:
        """For so long nobody read a lane, between two tasks."""
        flow = lane.split("/", 1)[0]
        self._gaps.setdefault(flow, Histogram(GAP_BOUNDS_S)).add(seconds)
        self._last_gap[flow] = seconds

    def epoch_ended(self, seconds: float) -> None:
        self._epochs += 1
        self._epoch_seconds += seconds
        self._last_epoch = seconds

    def forget_attempts(self, alive: set[str]) -> None:
        self._seen = {attempt: about for attempt, about in self._seen.items() if attempt in alive}

    def tick(self, now: float) -> None:
        """Once a second: the beginning of a window that is looked at later."""
        self._windows.append((now, _Moment(*map(_copies, (self.flows, self.targets, self.slots)))))
        while len(self._windows) > 1 and now - self._windows[1][0] >= WINDOW_SECONDS:
            self._windows.popleft()

    # -- what is said -------------------------------------------------------------------------------------------------

    def view(self, now: float, events: Mapping[tuple[str, str], int]) -> dict[str, Any]:
        """All of it, as JSON; `events` are counted by flow and kind."""
        then, before = self._windows[0] if self._windows else (now, _Moment({}, {}, {}))
        passed = max(now - then, 1e-9)
        return {
            "flows": {
                name: {"totals": sums, "window": self.window_of(name, now), "gaps": self._gap_view(name)}
                for name, sums in self.flows.items()
            },
            "targets": {
                name: {
                    "totals": sums,
                    "window": _target_window(
                        difference(sums, before.targets.get(name, {})), passed, self._most("targets", name, now)
                    ),
                }
                for name, sums in self.targets.items()
            },
            "slots": {
                number: {**sums, **_slot_window(difference(sums, before.slots.get(number, {}))), **self._stands[number]}
                for number, sums in self.slots.items()
            },
            "epochs": {"ended": self._epochs, "seconds": self._epoch_seconds, "last_s": self._last_epoch},
            "events": [[flow, kind, count] for (flow, kind), count in sorted(events.items())],
        }

    def window_of(self, flow: str, now: float) -> dict[str, Any]:
        """The figures of a flow's last seconds; empty where nothing is known."""
        if flow not in self.flows:
            return {}
        then, before = self._windows[0] if self._windows else (now, _Moment({}, {}, {}))
        news = difference(self.flows[flow], before.flows.get(flow, {}))
        return _flow_window(news, max(now - then, 1e-9), self._most("flows", flow, now))

    def _most(self, kind: str, name: str, now: float) -> dict[str, float]:
        return self._peaks[kind, name].most(now)

    def _gap_view(self, flow: str) -> dict[str, Any]:
        found = self._gaps.get(flow)
        if found is None:
            return {"counts": [0] * (len(GAP_BOUNDS_S) + 1), "seconds": 0.0, "last_s": 0.0}
        return {"counts": list(found.counts), "seconds": found.total, "last_s": self._last_gap[flow]}


def _copies(sums: Mapping[str, Sums]) -> dict[str, Sums]:
    return {name: copy_of(found) for name, found in sums.items()}


def _per(whole: float, parts: float) -> float:
    return whole / parts if parts else 0.0


def _flow_window(news: Mapping[str, Any], passed: float, most: Mapping[str, float]) -> dict[str, Any]:
    fetches, batches = news["fetches"], news["batches"]
    spent = news.get("time", {})
    whole = sum(spent.values())
    return {
        "records_per_s": news["records"] / passed,
        "bytes_per_s": news["batch_bytes"] / passed,
        "fetch_rate": fetches / passed,
        "fetch_size_avg": _per(news["fetched_bytes"], fetches),
        "fetch_size_max": most.get("fetch_bytes", 0),
        "fetch_throttle_avg_ms": _per(news["fetch_throttle_ms"], fetches),
        "fetch_throttle_max_ms": most.get("fetch_throttle_ms", 0),
        "batch_size_avg": _per(news["batch_bytes"], batches),
        "batch_size_max": most.get("batch_bytes", 0),
        "retry_rate": news["retried"] / passed,
        "time": {kind: _per(spent.get(kind, 0.0), whole) for kind in KINDS},
        "latency_p50_ms": quantile(LATENCY_BOUNDS_MS, news["latency"], 0.5),
        "latency_p99_ms": quantile(LATENCY_BOUNDS_MS, news["latency"], 0.99),
    }


def _slot_window(news: Mapping[str, Any]) -> dict[str, Any]:
    seconds = news["seconds"]
    waited = sum(spent for kind, spent in news["time"].items() if kind != BUSY)
    return {"io_ratio": _per(news["io_seconds"], seconds), "io_wait_ratio": _per(waited, seconds)}


def _target_window(news: Mapping[str, Any], passed: float, most: Mapping[str, float]) -> dict[str, Any]:
    requests, seconds = news["requests"], news["request_seconds"]
    return {
        "request_rate": requests / passed,
        # Little's law: how many were on their way on average.
        "requests_in_flight": seconds / passed,
        "request_seconds_avg": _per(seconds, requests),
        "request_seconds_max": most.get("request_seconds", 0),
        "throttle_avg_ms": _per(news["throttle_ms"], requests),
    }
