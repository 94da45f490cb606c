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
        "A->B: 2 differences (1,200 topics, 1 quota compared)",
        "  what    name                on A          on B",
        "  topics  orders -> A.orders  3 partitions  -",
        "  quotas  user a: x           -             1",
        "  not looked at: ACLs: cluster B is gone",
    ]


def test_no_difference_is_said() -> None:
    assert lines_of(FlowCompared("A->B", "A", "B", compared={"topics": 2})) == [
        "A->B: no differences (2 topics compared)"
    ]
    assert lines_of(FlowCompared("A->B", "A", "B")) == ["A->B: no differences"]


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
