"""`heliograph plan`: both forms, and a cluster that cannot be looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heliograph.cli import main, plan
from heliograph.cli.plan import lines_of
from heliograph.config.flows import Settings
from heliograph.control.state_topic import Row, StateTopic
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


WORKER = "bootstrap.servers = 127.0.0.1:1\ngroup.id = connect\nlisteners = http://127.0.0.1:8083\n"
COMMANDS = ("plan", "status", "lag", "compare", "audit", "events", "canary")


def test_a_workers_file_says_that_it_has_no_flows_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_rows(_: StateTopic) -> dict[str, Row]:
        return {}

    monkeypatch.setattr(StateTopic, "read", no_rows)
    file = tmp_path / "worker.properties"
    file.write_text(WORKER)
    for command in COMMANDS:
        assert main.main([command, str(file)]) == 0
        assert capsys.readouterr().out == (
            f"{file}: no flows yet (a worker's file): connectors are created by REST, at http://127.0.0.1:8083\n"
        ), command
    file.write_text("clusters = A\nA.bootstrap.servers = 127.0.0.1:1\nlisteners = http://127.0.0.1:8083\n")
    assert main.main(["plan", str(file)]) == 0
    assert ": no flows yet: connectors are created by REST" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_a_workers_file_whose_cluster_does_not_answer_is_not_said_to_have_no_flows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """That cluster keeps the connectors."""
    file = tmp_path / "worker.properties"
    file.write_text(WORKER)
    assert main.main([command, str(file)]) == 1
    said = capsys.readouterr()
    unknown = "which flows there are is not known: cluster worker: connection refused at 127.0.0.1:1"
    assert (said.out, said.err) == ("", f"heliograph: {file}: {unknown}\n")


def test_the_check_of_a_workers_file_asks_its_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "worker.properties"
    file.write_text("bootstrap.servers = 127.0.0.1:1\ngroup.id = connect\nlisteners = http://127.0.0.1:8083\n")
    assert main.main(["check", str(file)]) == 1
    said = capsys.readouterr().out
    assert "FAIL  worker: reach: " in said
    assert "NOTE  flows: which flows there are is not known: cluster worker: connection refused at 127.0.0.1:1" in said
    assert "no flows yet" not in said
