from __future__ import annotations

from heliograph.replication.findings import Finding, Level, has_failed, named


def test_only_a_fail_makes_a_check_fail() -> None:
    passed, warned = Finding(Level.PASS, "a", "b"), Finding(Level.WARN, "a", "b")
    assert not has_failed([])
    assert not has_failed([passed, warned])
    assert has_failed([passed, Finding(Level.FAIL, "a", "b")])


def test_few_names_are_all_said_and_many_are_counted() -> None:
    assert named(["b", "a"]) == "a, b"
    assert named([f"t{number}" for number in range(5)], most=3) == "t0, t1, t2 and 2 more"
