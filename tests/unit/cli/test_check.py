from __future__ import annotations

import logging

import pytest

from heliograph.cli.check import log_findings, report
from heliograph.replication.findings import Finding, Level


def test_each_finding_is_a_line_with_its_advice_below_and_the_counts_come_last() -> None:
    findings = [
        Finding(Level.PASS, "A: reach", "3 broker(s) answer"),
        Finding(Level.FAIL, "A->B: permission READ", "READ on topic t of cluster A is missing", "grant it"),
        Finding(Level.WARN, "A->B: clock of B", "not measured", "compare them"),
    ]
    assert report(findings).splitlines() == [
        "PASS  A: reach: 3 broker(s) answer",
        "FAIL  A->B: permission READ: READ on topic t of cluster A is missing",
        "      -> grant it",
        "WARN  A->B: clock of B: not measured",
        "      -> compare them",
        "1 passed, 1 warned, 1 failed",
    ]


def test_the_log_of_a_run_has_what_did_not_pass_and_nothing_twice(caplog: pytest.LogCaptureFixture) -> None:
    findings = [
        Finding(Level.PASS, "A: reach", "1 broker(s) answer"),
        Finding(Level.FAIL, "B: authentication", "h:1: cluster B: h:1: it refuses the login", "see sasl.*"),
        Finding(Level.WARN, "A->B: clock of A", "not measured", "compare them"),
    ]
    with caplog.at_level(logging.INFO, "heliograph"):
        log_findings(findings, ["cluster B: h:1: it refuses the login"])
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "check: A->B: clock of A: not measured (compare them)")
    ]
    caplog.clear()
    with caplog.at_level(logging.INFO, "heliograph"):
        log_findings(findings)
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
