"""The arithmetic and the text of the benchmark, on figures made up here."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bench.cases import CASES, Latency, chosen
from tests.bench.figures import (
    AIMS,
    HELIOGRAPH,
    MIRRORMAKER,
    Span,
    aim_of,
    copy_figures,
    judge,
    latency_figures,
    medians,
    quantile,
    ratio,
)
from tests.bench.report import LABELS, before_and_after, document, joins, misses, number, table, troubles


def a_case(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    return {"what": "1 GB of something", "first": HELIOGRAPH, HELIOGRAPH: ours, MIRRORMAKER: theirs}


def a_result(cases: dict[str, Any], scale: float = 1.0, changed: bool = False) -> dict[str, Any]:
    return {
        "date": "2026-01-02T03:04:05+00:00",
        "commit": "abc123",
        "changed": changed,
        "machine": {"cpu": "Some CPU", "cores": 2, "memory_gb": 24.6, "load": 0.12},
        "versions": {"Heliograph": "0.1.0", "Kafka and MirrorMaker": "4.3.1"},
        "scale": scale,
        "latency_window": [25.0, 40.0],
        "cases": cases,
        "aims": judge(cases),
    }


def cells(text: str, label: str) -> list[str]:
    line = next(line for line in text.splitlines() if f"| {label} " in line)
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (0.999, 100), (1.0, 100), (0.0, 1)])
def test_a_quantile_is_the_value_at_the_nearest_rank(share: float, expected: float) -> None:
    assert quantile([float(value) for value in range(1, 101)], share) == expected


def test_a_quantile_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no record was measured"):
        quantile([], 0.5)


def test_latencies_need_no_order() -> None:
    figures = latency_figures([float(value) for value in range(1000, 0, -1)])
    assert (figures["p50_ms"], figures["p99_ms"], figures["p999_ms"], figures["max_ms"]) == (500, 990, 999, 1000)
    assert figures["measured_records"] == 1000


def test_copy_counts_from_the_first_record_and_total_from_the_start() -> None:
    span = Span(records=1_000, payload_mb=2.0, first=5.0, first_cpu=3.0, last=9.0, last_cpu=4.0, brokers_cpu=6.0)
    figures = copy_figures(span)
    assert figures["records_per_second"] == 250
    assert figures["mb_per_second"] == 0.5
    assert (figures["copy_cpu_seconds"], figures["total_cpu_seconds"]) == (1.0, 4.0)
    assert (figures["copy_cpu_ms_per_mb"], figures["total_cpu_ms_per_mb"]) == (500, 2_000)
    assert (figures["copy_cpu_us_per_record"], figures["total_cpu_us_per_record"]) == (1_000, 4_000)
    assert (figures["start_seconds"], figures["start_cpu_seconds"]) == (5.0, 3.0)
    assert figures["brokers_cpu_seconds"] == 6.0


def test_of_several_rounds_the_medians_count_and_the_worst_faults() -> None:
    rounds = [
        {"records_per_second": 300, "lost": 0},
        {"records_per_second": 100, "lost": 2},
        {"records_per_second": 250, "lost": 0},
    ]
    found = medians(rounds)
    assert found == {"records_per_second": 250, "slowest_round": 100, "fastest_round": 300, "lost": 2}
    assert medians(rounds[:1]) == rounds[0]


def test_a_round_that_failed_is_left_out_of_the_medians_and_named() -> None:
    failed = {"failed": "it ended after 3 s"}
    assert medians([failed, {"start_seconds": 4.0}]) == {"failed": "it ended after 3 s", "start_seconds": 4.0}
    assert medians([failed]) == failed


def test_a_ratio_to_nothing_is_none() -> None:
    assert ratio(10, 4) == 2.5
    assert ratio(10, 0) is None


@pytest.mark.parametrize(
    ("case", "figure", "ours", "theirs", "verdict"),
    [
        ("lz4", "records_per_second", 500, 100, "met"),
        ("lz4", "records_per_second", 499, 100, "missed"),
        ("zstd", "copy_cpu_us_per_record", 10, 100, "met"),
        ("none", "total_cpu_us_per_record", 11, 100, "missed"),
        ("single", "records_per_second", 150, 100, "met"),
        ("single", "records_per_second", 149, 100, "missed"),
        ("small", "peak_pss_mb", 99, 100, "met"),
        ("small", "peak_pss_mb", 100, 100, "missed"),
        ("latency-200", "p99_ms", 100, 100, "met"),
        ("latency-2000", "p50_ms", 101, 100, "missed"),
        ("start", "start_seconds", 100, 100, "missed"),
    ],
)
def test_an_aim_is_judged_by_its_bound(case: str, figure: str, ours: float, theirs: float, verdict: str) -> None:
    found = judge({case: a_case({figure: ours}, {figure: theirs})})
    assert [aim["verdict"] for aim in found if aim["figure"] == figure] == [verdict]


def test_an_aim_of_a_run_that_failed_is_not_measured() -> None:
    found = judge({"start": a_case({"failed": "it ended"}, {"start_seconds": 20.0})})
    assert [aim["verdict"] for aim in found] == ["not measured"]


def test_every_aim_is_of_a_case_and_a_figure_that_exist() -> None:
    names = {case.name for case in CASES}
    assert all(set(aim.cases) <= names and aim.figure in LABELS for aim in AIMS)
    assert aim_of("small", "records_per_second") is None


def test_the_table_has_both_figures_their_ratio_and_the_verdict() -> None:
    text = table(a_result({"lz4": a_case({"records_per_second": 929_000.4}, {"records_per_second": 86_000})}))
    assert cells(text, "records/s") == ["lz4", "records/s", "929,000", "86,000", "10.8×", "at least 5×", "met"]


def test_a_figure_of_one_system_alone_has_no_ratio() -> None:
    text = table(a_result({"start": a_case({"start_seconds": 6.51}, {"failed": "it ended"})}))
    assert cells(text, "start to first record, s")[2:] == ["6.51", "–", "–", "below 1×", ""]


def test_the_document_names_machine_versions_commit_and_date() -> None:
    text = document(a_result({"lz4": a_case({"records_per_second": 2.0}, {"records_per_second": 1.0})}, changed=True))
    for said in (
        "Some CPU, 2 cores, 25 GB",
        "Kafka and MirrorMaker 4.3.1",
        "abc123 with uncommitted changes",
        "2026-01-02",
    ):
        assert said in text
    assert "Do not edit" in text.splitlines()[0]
    assert "changes its epoch within" in text


def test_the_document_names_what_was_missed() -> None:
    result = a_result({"lz4": a_case({"records_per_second": 2.0}, {"records_per_second": 1.0})})
    assert misses(result) == ["lz4, records/s: 2.00× of MirrorMaker 2's, the aim is at least 5×"]
    assert f"- {misses(result)[0]}" in document(result)
    assert "0 met, 1 missed, 3 not measured" in document(result)


def test_lost_and_repeated_records_and_failed_runs_are_named() -> None:
    result = a_result({"lz4": a_case({"lost": 0, "repeated": 3}, {"failed": "it ended after 3 s"})})
    assert troubles(result) == ["lz4, Heliograph: 3 records repeated", "lz4, MirrorMaker 2: it ended after 3 s"]
    assert "What went wrong" in document(result)
    behind = a_result({"lz4": a_case({"left_behind": 2}, {"left_behind": 0})})
    assert troubles(behind) == ["lz4, Heliograph: 2 processes lived on after it was stopped"]
    assert "What went wrong" not in document(a_result({"lz4": a_case({"lost": 0}, {"repeated": 0})}))


def test_who_looks_has_a_section_with_every_round() -> None:
    rounds = [{"records_per_second": 1_000.0, "lost": 0, "repeated": 0}] * 2
    watched = {
        "commit": "abc123", "changed": False, "machine": {"load": 0.1}, "payload_mb": 2_000.0,
        "slow": 200, "streams": 200, "alone": rounds, "watched": rounds, "ratio": 1.0,
    }  # fmt: skip
    text = document(a_result({}), {"watched": watched})
    assert "200 slow clients" in text and "records/s alone: 1,000, 1,000; watched: 1,000, 1,000" in text
    assert "the medians: 1.00× of the speed alone; 0 records lost or repeated" in text
    assert "Many who look" not in document(a_result({}))


def test_a_small_scale_is_said_not_to_count() -> None:
    cases = {"lz4": a_case({"records_per_second": 2.0}, {"records_per_second": 1.0})}
    assert "say nothing" in document(a_result(cases, scale=0.05))
    assert "say nothing" not in document(a_result(cases))


@pytest.mark.parametrize(
    ("value", "text"), [(929_123.4, "929,123"), (86.31, "86.3"), (1.234, "1.23"), (0.0456, "0.046"), (None, "–")]
)
def test_a_number_shows_the_digits_that_count(value: float | None, text: str) -> None:
    assert number(value) == text


def test_scaling_shortens_every_case_and_the_full_window_holds_the_end_of_an_epoch() -> None:
    full = [case for case in chosen([], 1.0) if isinstance(case, Latency)]
    assert all(case.lead >= 10 and case.lead < 45 < case.lead + case.seconds for case in full)
    short = chosen(["lz4", "latency-200"], 0.05)
    assert [case.name for case in short] == ["lz4", "latency-200"]
    assert short != chosen(["lz4", "latency-200"], 1.0)


def a_measure(**figures: Any) -> dict[str, Any]:
    return {"commit": "abc123", "changed": False, "machine": {"load": 2.0}, **figures}


def test_how_long_a_killed_driver_cost_stands_beside_the_load() -> None:
    killed = {"seconds": [8.0, 9.5], "median": 8.75, "loads": [1.5, 2.5]}
    text = document(a_result({}), {"restart": a_measure(partitions=6, local=killed, standalone=killed)})
    assert "two workers on this machine: median 8.75 s: 8.00 s (load 1.5), 9.50 s (load 2.5)" in text


def test_what_lanes_asked_for_after_a_lost_broker_is_told() -> None:
    lost = {"seconds": 2.5, "cpu_seconds": 1.0, "requests": {"producer ids": 1}, "generations": 1000}
    text = document(a_result({}), {"reattach": a_measure(lanes=1000, target=lost, source=lost)})
    assert (
        "target broker killed with -9: 2.50 s, 1.00 CPU seconds; 1,000 generations opened; asked for: 1 producer ids"
        in text
    )


def test_every_join_is_in_the_report_not_the_best_of_them() -> None:
    rows = [
        {"copied_seconds": 1.5, "gap_ms": gap, "source_gap_ms": 21.0, "usual_gap_ms": 33.0}
        for gap in (40.0, 900.0, 50.0)
    ]
    found = a_result({}) | {"joins": rows, "interval_seconds": 2, "records_per_second": 200}
    text = joins(found)
    assert "around each join, ms: 40.0, 900, 50.0\n" in text
    assert "3 topics join" in text and "abc123" in text
    assert text in document(a_result({}), {"joining": found})


def test_this_tree_and_an_earlier_one_stand_beside_each_other() -> None:
    def figures(factor: float) -> dict[str, float]:
        return {
            "records_per_second": 1_000_000 * factor,
            "copy_cpu_us_per_record": 0.5,
            "total_cpu_us_per_record": 2.0,
            "start_seconds": 4.0,
        }

    found = a_result({}) | {"before": "def456", "cases": {"lz4": {"before": figures(1), "after": figures(1.5)}}}
    text = before_and_after(found)
    assert "| lz4 | records/s | 1,000,000 | 1,500,000 | 1.50× |" in text
    assert "commit def456" in text and "abc123" in text
    assert text in document(a_result({}), {"before": found})
