"""docs/metrics.md is what the table says, and the table is in order."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from heliograph.metrics.manual import text
from heliograph.metrics.table import COUNTER, METRICS, SECTIONS

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_the_page_is_written_from_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == text()


def test_no_metric_stands_twice_and_each_has_a_sentence() -> None:
    assert len(METRICS) == sum(len(rows) for rows in SECTIONS.values())
    assert all(metric.meaning.endswith((".", ")")) for metric in METRICS.values())


def test_what_stands_in_for_another_figure_says_so() -> None:
    said = next(line for line in text().splitlines() if "`heliograph_slot_io_ratio`" in line)
    assert (
        "CPU time of the slot's process in the operating system" in said and "Stands in for Kafka's `io-ratio`" in said
    )


def test_names_are_in_base_units_and_counters_end_with_total() -> None:
    for metric in METRICS.values():
        assert re.fullmatch(r"[a-z][a-z0-9_]+", metric.name)
        assert (metric.kind == COUNTER) == metric.name.endswith("_total"), metric.name
        if metric.name.startswith("heliograph_"):
            assert metric.unit not in ("ms", "minutes", "KB"), metric.name
            assert metric.unit != "seconds" or "seconds" in metric.name, metric.name


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_the_module_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_module("heliograph.metrics.manual", run_name="__main__")
    assert capsys.readouterr().out == text()
