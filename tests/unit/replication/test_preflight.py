from __future__ import annotations

from dataclasses import replace

import pytest

from heliograph.replication.broker_versions import unsupported
from heliograph.replication.findings import Level
from heliograph.replication.preflight import (
    BrokerFacts,
    ClockFacts,
    ClusterFacts,
    SpaceFacts,
    api_findings,
    choice_findings,
    clock_findings,
    factor_finding,
    identity_finding,
    reach_findings,
    space_finding,
    wait_findings,
)

PASS, WARN, FAIL = Level.PASS, Level.WARN, Level.FAIL
MODERN = {0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 10: (0, 6), 22: (0, 6), 61: (0, 0)}
HOUR_MS, DAY_MS = 3_600_000, 86_400_000


def cluster(alias: str = "A", brokers: int = 1, **more: object) -> ClusterFacts:
    found = tuple(BrokerFacts(node, f"h{node}:9092", versions=MODERN) for node in range(1, brokers + 1))
    facts = ClusterFacts(alias, ("h1:9092",), cluster_id=f"id-{alias}", brokers=found)
    return replace(facts, **more)  # type: ignore[arg-type]


def test_a_cluster_that_answers_passes_reach_and_authentication() -> None:
    findings = list(reach_findings(cluster(brokers=3)))
    assert [finding.level for finding in findings] == [PASS, PASS]
    assert "3 broker(s)" in findings[0].sentence
    assert "PLAINTEXT" in findings[1].sentence


def test_an_unreachable_cluster_fails_with_the_cause_and_the_option() -> None:
    facts = cluster(unreachable="cluster A: connection refused at a:9092")
    (finding,) = reach_findings(facts)
    assert not facts.is_open
    assert (finding.level, finding.subject) == (FAIL, "A: reach")
    assert finding.sentence == "cluster A: connection refused at a:9092", "the address is named once"
    assert "A.bootstrap.servers" in finding.advice


def test_a_refused_login_fails_authentication_and_not_reach() -> None:
    (finding,) = reach_findings(cluster(refused="wrong password"))
    assert (finding.level, finding.subject) == (FAIL, "A: authentication")
    assert "wrong password" in finding.sentence


def test_one_broker_out_of_reach_is_a_warning_all_of_them_a_failure() -> None:
    lost = BrokerFacts(2, "inside:9092", "no route")
    some = replace(cluster(), brokers=(*cluster().brokers, lost))
    (warned, login) = reach_findings(some)
    (failed, _) = reach_findings(replace(some, brokers=(lost,)))
    assert (warned.level, login.level, failed.level) == (WARN, PASS, FAIL)
    assert "broker 2 is to be reached at inside:9092, and is not: no route" in warned.sentence
    assert "advertised.listeners" in warned.advice


@pytest.mark.parametrize(("one", "other", "level"), [("x", "y", PASS), ("x", "x", FAIL), ("x", "", WARN)])
def test_two_aliases_of_one_cluster_are_found_by_its_id(one: str, other: str, level: Level) -> None:
    found = identity_finding("A->B", cluster(cluster_id=one), cluster("B", cluster_id=other))
    assert found.level is level
    assert bool(found.advice) == (level is not PASS)


def test_versions_that_all_brokers_share_are_shown() -> None:
    old = BrokerFacts(2, "h2:9092", versions=MODERN | {1: (0, 13)})
    brokers = (*cluster().brokers, old)
    (as_target,) = api_findings(replace(cluster(), brokers=brokers), is_target=True)
    (as_source,) = api_findings(replace(cluster(), brokers=brokers), is_target=False)
    assert as_target.level is as_source.level is PASS
    assert "Fetch 4-13" in as_target.sentence and "Fetch 4-13" in as_source.sentence
    assert "DescribeProducers 0" in as_target.sentence and "DescribeProducers" not in as_source.sentence


def test_a_broker_that_lacks_a_message_is_named_as_a_run_would_refuse_it() -> None:
    old = {key: versions for key, versions in MODERN.items() if key != 61} | {1: (0, 12)}
    facts = replace(cluster(), brokers=(BrokerFacts(7, "h7:9092", versions=old),))
    (as_target,) = api_findings(facts, is_target=True)
    (as_source,) = api_findings(facts, is_target=False)
    assert as_target.level is as_source.level is FAIL
    assert as_source.sentence == unsupported("cluster 'A': broker 7 at h7:9092", old, is_target=False)
    assert "Fetch 13" in as_target.sentence and "DescribeProducers 0" in as_target.sentence
    assert "DescribeProducers" not in as_source.sentence


