"""The live table, from a board."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from heliograph.cli.live_table import LiveTable
from heliograph.control.board import Board
from heliograph.control.replicate import Replicator
from tests.unit.control.fakes import FakeClock, report_row


class Screen:
    def __init__(self) -> None:
        self.board = Board()
        self.clock = FakeClock()
        self.paused: set[str] = set()
        fake = SimpleNamespace(
            board=self.board,
            clock=self.clock,
            started_at=self.clock.now,
            spark={"master": "local[4,4]", "jobs": [3], "active_tasks": 2},
            engine=SimpleNamespace(master="local[4,4]"),
            held=lambda key: {"state": "paused", "reason": "by hand"} if key in self.paused else {},
        )
        self._table = LiveTable(cast(Replicator, fake))

    def take(self, lane: str, records: int, attempt: str = "one", **changes: Any) -> None:
        counts = {"records": records, "bytes": records * 1000, **changes.pop("counts", {})}
        self.board.take(attempt, [report_row(lane, counts=counts, **changes)], {})

    def lines(self, width: int = 250) -> list[str]:
        text = io.StringIO()
        console = Console(file=text, width=width)
        console.print(self._table.render(console))
        return [" ".join(line.split()) for line in text.getvalue().splitlines() if line.strip(" \u2500")]


def test_before_the_first_report_it_says_starting() -> None:
    title, *_, caption = Screen().lines()
    assert title == "Heliograph starting 0 s"
    assert caption == "Spark local[4,4], 2 tasks"


def test_a_topic_has_one_row_with_sums_over_its_lanes() -> None:
    screen = Screen()
    more = {"raw_batches": 3, "rebuilt_batches": 1, "dropped": {"control": 2}}
    screen.take("A->B/orders/0", 1000, position=1000, source_end=1010, target_next=1000, counts=more, latency_ms=[4.0])
    screen.take("A->B/orders/1", 500, position=500, source_end=500, target_next=500, latency_ms=[2.0, 9.0])
    title, head, row, _ = screen.lines()
    assert title == "Heliograph A->B 0 s"
    assert head == "topic lanes records rec/s MB/s lag ms delta raw rebuilt dropped state"
    assert row == "orders 2 1,500 1,500 1.50 10 4 0 3 1 2 following"


def test_rates_are_between_two_looks() -> None:
    screen = Screen()
    screen.take("A->B/orders/0", 1000)
    screen.lines()
    screen.clock.now += 2
    screen.take("A->B/orders/0", 4000)
    assert "1,500 1.50" in screen.lines()[2]
    screen.clock.now += 0.1
    screen.take("A->B/orders/0", 9000)
    assert "1,500 1.50" in screen.lines()[2], "two looks at nearly the same moment say nothing about a rate"


def test_several_topics_have_a_sum() -> None:
    screen = Screen()
    screen.take("A->B/orders/0", 10)
    screen.take("A->B/payments/0", 5)
    rows = screen.lines()[2:-1]
    assert [row.split()[:3] for row in rows] == [["orders", "1", "10"], ["payments", "1", "5"], ["all", "2", "15"]]


def test_with_several_flows_a_topic_is_shown_with_its_flow() -> None:
    screen = Screen()
    screen.take("A->B/orders/0", 10)
    screen.take("B->A/orders/0", 5)
    lines = screen.lines()
    assert lines[0] == "Heliograph A->B, B->A 0 s"
    assert [row.split()[0] for row in lines[2:-1]] == ["A->B/orders", "B->A/orders", "all"]


def test_deltas_that_differ_are_a_range_and_unknown_ones_a_dash() -> None:
    screen = Screen()
    screen.take("A->B/orders/0", 0, position=-1, target_next=-1, source_end=-1)
    assert screen.lines()[2].split()[7] == "-"
    screen.take("A->B/orders/1", 0, position=100, target_next=90)
    assert screen.lines()[2].split()[7] == "-10"
    screen.take("A->B/orders/2", 0, position=100, target_next=107)
    assert screen.lines()[2].split()[7] == "-10..7"


def test_a_parked_lane_is_shown_with_its_reason() -> None:
    screen = Screen()
    screen.take("A->B/orders/0", 0)
    screen.take("A->B/orders/1", 0, state="parked", reason="too large")
    assert screen.lines()[2].endswith("parked: too large")


def test_a_reason_in_brackets_is_shown_as_it_is() -> None:
    screen = Screen()
    screen.take("A->B/orders/0", 0, state="parked", reason="record 5 has 9 bytes [limit 8] [/orders]")
    assert screen.lines()[2].endswith("parked: record 5 has 9 bytes [limit 8] [/orders]")


def test_a_paused_topic_is_not_following_and_a_partly_paused_one_says_so() -> None:
    screen = Screen()
    for partition in range(3):
        screen.take(f"A->B/orders/{partition}", 10)
        screen.take(f"A->B/payments/{partition}", 10)
    screen.paused = {"A->B/orders/0", "A->B/orders/1", "A->B/orders/2", "A->B/payments/1"}
    orders, payments, everything = screen.lines()[2:-1]
    assert orders.endswith(" paused")
    assert payments.endswith(" 2 following, 1 paused")
    assert everything.endswith(" 2 following, 4 paused")


@pytest.mark.parametrize("width", [160, 120, 100, 80, 60])
def test_where_there_is_little_room_columns_are_left_out_and_no_word_is_cut(width: int) -> None:
    screen = Screen()
    more = {"raw_batches": 123_456, "rebuilt_batches": 123_456, "dropped": {"control": 12_345}}
    for topic in ("audit.log-v2", "heartbeats", "customers.by-region"):
        screen.take(
            f"A->B/{topic}/0", 1_395_200, position=20_000, source_end=1_415_200, target_next=10_502, counts=more
        )
        screen.take(
            f"A->B/{topic}/1", 1_395_200, position=20_000, source_end=1_415_200, target_next=19_999, counts=more
        )
    title, head, *rows, _ = screen.lines(width)
    assert title == "Heliograph A->B 0 s"
    assert "\u2026" not in "".join([head, *rows])
    words = head.split()
    assert (words[0], words[-1]) == ("topic", "state")
    assert {"rec/s", "lag"} <= set(words)
    assert len(rows) == 4 and all(len(row.split()) >= len(words) - 1 for row in rows), "one line each"
    assert rows[0].startswith("audit.log-v2 ") and rows[0].endswith(" following")
    assert ("delta" in words) == (width >= 160)


def test_a_long_reason_is_broken_into_lines_and_costs_no_column() -> None:
    screen = Screen()
    screen.take("A->B/orders/0", 10, state="parked", reason="the target refuses a record of 1,310,720 bytes " * 3)
    text = " ".join(screen.lines(100))
    assert "delta" in text
    assert text.count("1,310,720") == 3
