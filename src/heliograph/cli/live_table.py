"""The table that people look at: one row per source topic, and the sum. Where it is narrow it leaves columns out, never letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from heliograph.cli.words import count
from heliograph.control.board import LaneView
from heliograph.control.replicate import Replicator

_COLUMNS = ("topic", "lanes", "records", "rec/s", "MB/s", "lag", "ms", "delta", "raw", "rebuilt", "dropped", "state")
_LEFT_OUT_FIRST = ("delta", "dropped", "rebuilt", "raw", "MB/s", "lanes", "ms", "records")
_ANY_WIDTH = 10_000
_Lane = tuple[str, LaneView]
"""A lane's key with what is known of it."""


class LiveTable:
    """Keeps what is needed for rates between two looks."""

    def __init__(self, replicator: Replicator, page: Callable[[], Sequence[str]] = tuple) -> None:
        """`page` says where the web page is, once it is there."""
        self._replicator = replicator
        self._page = page
        self._before: dict[str, tuple[float, int, int]] = {}
        self._rates: dict[str, tuple[float, float]] = {}

    def render(self, console: Console) -> Table:
        board = self._replicator.board
        now = self._replicator.clock.monotonic()
        by_topic: dict[str, list[_Lane]] = {}
        for key, view in sorted(board.lanes.items()):
            by_topic.setdefault(key.rsplit("/", 1)[0], []).append((key, view))
        rows = [self._row(topic, lanes, now, _shown_as(topic, by_topic)) for topic, lanes in by_topic.items()]
        if len(by_topic) > 1:
            rows.append(self._row("all", [lane for lanes in by_topic.values() for lane in lanes], now, "all"))
        columns = list(_COLUMNS)
        for name in _LEFT_OUT_FIRST:
            # A reason may be long and is broken into lines: what is measured is the state alone.
            table = self._table(by_topic, columns, [{**row, "state": row["state"].partition(":")[0]} for row in rows])
            if Measurement.get(console, console.options.update(width=_ANY_WIDTH), table).maximum <= console.width:
                break
            columns.remove(name)
        return self._table(by_topic, columns, rows)

    def _table(
        self, by_topic: Mapping[str, object], columns: Sequence[str], rows: Sequence[Mapping[str, str]]
    ) -> Table:
        spark = self._replicator.spark
        caption = (
            f"Spark {spark.get('master', self._replicator.engine.master)}, {count(spark.get('active_tasks', 0), 'task')}"
            f"{''.join(f'; the page is at {url}' for url in self._page())}"
        )
        table = Table(
            title=self._title(by_topic),
            caption=caption,
            title_justify="left",
            caption_justify="left",
            box=SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
        )
        for name in columns:
            is_text = name in ("topic", "state")
            table.add_column(name, justify="left" if is_text else "right", no_wrap=name != "state", overflow="fold")
        for place, row in enumerate(rows):
            if place and place == len(by_topic):
                table.add_section()
            table.add_row(*(Text(row[name]) for name in columns))
        return table

    def _title(self, by_topic: Mapping[str, object]) -> str:
        flows = sorted({topic.split("/", 1)[0] for topic in by_topic})
        seconds = self._replicator.clock.monotonic() - self._replicator.started_at
        return f"Heliograph  {', '.join(flows) or 'starting'}  {seconds:.0f} s"

    def _row(self, topic: str, lanes: Sequence[_Lane], now: float, name: str) -> dict[str, str]:
        views = [view for _, view in lanes]
        records = sum(view.totals.records for view in views)
        size = sum(view.totals.bytes for view in views)
        record_rate, byte_rate = self._rate(topic, now, records, size)
        lag = sum(max(0, view.row["source_end"] - view.row["position"]) for view in views)
        cells = [
            name,
            str(len(views)),
            count(records),
            count(record_rate),
            f"{byte_rate / 1e6:.2f}",
            count(lag),
            _latency(views),
            _deltas(views) if topic != "all" else "",
            count(sum(view.totals.raw_batches for view in views)),
            count(sum(view.totals.rebuilt_batches for view in views)),
            count(sum(sum(view.totals.dropped.values()) for view in views)),
            self._state(lanes),
        ]
        return dict(zip(_COLUMNS, cells, strict=True))

    def _state(self, lanes: Sequence[_Lane]) -> str:
        """What somebody paused is paused, whatever its task said last."""
        shown = [{**view.row, **self._replicator.held(key)} for key, view in lanes]
        for row in shown:
            if row["state"] == "parked":
                return f"parked: {row['reason']}"
        states = Counter(row["state"] for row in shown)
        if len(states) == 1:
            return str(next(iter(states)))
        return ", ".join(f"{number} {state}" for state, number in sorted(states.items()))

    def _rate(self, topic: str, now: float, records: int, size: int) -> tuple[float, float]:
        then, records_then, size_then = self._before.get(topic, (now - 1, 0, 0))
        if now - then >= 0.5:
            passed = now - then
            self._rates[topic] = ((records - records_then) / passed, (size - size_then) / passed)
            self._before[topic] = (now, records, size)
        return self._rates.get(topic, (0.0, 0.0))


def _shown_as(topic: str, by_topic: Mapping[str, object]) -> str:
    """With one flow its name stands in the title."""
    flow, _, name = topic.partition("/")
    return name if all(other.startswith(f"{flow}/") for other in by_topic) else topic


def _latency(views: Sequence[LaneView]) -> str:
    """The median of the last second: from the record's timestamp to the target's acknowledgement."""
    values = sorted(value for view in views for value in view.row.get("latency_ms", ()))
    return f"{values[len(values) // 2]:.0f}" if values else "-"


def _deltas(views: Sequence[LaneView]) -> str:
    known = [_delta(view.row) for view in views if view.row["position"] >= 0]
    if not known:
        return "-"
    return str(known[0]) if min(known) == max(known) else f"{min(known)}..{max(known)}"


def _delta(row: dict[str, Any]) -> int:
    delta: int = row["target_next"] - row["position"]
    return delta
