from __future__ import annotations

from heliograph.cli.check import report
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
