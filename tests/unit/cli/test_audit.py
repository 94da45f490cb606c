from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from heliograph.cli import audit
from heliograph.cli.audit import sentence
from heliograph.cli.main import main
from heliograph.config.flows import FlowSettings
from heliograph.errors import ClusterUnreachable
from heliograph.model.lanes import LaneId
from heliograph.operations.audit import LaneAudit
from heliograph.replication.auditing import Account

LANE = LaneId("A->B", "orders", 0)


def audited(end: int, account: Account) -> LaneAudit:
    return LaneAudit(LANE, "A.orders", 10, end, account)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (audited(10, Account()), "A->B orders-0: 0 offsets from 10 = 0 copied"),
        (
            audited(1_244, Account(copied=1_200, control=20, aborted=14)),
            "A->B orders-0: 1,234 offsets from 10 = 1,200 copied + 20 control + 14 aborted",
        ),
        (
            audited(15, Account(copied=4, missing=1)),
            "A->B orders-0: 5 offsets from 10 = 4 copied + 1 MISSING; it does not close",
        ),
        (
            audited(14, Account(copied=4, repeated=2)),
            "A->B orders-0: 4 offsets from 10 = 4 copied; 2 REPEATED on A.orders; it does not close",
        ),
        (audited(15, Account(copied=4)), "A->B orders-0: 5 offsets from 10 = 4 copied; it does not close"),
        (LaneAudit(LANE, "A.orders", trouble="gone"), "A->B orders-0: not audited: gone"),
    ],
)
def test_a_lane_is_one_line(found: LaneAudit, expected: str) -> None:
    assert sentence(found) == expected


def test_a_lane_that_was_not_audited_does_not_close() -> None:
    shown = LaneAudit(LANE, "A.orders", trouble="gone").as_json()
    assert shown["closes"] is False and shown["trouble"] == "gone" and shown["copied"] == 0


def test_a_flow_that_the_file_does_not_have_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = localhost:1\nB.bootstrap.servers = localhost:1\nA->B.enabled = true\n"
    )
    assert main(["audit", str(path), "--flow", "A->C"]) == 2
    assert "it has A->B" in capsys.readouterr().err
    assert main(["audit", str(path)]) == 1
    assert "connection refused at localhost:1" in capsys.readouterr().err


def test_a_flow_that_cannot_be_audited_hides_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def audit_flow(flow: FlowSettings) -> AsyncIterator[LaneAudit]:
        if flow.flow.name == "A->B":
            raise ClusterUnreachable("cluster B: gone")
        yield audited(14, Account(copied=4))

    monkeypatch.setattr(audit, "audit_flow", audit_flow)
    path = tmp_path / "mm2.properties"
    addresses = "".join(f"{alias}.bootstrap.servers = 127.0.0.1:1\n" for alias in "ABC")
    path.write_text(f"clusters = A, B, C\n{addresses}A->B.enabled = true\nA->C.enabled = true\n")
    assert main(["audit", str(path)]) == 1
    said = capsys.readouterr()
    assert said.err == "heliograph: A->B: could not be audited: cluster B: gone\n"
    assert said.out == "A->B orders-0: 4 offsets from 10 = 4 copied\n"
