from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.cli.canary import sentence
from heliograph.cli.main import main
from heliograph.operations.canary import CanaryLook

FLOW = (
    "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\nA->B.topics = orders\n"
)


def test_an_arrival_is_told_with_its_latency_and_what_did_not_arrive_with_its_reason() -> None:
    assert sentence(CanaryLook("A->B", "c", "A.c", 1234.56)) == "A->B: 1,234.6 ms from c to A.c"
    assert sentence(CanaryLook("A->B", "c", "A.c", None, "no mirror")) == "A->B: no mirror"


def test_a_flow_that_does_not_carry_the_canary_is_told_without_asking_a_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f"
    file.write_text(FLOW)
    assert main(["canary", str(file)]) == 1
    said = "A->B: the flow does not carry topic heliograph-canary-A-B: write canary.enabled = true\n"
    assert capsys.readouterr().out == said


def test_an_unknown_flow_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f"
    file.write_text(FLOW)
    assert main(["canary", str(file), "--flow", "A->C"]) == 2
    assert "--flow A->C: no such flow in" in capsys.readouterr().err
