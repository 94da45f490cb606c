from __future__ import annotations

import pytest

from heliograph.replication.findings import Level
from heliograph.replication.permissions import (
    NEEDS,
    Granted,
    Missing,
    Need,
    Occasion,
    On,
    at_run,
    missing_on_cluster,
    missing_on_topic,
    missing_to_write,
    permission_findings,
)

FLOW = "A->B"
ALIASES = ("A", "B")


def need(on: On, operation: str) -> Need:
    (found,) = [row for row in NEEDS if row.on is on and row.operation == operation]
    return found


def test_a_granted_permission_passes_and_names_resource_and_operation() -> None:
    (finding,) = permission_findings(FLOW, ALIASES, [Granted(need(On.SOURCE_TOPICS, "READ"), {"orders": True})])
    assert finding.level is Level.PASS
    assert finding.subject == "A->B: permission READ"
    assert finding.sentence == "granted on topic orders of cluster A"
    assert finding.advice == ""


def test_a_missing_one_names_only_the_resources_that_lack_it_and_the_cluster_to_grant_it_on() -> None:
    answer = Granted(need(On.REMOTE_TOPICS, "WRITE"), {"A.b": False, "A.a": False, "A.c": True})
    (finding,) = permission_findings(FLOW, ALIASES, [answer])
    assert finding.level is Level.FAIL
    assert finding.sentence == "WRITE on topics A.a, A.b of cluster B is missing: records are written"
    assert finding.advice == "grant WRITE on topics A.a, A.b to Heliograph's principal on cluster B"


@pytest.mark.parametrize(
    ("on", "operation", "name", "said"),
    [
        (On.TARGET_CLUSTER, "DESCRIBE_CONFIGS", "", "DESCRIBE_CONFIGS on the cluster of cluster B"),
        (On.SOURCE_CLUSTER, "DESCRIBE", "", "DESCRIBE on the cluster of cluster A"),
        (On.TRANSACTIONAL_ID, "WRITE", "heliograph.A->B", "WRITE on transactional id heliograph.A->B of cluster B"),
        (On.MM2_GROUP, "DESCRIBE", "A-mm2", "DESCRIBE on group A-mm2 of cluster B"),
        (On.OWN_TOPICS, "CREATE", "__heliograph-ledger", "CREATE on topic __heliograph-ledger of cluster B"),
        (On.OWN_TOPICS, "DELETE", "__heliograph-ledger", "DELETE on topic __heliograph-ledger of cluster B"),
        (On.TARGET_CLUSTER, "ALTER", "", "ALTER on the cluster of cluster B"),
        (On.SOURCE_HEARTBEATS, "WRITE", "heartbeats", "WRITE on topic heartbeats of cluster A"),
        (On.TARGET_HEARTBEATS, "CREATE", "heartbeats", "CREATE on topic heartbeats of cluster B"),
        (On.START_GROUP, "DESCRIBE", "old", "DESCRIBE on group old of cluster A"),
        (On.MM2_OFFSETS, "READ", "mm2-offsets.A.internal", "READ on topic mm2-offsets.A.internal of cluster B"),
        (On.MM2_CONFIGS, "READ", "mm2-configs.A.internal", "READ on topic mm2-configs.A.internal of cluster B"),
        (On.SOURCE_GROUPS, "DESCRIBE", "billing", "DESCRIBE on group billing of cluster A is missing"),
        (On.TARGET_GROUPS, "READ", "billing", "READ on group billing of cluster B is missing"),
        (On.CHECKPOINTS, "READ", "A.checkpoints.internal", "READ on topic A.checkpoints.internal of cluster B"),
        (
            On.SOURCE_SYNCS,
            "WRITE",
            "mm2-offset-syncs.B.internal",
            "WRITE on topic mm2-offset-syncs.B.internal of cluster A",
        ),
        (
            On.TARGET_SYNCS,
            "WRITE",
            "mm2-offset-syncs.A.internal",
            "WRITE on topic mm2-offset-syncs.A.internal of cluster B",
        ),
        (On.HOME_LEDGER, "READ", "__heliograph-ledger", "READ on topic __heliograph-ledger of cluster A is missing"),
        (On.DEAD_LETTERS, "WRITE", "__heliograph-dead-letter.A.t", "WRITE on topic __heliograph-dead-letter.A.t of"),
    ],
)
def test_every_kind_of_resource_is_named_as_kafka_calls_it(on: On, operation: str, name: str, said: str) -> None:
    (finding,) = permission_findings(FLOW, ALIASES, [Granted(need(on, operation), {name: False})])
    assert finding.sentence.startswith(said)
    assert finding.level is need(on, operation).level


