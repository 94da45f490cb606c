from __future__ import annotations

import pytest

from heliograph.config.flows import FlowSettings
from heliograph.config.load import load
from heliograph.config.watching import CanarySettings, WatchSettings
from heliograph.errors import ConfigError
from heliograph.replication.group_health import HealthRules

BASE = (
    "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\nA->B.topics = orders\n"
)


def flow(*lines: str) -> FlowSettings:
    return load(BASE + "\n".join(lines), "f").flows[0]


def test_positions_are_committed_unless_the_file_says_no_or_the_source_is_not_written_to() -> None:
    assert flow().jobs.watch == WatchSettings()
    assert flow("A->B.commit.source.group = false").jobs.watch == WatchSettings(source_group=False)
    readonly = flow("A->B.source.readonly = true").jobs.watch
    assert (readonly.source_group, readonly.source_readonly) == (False, True)
    both = flow("A->B.source.readonly = true", "commit.source.group = false").jobs.watch
    assert (both.source_group, both.source_readonly) == (False, False)
    assert flow("commit.source.group.interval.seconds = 5").jobs.watch.source_group_interval_s == 5


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("commit.source.group = true", "positions would be committed on the source"),
        ("A->B.canary.enabled = true", "the canary would write to the source"),
    ],
)
def test_what_would_write_to_a_readonly_source_is_refused(line: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        flow("A->B.source.readonly = true", line)
    (fault,) = caught.value.faults
    assert fault == f"f: A->B: {line} does not go with source.readonly = true: {sentence}; leave one of them out"


def test_the_canarys_topic_is_the_flows_where_the_canary_is_on() -> None:
    assert not flow().topic_names.accepts("heliograph-canary-A-B")
    on = flow("canary.enabled = true", "canary.interval.seconds = 3", "canary.limit.ms = 250")
    assert on.jobs.watch.canary == CanarySettings(3, 250)
    assert on.topic_names.accepts("heliograph-canary-A-B") and on.topic_names.accepts("orders")
    assert not on.topic_names.accepts("payments")


def test_the_groups_of_other_runs_are_never_looked_after() -> None:
    assert flow().group_names.accepts("billing")
    assert not flow("A->B.groups = .*, heliograph-.*").group_names.accepts("heliograph-C-A")


def test_the_rules_of_health_are_burrows() -> None:
    assert load(BASE, "f").engine.health.rules == HealthRules(10, 0.0, 0)
    lines = "group.health.intervals = 5\ngroup.health.minimum.complete = 0.5\ngroup.health.allowed.lag = 7\n"
    health = load(BASE + lines + "group.health.interval.seconds = 2\n", "f").engine.health
    assert (health.interval_s, health.rules) == (2, HealthRules(5, 0.5, 7))
