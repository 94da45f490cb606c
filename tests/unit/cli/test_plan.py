"""`heliograph plan`: both forms, and a cluster that cannot be looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heliograph.cli import main, plan
from heliograph.cli.plan import lines_of
from heliograph.config.flows import Settings
from heliograph.operations.pending import FlowPending, Pending


def test_every_change_has_a_line_with_its_reason() -> None:
    flow = FlowPending(
        "A->B",
        [Pending("topics", "topic A.orders", "create with 3 partitions", "source topic 'orders' has no remote topic")],
        ["topic bad: no such name"],
        ["topic configs: cluster B is gone"],
    )
    assert lines_of(flow) == [
        "A->B: 1 change pending",
        "  topic A.orders: create with 3 partitions (source topic 'orders' has no remote topic)",
        "  left out: topic bad: no such name",
        "  not looked at: topic configs: cluster B is gone",
    ]


def test_nothing_pending_is_said() -> None:
    assert lines_of(FlowPending("A->B")) == ["A->B: nothing pending"]


def test_a_flow_that_could_not_be_looked_at_does_not_claim_that_nothing_is_pending() -> None:
    unseen = FlowPending("A->B", troubles=["cluster B is gone"], unseen=True)
    assert lines_of(unseen) == ["A->B: could not be looked at", "  cluster B is gone"]


@pytest.mark.parametrize(("troubles", "code"), [([], 0), (["cluster B is gone"], 1)])
def test_both_forms_and_the_exit_code(
    troubles: list[str],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What clusters answer is shown on real ones, by tests/integration/test_config_sync.py."""

    async def found(settings: Settings) -> list[FlowPending]:
        return [FlowPending(flow.flow.name, troubles=troubles) for flow in settings.flows]

    monkeypatch.setattr(plan, "pending", found)
    file = tmp_path / "mm2.properties"
    file.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n")
    assert main.main(["plan", str(file)]) == code
    told = [f"  not looked at: {trouble}\n" for trouble in troubles]
    assert capsys.readouterr().out == "".join(["A->B: nothing pending\n", *told])
    assert main.main(["plan", str(file), "--json"]) == code
    expected = {"flow": "A->B", "actions": [], "left_out": [], "troubles": troubles, "unseen": False}
    assert json.loads(capsys.readouterr().out) == {"flows": [expected]}