def test_a_permission_that_no_resource_needs_now_has_no_line() -> None:
    assert list(permission_findings(FLOW, ALIASES, [Granted(need(On.REMOTE_TOPICS, "CREATE"), {})])) == []


def test_alter_is_a_warning_until_a_remote_topic_must_grow() -> None:
    alter = need(On.REMOTE_TOPICS, "ALTER")
    (later,) = permission_findings(FLOW, ALIASES, [Granted(alter, {"A.a": False}, frozenset({"A.b"}))])
    (now,) = permission_findings(FLOW, ALIASES, [Granted(alter, {"A.a": False}, frozenset({"A.a"}))])
    assert (later.level, now.level) == (Level.WARN, Level.FAIL)


def test_no_need_stands_twice_in_the_table() -> None:
    assert len({(row.on, row.operation) for row in NEEDS}) == len(NEEDS)


def test_a_refusal_on_a_topic_names_what_is_missing_and_where_to_grant_it() -> None:
    missing = missing_on_topic(29, "READ", "orders", "A")
    assert missing is not None
    assert str(missing) == "READ on the topic orders of cluster A"
    assert missing.advice == "grant READ on the topic orders to Heliograph's principal on cluster A"


@pytest.mark.parametrize("code", [None, 0, 3, 30, 53])
def test_what_is_no_refusal_of_a_topic_misses_nothing_there(code: int | None) -> None:
    assert missing_on_topic(code, "READ", "orders", "A") is None
    assert missing_to_write(code, "A.orders", "B") is None


def test_a_refused_write_misses_the_topic_or_with_old_brokers_the_cluster() -> None:
    assert missing_to_write(29, "A.orders", "B") == Missing("WRITE", "the topic A.orders", "B")
    assert str(missing_to_write(31, "A.orders", "B")) == "IDEMPOTENT_WRITE on the cluster of cluster B"


def test_a_run_is_told_what_it_needs_itself_and_nothing_that_other_commands_need() -> None:
    assert {occasion for occasion in Occasion if occasion.is_at_run} == {
        Occasion.RUN,
        Occasion.BOTH_WAYS,
        Occasion.TAKE_OVER,
    }


def test_a_refusal_on_the_cluster_names_what_is_missing() -> None:
    assert missing_on_cluster(31, "ALTER", "B") == Missing("ALTER", "the cluster", "B")
    assert missing_on_cluster(29, "ALTER", "B") is None


def test_what_jobs_need_is_only_advised_and_is_left_to_them_at_a_run() -> None:
    wanted = [row for row in NEEDS if row.when is Occasion.JOBS]
    assert {row.level for row in wanted} == {Level.WARN}
    assert list(at_run(FLOW, ALIASES, [Granted(row, {"x": False}) for row in wanted])) == []


def test_at_a_run_progress_that_is_not_seen_is_one_calm_note_and_what_is_seen_a_warning() -> None:
    offsets, configs = "mm2-offsets.A.internal", "mm2-configs.A.internal"
    answers = [
        Granted(need(On.MM2_OFFSETS, "READ"), {offsets: False}, unseen=frozenset({offsets})),
        Granted(need(On.MM2_CONFIGS, "READ"), {configs: False}, unseen=frozenset({configs})),
        Granted(need(On.SOURCE_TOPICS, "READ"), {"orders": False}),
    ]
    missing, note = at_run(FLOW, ALIASES, answers)
    assert missing.level is Level.FAIL
    why = "this only matters if a MirrorMaker 2 copied the flow before"
    assert (note.level, note.advice) == (Level.NOTE, "")
    assert note.sentence == f"READ on topics {configs}, {offsets} of cluster B is not granted: {why}"
    (seen,) = at_run(FLOW, ALIASES, [Granted(need(On.MM2_CONFIGS, "READ"), {configs: False})])
    assert seen.level is Level.WARN


def test_a_permission_that_is_advised_fails_where_it_cannot_be_done_without() -> None:
    read = need(On.MM2_OFFSETS, "READ")
    (hidden,) = permission_findings(FLOW, ALIASES, [Granted(read, {"mm2-offsets.A.internal": False})])
    there = frozenset({"mm2-offsets.A.internal"})
    (seen,) = permission_findings(FLOW, ALIASES, [Granted(read, {"mm2-offsets.A.internal": False}, there)])
    assert (hidden.level, seen.level) == (Level.WARN, Level.FAIL)
