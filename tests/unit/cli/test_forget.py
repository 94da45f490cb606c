from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.cli.forget import sentences
from heliograph.cli.main import main
from heliograph.replication.forgetting import LogRecord, plan_forgetting

FLOW = "A->B"
TOPICS = ("__heliograph-ledger", "__heliograph-telemetry")
KEYS = [f"{FLOW}/orders/0/0", f"holder/{FLOW}#run"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = localhost:1\nB.bootstrap.servers = localhost:1\nA->B.enabled = true\n"
    )
    return path


def test_a_flow_that_the_file_does_not_have_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forget", str(file), "--flow", "A->C", "--yes"]) == 2
    assert "it has A->B" in capsys.readouterr().err


def test_nothing_is_removed_without_a_yes_where_nobody_can_be_asked(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["forget", str(file), "--flow", FLOW]) == 1
    assert "--yes" in capsys.readouterr().err


def test_a_target_out_of_reach_is_one_sentence(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forget", str(file), "--flow", "B->A", "--yes"]) == 1
    assert "connection refused at localhost:1" in capsys.readouterr().err


def test_topics_of_one_flow_alone_are_deleted_and_what_stays_is_said() -> None:
    done, stays = sentences(plan_forgetting(FLOW, KEYS, {}, TOPICS), dry_run=False)
    assert done == "A->B: deleted __heliograph-ledger, __heliograph-telemetry: no other flow was in them"
    assert "remote topics were not touched" in stays


def test_beside_another_flow_keys_and_records_are_counted() -> None:
    logs = {("__heliograph-telemetry", 0): [LogRecord(0, FLOW), LogRecord(1, "C->B"), LogRecord(2, FLOW)]}
    plan = plan_forgetting(FLOW, KEYS, logs, TOPICS)
    assert sentences(plan, dry_run=True)[:3] == [
        "A->B: would remove 2 keys from the ledger",
        "A->B: would remove 1 record from __heliograph-telemetry; 1 record stay until the topic's retention",
        "the topics stay: C->B still has something in them",
    ]


def test_a_flow_without_a_trace_is_said_to_have_none() -> None:
    assert sentences(plan_forgetting(FLOW, (), {}, ()), dry_run=False) == [
        "A->B: Heliograph has no trace of it on its target"
    ]
