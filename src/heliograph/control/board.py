"""The driver's slate: what every lane's task last reported, summed over tasks and epochs.

Pure bookkeeping: reports in, rows and totals out. What others may see of it goes to the telemetry topic (telemetry.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from heliograph.model.events import Event, event_of

_RATE_SECONDS = 5.0
_LATENCIES_KEPT = 2000
_READ = ("following", "draining")
_PLACES = ("position", "read_position", "source_end", "high_watermark", "target_next")


@dataclass
class LaneTotals:
    """Sums over all tasks that carried a lane in this run."""

    records: int = 0
    bytes: int = 0
    raw_batches: int = 0
    rebuilt_batches: int = 0
    refused: int = 0
    attaches: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    rebuilt: dict[str, int] = field(default_factory=dict)
    foreign: int = 0
    skipped: dict[str, int] = field(default_factory=dict)

    def add(self, now: dict[str, Any], before: dict[str, Any]) -> None:
        for name in ("records", "bytes", "raw_batches", "rebuilt_batches", "refused", "attaches", "foreign"):
            setattr(self, name, getattr(self, name) + now[name] - before.get(name, 0))
        for name in ("dropped", "rebuilt", "skipped"):
            sums: dict[str, int] = getattr(self, name)
            old = before.get(name, {})
            for reason, count in now[name].items():
                sums[reason] = sums.get(reason, 0) + count - old.get(reason, 0)


@dataclass
class LaneView:
    """The last report of a lane and its totals."""

    row: dict[str, Any]
    totals: LaneTotals = field(default_factory=LaneTotals)
    text: str = ""
    """As telemetry last told it; empty since a report came."""


def _kept(row: dict[str, Any], last: dict[str, Any]) -> dict[str, Any]:
    """What a task does not know yet is what was known before: a lag must not fall to nothing at every hand-over."""
    kept = {name: last[name] for name in _PLACES if row.get(name, -1) < 0 <= last.get(name, -1)}
    if "source_end" in kept:
        kept["waiting_since_ms"] = last.get("waiting_since_ms", 0)
    elif row.get("position") == last.get("position") and 0 < last.get("waiting_since_ms", 0) < row.get(
        "waiting_since_ms", 0
    ):
        # The same record still waits first: a task that cannot send it knows only since when it carries the lane itself.
        kept["waiting_since_ms"] = last["waiting_since_ms"]
    return kept


class Board:
    """Takes reports in any order; asked once a second."""

    def __init__(self) -> None:
        self.lanes: dict[str, LaneView] = {}
        self.gone: dict[str, LaneTotals] = {}
        """By flow: what lanes carried that are carried no more."""
        self._carried = (0, 0)
        self._heard: set[str] = set()
        self.parked: set[str] = set()
        self.unread: set[str] = set()
        """Lanes that no task reads now."""
        self.ends: dict[str, tuple[int, int]] = {}
        """Of lanes that no task has reported yet: where the source ends, and when that was first seen."""
        self._alive: set[str] = set()
        self._seen: dict[tuple[str, str], dict[str, Any]] = {}
        self._history: deque[tuple[float, int, int]] = deque()
        self.latencies: dict[str, deque[float]] = {}
        """The newest, by flow."""
        self.changed: set[str] = set()
        """Lanes that were reported since somebody last looked."""
        self.mark = 0
        """How often a lane was reported, or went."""
        self._marks: dict[str, int] = {}
        """When it was last so with each lane, the latest last."""
        self.events: list[Event] = []
        self.slots: dict[str, dict[str, Any]] = {}

    def take(self, attempt: str, rows: list[dict[str, Any]], slot: dict[str, Any]) -> None:
        self.slots[attempt] = slot
        for row in rows:
            self._take_row(attempt, row)

    def _take_row(self, attempt: str, row: dict[str, Any]) -> None:
        key = row["lane"]
        counts = row["counts"]
        view = self.lanes.setdefault(key, LaneView(row))
        before = self._seen.get((attempt, key), {})
        records, size = self._carried
        self._carried = (
            records + counts["records"] - before.get("records", 0),
            size + counts["bytes"] - before.get("bytes", 0),
        )
        view.totals.add(counts, before)
        view.text = ""
        self._heard.add(key)
        self._seen[(attempt, key)] = counts
        self._changed(key)
        if latencies := row.get("latency_ms"):
            flow = key.split("/", 1)[0]
            self.latencies.setdefault(flow, deque(maxlen=_LATENCIES_KEPT)).extend(latencies)
        self.events.extend(event for fields in row.get("events", ()) if (event := event_of(fields)) is not None)
        # A task that waits for its turn, or has handed a lane over, knows less than the one that carries it.
        if row["state"] in ("waiting", "done") and row["position"] < view.row["position"]:
            return
        if row["state"] == "done" and not row["finished"] and view.row["state"] == "following":
            # Its successor says the rest; how far it got counts now, as what it carried does.
            further = {name: row[name] for name in _PLACES if row.get(name, -1) > view.row.get(name, -1)}
            view.row = view.row | further | {"waiting_since_ms": row.get("waiting_since_ms", 0)}
            return
        view.row = row | _kept(row, view.row)
        if self.ends and view.row["position"] >= 0:
            self.ends.pop(key, None)
        (self.parked.add if row["state"] == "parked" else self.parked.discard)(key)
        (self.unread.discard if row["state"] in _READ else self.unread.add)(key)

    def see_end(self, key: str, end: int, now_ms: int) -> None:
        """The source of a lane that nobody reads ends here."""
        view = self.lanes.get(key)
        if view is None:
            _, since_ms = self.ends.get(key, (end, now_ms))
            self.ends[key] = (end, since_ms)
            self.changed.add(key)
            return
        if end == view.row["source_end"]:
            return
        waiting = 0 <= view.row["position"] < end
        since_ms = (view.row.get("waiting_since_ms") or now_ms) if waiting else 0
        view.row = view.row | {"source_end": end, "waiting_since_ms": since_ms}
        view.text = ""
        self._changed(key)

    def _changed(self, key: str) -> None:
        self.changed.add(key)
        self.mark += 1
        self._marks.pop(key, None)
        self._marks[key] = self.mark

    def changed_since(self, mark: int) -> Iterator[str]:
        """The lanes that were reported, or went, since the board had this mark, the latest first."""
        for key, number in reversed(self._marks.items()):
            if number <= mark:
                return
            yield key

    def rows_of(self, flow: str) -> list[dict[str, Any]]:
        """The last reports of one flow's lanes."""
        prefix = f"{flow}/"
        return [view.row for key, view in self.lanes.items() if key.startswith(prefix)]

    def forget_attempts(self, alive: set[str]) -> None:
        """Drop what is only needed to sum reports of tasks that are gone."""
        if alive == self._alive:
            return
        self._alive = alive
        self._seen = {pair: counts for pair, counts in self._seen.items() if pair[0] in alive}
        self.slots = {attempt: slot for attempt, slot in self.slots.items() if attempt in alive}

    def forget_lane(self, key: str) -> None:
        """It is carried no more; what it carried stays in the sums."""
        self._changed(key)
        totals = self.lanes.pop(key).totals
        self.gone.setdefault(key.split("/", 1)[0], LaneTotals()).add(vars(totals), {})
        self.parked.discard(key)
        self.unread.discard(key)
        self.ends.pop(key, None)

    def take_heard(self) -> set[str]:
        """The lanes that were reported since the last call: of thousands at rest there are none."""
        heard, self._heard = self._heard, set()
        return heard

    def carried(self) -> tuple[int, int]:
        """Records and bytes of this run."""
        return self._carried

    def rates(self, now: float) -> tuple[float, float]:
        """Records and bytes per second over the last seconds."""
        records, size = self.carried()
        self._history.append((now, records, size))
        while len(self._history) > 2 and now - self._history[0][0] > _RATE_SECONDS:
            self._history.popleft()
        then, records_then, size_then = self._history[0]
        passed = max(now - then, 1e-9)
        return (records - records_then) / passed, (size - size_then) / passed

    def latency(self, share: float, flow: str = "") -> float | None:
        """A quantile of the newest latencies in ms, of one flow or all: record timestamp to acknowledgement."""
        mine = [self.latencies.get(flow, ())] if flow else self.latencies.values()
        values = sorted(latency for newest in mine for latency in newest)
        return values[min(len(values) - 1, int(len(values) * share))] if values else None

    def take_events(self) -> list[Event]:
        events, self.events = self.events, []
        return events