def test_versions_of_a_broker_that_was_not_reached_say_nothing() -> None:
    silent = replace(cluster(), brokers=(BrokerFacts(1, "h1:9092", "no route"),))
    assert list(api_findings(silent, is_target=True)) == []


@pytest.mark.parametrize(("wanted", "level"), [(-1, PASS), (0, PASS), (1, PASS), (2, PASS), (3, FAIL)])
def test_a_replication_factor_needs_as_many_brokers(wanted: int, level: Level) -> None:
    found = factor_finding("A->B", "replication.factor", wanted, cluster("B", brokers=2))
    assert found.level is level
    assert "2 broker(s)" in found.sentence


@pytest.mark.parametrize(
    ("ahead_ms", "within_ms", "expiration_ms", "level"),
    [
        (0, 1, DAY_MS, PASS),
        (-9_000, 5, DAY_MS, PASS),
        (10_500, 600, DAY_MS, PASS),
        (11_000, 600, DAY_MS, WARN),
        (-HOUR_MS, 0, DAY_MS, FAIL),
        (HOUR_MS - 1, 0, DAY_MS, WARN),
        (61_000, 0, 120_000, FAIL),
    ],
)
def test_a_clock_fails_where_the_guards_margin_does(
    ahead_ms: int, within_ms: int, expiration_ms: int, level: Level
) -> None:
    target = cluster("B", clock=ClockFacts(ahead_ms, within_ms))
    source, found = clock_findings("A->B", cluster(clock=ClockFacts(0, 1)), target, expiration_ms)
    assert source.level is PASS
    assert found.level is level
    assert ("ahead of" if ahead_ms > 0 else "behind") in found.sentence
    assert "DescribeQuorum" in found.sentence


def test_a_clock_that_could_not_be_measured_says_why() -> None:
    (_, found) = clock_findings("A->B", cluster(clock=ClockFacts(0, 1)), cluster("B", no_clock="too old"), DAY_MS)
    assert found.level is WARN
    assert found.sentence == "not measured: too old"


@pytest.mark.parametrize(("needed", "level"), [(0, PASS), (800, PASS), (801, WARN), (1000, WARN), (1001, FAIL)])
def test_space_must_hold_what_is_still_to_be_copied(needed: int, level: Level) -> None:
    assert space_finding("A->B", "B", needed, SpaceFacts(2000, 1000)).level is level


def test_unknown_space_is_a_warning_and_sizes_are_readable() -> None:
    unknown = space_finding("A->B", "B", 0, None, "brokers do not tell")
    assert (unknown.level, unknown.sentence) == (WARN, "not known: brokers do not tell")
    known = space_finding("A->B", "B", 5_000_000, SpaceFacts(4 * 10**15, 10**9))
    assert known.sentence.startswith("5 MB are still to be copied (all replicas), 1 GB of 4000.0 TB free")


def test_names_that_no_topic_has_are_told() -> None:
    (finding,) = choice_findings("A->B", ["orders", "oders"], ["orders"], ["orders", "other"])
    assert finding.level is WARN
    assert "oders" in finding.sentence


def test_nothing_chosen_is_told_with_and_without_names() -> None:
    assert [f.level for f in choice_findings("A->B", [], [], ["x"])] == [WARN]
    assert [f.level for f in choice_findings("A->B", ["y"], [], ["x"])] == [WARN, WARN]


def test_chosen_topics_are_counted() -> None:
    (finding,) = choice_findings("A->B", ["b"], ["a", "b"], ["a", "b"])
    assert (finding.level, finding.sentence) == (PASS, "2 chosen: a, b")


@pytest.mark.parametrize(
    ("wait_s", "lag_ms", "needed"), [(90, 30_000, 0), (89, 30_000, 90), (53, 0, 0), (90, 60_000, 120)]
)
def test_a_take_over_wait_that_followers_of_the_target_may_outlast_is_told(
    wait_s: int, lag_ms: int, needed: int
) -> None:
    """M10: the file alone cannot tell."""
    found = list(wait_findings("A->B", wait_s, 30_000, lag_ms))
    assert [(one.level, one.subject, one.advice) for one in found] == (
        [(WARN, "A->B: takeover.wait.seconds", f"set it to {needed} or more")] if needed else []
    )
    assert all(f"the target's replica.lag.time.max.ms = {lag_ms}" in one.sentence for one in found)
