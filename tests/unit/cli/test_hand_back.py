"""`heliograph hand-back`: what is said, and which command lines are refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from heliograph.cli import hand_back, main
from heliograph.config.flows import FlowSettings
from heliograph.migration.hand_back import FlowHandBack
from heliograph.model.clusters import Flow
from heliograph.replication.mm2_progress import HandBack

PLAN = FlowHandBack(
    cast(FlowSettings, SimpleNamespace(flow=Flow("A", "B"))),
    (HandBack("MirrorSourceConnector", ("t", 0), 41, "mm2-offsets.A.internal"),),
    ("mm2-offsets.A.internal",),
    (),
    ("A->B/t/1",),
)


@pytest.fixture
def properties(tmp_path: Path) -> str:
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n")
    return str(path)


def test_every_lane_is_said() -> None:
    assert hand_back._lines(PLAN, dry_run=True) == [
        "flow A->B: would hand back 1 lane",
        "  create topic mm2-offsets.A.internal",
        "  t-0: MirrorMaker 2 goes on at source offset 42 (MirrorSourceConnector in mm2-offsets.A.internal)",
        "  A->B/t/1: never copied, MirrorMaker 2 begins it as it is told",
    ]
    assert hand_back._lines(PLAN, dry_run=False)[0] == "flow A->B: handed back 1 lane"


def test_the_json_says_the_same() -> None:
    assert hand_back._as_json(PLAN) == {
        "flow": "A->B",
        "create": ["mm2-offsets.A.internal"],
        "never_copied": ["A->B/t/1"],
        "lanes": [
            {
                "topic": "t",
                "partition": 0,
                "offset": 41,
                "connector": "MirrorSourceConnector",
                "kept_in": "mm2-offsets.A.internal",
            }
        ],
    }


def test_an_unknown_flow_is_refused(properties: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["hand-back", properties, "--flow", "A->C"]) == 2
    assert capsys.readouterr().err == "heliograph: --flow A->C: no such flow is enabled; the file has A->B\n"


def test_where_nobody_can_be_asked_nothing_is_written(properties: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["hand-back", properties]) == 2
    assert "say --yes" in capsys.readouterr().err
