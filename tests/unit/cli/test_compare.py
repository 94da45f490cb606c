"""`heliograph compare`: both forms, the exit code, and a flow that the file does not have."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from heliograph.cli import compare, main
from heliograph.cli.compare import lines_of
from heliograph.config.flows import EngineSettings, FlowSettings
from heliograph.operations.side_by_side import FlowCompared
from heliograph.replication.side_by_side import About, Difference

DIFFERENCES = [
    Difference(About.TOPICS, "orders -> A.orders", "3 partitions", "-"),
    Difference(About.QUOTAS, "user a: x", "-", "1"),
]


def test_differences_are_a_table_under_a_headline() -> None:
    flow = FlowCompared("A->B", "A", "B", DIFFERENCES, {"topics": 1200, "quotas": 1}, ["ACLs: cluster B is gone"])
    assert lines_of(flow) == [
        "A->B: 2 differences so far, not everything could be compared (1,200 topics, 1 quota compared)",
        "  what    name                on A          on B",
        "  topics  orders -> A.orders  3 partitions  -",
        "  quotas  user a: x           -             1",
        "  not compared: ACLs: cluster B is gone",
    ]


def test_no_difference_is_said() -> None:
    assert lines_of(FlowCompared("A->B", "A", "B", compared={"topics": 2})) == [
        "A->B: no differences (2 topics compared)"
    ]
    assert lines_of(FlowCompared("A->B", "A", "B")) == ["A->B: no differences"]


def test_what_could_not_be_reached_is_never_said_to_have_no_differences() -> None:
    nothing = FlowCompared("A->B", "A", "B", troubles=["cluster A: connection refused at a:1", "cluster B is away"])
    assert lines_of(nothing) == ["A->B: could not be compared: cluster A: connection refused at a:1; cluster B is away"]
    part = FlowCompared("A->B", "A", "B", compared={"topics": 2}, troubles=["ACLs: DESCRIBE is missing"])
    assert lines_of(part) == [
        "A->B: no differences so far, not everything could be compared (2 topics compared)",
        "  not compared: ACLs: DESCRIBE is missing",
    ]


def test_clusters_that_refuse_are_asked_once_and_named_with_their_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mm2.properties"
    at = {name: f"{name}.bootstrap.servers = 127.0.0.1:{port}\n" for name, port in (("A", 1), ("B", 2))}
    file.write_text(f"clusters = A, B\n{at['A']}{at['B']}A->B.enabled = true\n")
    assert main.main(["compare", str(file)]) == 1
    assert capsys.readouterr().out == (
        "A->B: could not be compared: cluster A: connection refused at 127.0.0.1:1; "
        "cluster B: connection refused at 127.0.0.1:2\n"
    )


@pytest.mark.parametrize(
    ("differences", "troubles", "code"),
    [([], [], 0), (DIFFERENCES, [], 1), ([], ["topics: cluster B is gone"], 1)],
)
def test_both_forms_and_the_exit_code(
    differences: list[Difference],
    troubles: list[str],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What clusters answer is shown on real ones, by tests/integration/test_side_by_side.py."""

    async def found(flows: Iterable[FlowSettings], _: EngineSettings) -> list[FlowCompared]:
        return [FlowCompared(flow.flow.name, "A", "B", differences, {"topics": 2}, troubles) for flow in flows]

    monkeypatch.setattr(compare, "compare_flows", found)
    file = tmp_path / "mm2.properties"
    file.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n")
    assert main.main(["compare", str(file), "--flow", "A->B", "--json"]) == code
    [flow] = json.loads(capsys.readouterr().out)["flows"]
    assert (flow["flow"], flow["compared"], flow["troubles"]) == ("A->B", {"topics": 2}, troubles)
    assert [each["subject"] for each in flow["differences"]] == [each.subject for each in differences]
    assert main.main(["compare", str(file)]) == code
    assert capsys.readouterr().out.startswith("A->B: ")
    assert main.main(["compare", str(file), "--flow", "B->A"]) == 2
    assert "no such flow" in capsys.readouterr().err
