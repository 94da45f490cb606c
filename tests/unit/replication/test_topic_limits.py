from __future__ import annotations

from dataclasses import replace

import pytest

from heliograph.replication.findings import Level
from heliograph.replication.topic_limits import (
    UNLIMITED_MS,
    LimitPair,
    TopicLimits,
    limit_findings,
    limits_of,
    limits_to_be,
)

DAY_MS = 86_400_000
WIDE = TopicLimits(1_048_588, UNLIMITED_MS, UNLIMITED_MS, append_time=False, retention_ms=7 * DAY_MS)


def levels(source: TopicLimits, target: TopicLimits) -> list[Level]:
    return [finding.level for finding in limit_findings("A->B", [LimitPair("orders", "A.orders", source, target)])]


def test_equal_limits_pass() -> None:
    assert levels(WIDE, WIDE) == [Level.PASS, Level.PASS]


def test_no_topics_pass() -> None:
    assert [finding.level for finding in limit_findings("A->B", [])] == [Level.PASS, Level.PASS]


def test_a_smaller_remote_topic_is_named_with_both_sizes() -> None:
    pair = LimitPair("orders", "A.orders", WIDE, replace(WIDE, max_bytes=1000))
    size, _ = limit_findings("A->B", [pair])
    assert size.level is Level.WARN
    assert size.sentence == "A.orders takes 1000, orders 1048588"
    assert "max.message.bytes" in size.advice


@pytest.mark.parametrize(
    ("source", "target", "refused"),
    [
        (WIDE, replace(WIDE, before_max_ms=DAY_MS), "records older than 1 d"),
        (replace(WIDE, before_max_ms=60_000), replace(WIDE, before_max_ms=DAY_MS), "records older than 1 d"),
        (WIDE, replace(WIDE, after_max_ms=3_600_000), "records more than 1 h in the future"),
        (WIDE, replace(WIDE, after_max_ms=1_500), "records more than 1500 ms in the future"),
        (
            replace(WIDE, before_max_ms=60_000, retention_ms=-1),
            replace(WIDE, before_max_ms=7 * DAY_MS),
            "records older than 7 d",
        ),
    ],
)
def test_a_stricter_remote_topic_says_which_records_it_refuses(
    source: TopicLimits, target: TopicLimits, refused: str
) -> None:
    _, stamps = limit_findings("A->B", [LimitPair("orders", "A.orders", source, target)])
    assert stamps.level is Level.WARN
    assert stamps.sentence == f"A.orders refuses {refused}"


def test_a_limit_that_no_record_of_the_source_can_reach_passes() -> None:
    strict = replace(WIDE, before_max_ms=DAY_MS, retention_ms=DAY_MS)
    assert levels(strict, replace(WIDE, before_max_ms=DAY_MS)) == [Level.PASS, Level.PASS]


def test_a_remote_topic_that_stamps_itself_refuses_no_timestamp() -> None:
    assert levels(WIDE, replace(WIDE, before_max_ms=1, append_time=True)) == [Level.PASS, Level.PASS]


def test_limits_are_read_from_configs_and_absent_ones_are_unlimited() -> None:
    assert limits_of({}) == TopicLimits(1_048_588, UNLIMITED_MS, UNLIMITED_MS, append_time=False, retention_ms=-1)
    found = limits_of(
        {
            "max.message.bytes": "10",
            "message.timestamp.before.max.ms": "20",
            "message.timestamp.after.max.ms": "30",
            "message.timestamp.type": "LogAppendTime",
            "retention.ms": "40",
        }
    )
    assert found == TopicLimits(10, 20, 30, append_time=True, retention_ms=40)


def test_a_topic_to_be_made_has_its_own_configs_and_the_brokers_defaults_for_the_rest() -> None:
    broker = {"message.max.bytes": "500", "log.message.timestamp.after.max.ms": "3600000"}
    found = limits_to_be({"max.message.bytes": "700"}, broker)
    assert (found.max_bytes, found.after_max_ms, found.before_max_ms) == (700, 3_600_000, UNLIMITED_MS)
    assert limits_to_be({}, broker).max_bytes == 500
