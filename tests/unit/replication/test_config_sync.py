"""Topic configs in step, with plain dicts: mm2.md 4.5, but what only the remote topic has stays."""

from __future__ import annotations

import pytest

from heliograph.model.topics import ConfigValue, Topic
from heliograph.replication.config_sync import ChangeConfigs, decode_note, encode_note, plan_configs
from heliograph.replication.topic_plan import TopicRules

RULES = TopicRules(replication_factor=1, config_exclude=lambda name: name == "min.insync.replicas")
DEFAULTS = {
    "retention.ms": "604800000",
    "cleanup.policy": "delete",
    "segment.bytes": "1073741824",
    "min.insync.replicas": "1",
}


def topic(name: str, **overrides: str) -> Topic:
    configs = {key: ConfigValue(value, "DEFAULT_CONFIG") for key, value in DEFAULTS.items()}
    configs |= {key.replace("_", "."): ConfigValue(value) for key, value in overrides.items()}
    return Topic(name, f"id-of-{name}", 1, configs)


def planned(
    here: Topic, there: Topic | None, note: dict[str, str] | None = None, rules: TopicRules = RULES
) -> list[ChangeConfigs]:
    target = {} if there is None else {there.name: there}
    notes = {} if note is None else {here.name: note}
    return plan_configs({here.name: here}, target, lambda name: f"A.{name}", rules, notes)


def applied(there: Topic, change: ChangeConfigs) -> Topic:
    configs = {**there.configs, **{name: ConfigValue(value) for name, value in change.sets.items()}}
    configs |= {name: ConfigValue(DEFAULTS[name], "DEFAULT_CONFIG") for name in change.removes}
    return Topic(there.name, there.topic_id, there.partitions, configs)


def test_what_the_source_sets_is_set_and_then_nothing_is_left() -> None:
    here, there = topic("orders", retention_ms="1000"), topic("A.orders")
    [change] = planned(here, there)
    assert (dict(change.sets), change.removes, change.routine) == ({"retention.ms": "1000"}, (), False)
    assert (change.subject, change.what, change.why) == (
        "topic A.orders",
        "set retention.ms=1000",
        "source topic 'orders' has it so",
    )
    assert planned(here, applied(there, change), dict(change.after)) == []


def test_another_value_on_the_remote_topic_is_set_back() -> None:
    [change] = planned(
        topic("orders", retention_ms="1000"), topic("A.orders", retention_ms="5"), {"retention.ms": "1000"}
    )
    assert change.sets == {"retention.ms": "1000"}


def test_what_the_source_sets_to_the_targets_default_is_set_too() -> None:
    [change] = planned(topic("orders", cleanup_policy="delete"), topic("A.orders"))
    assert change.sets == {"cleanup.policy": "delete"}


def test_an_override_that_only_the_remote_topic_has_stays() -> None:
    assert planned(topic("orders"), topic("A.orders", retention_ms="5")) == []


def test_what_we_set_is_removed_when_the_source_no_longer_sets_it() -> None:
    there = topic("A.orders", retention_ms="1000", segment_bytes="5")
    [change] = planned(topic("orders"), there, {"retention.ms": "1000"})
    assert (dict(change.sets), change.removes, change.routine) == ({}, ("retention.ms",), False)
    assert change.what == "remove retention.ms"
    assert change.why == "source topic 'orders' no longer sets what was copied from it"
    after = applied(there, change)
    assert after.config("segment.bytes") == "5"
    assert planned(topic("orders"), after, dict(change.after)) == []


def test_what_somebody_changed_since_is_not_ours_any_more() -> None:
    [change] = planned(topic("orders"), topic("A.orders", retention_ms="5"), {"retention.ms": "1000"})
    assert change.routine and change.after == {}


def test_what_somebody_removed_since_is_only_forgotten() -> None:
    [change] = planned(topic("orders"), topic("A.orders"), {"retention.ms": "1000"})
    assert change.routine and change.after == {}


def test_an_excluded_config_is_neither_set_nor_removed() -> None:
    here, there = topic("orders", min_insync_replicas="2"), topic("A.orders", min_insync_replicas="3")
    assert planned(here, there) == []
    [change] = planned(topic("orders"), there, {"min.insync.replicas": "3"})
    assert change.routine and change.after == {}


def test_a_remote_topic_that_is_equal_from_its_creation_is_remembered_and_nothing_is_pending() -> None:
    [change] = planned(topic("orders", retention_ms="1000"), topic("A.orders", retention_ms="1000"))
    assert change.routine and change.after == {"retention.ms": "1000"}
    assert (change.what, change.why) == ("remember the configs of", "source topic 'orders' sets them")


def test_both_in_one_change() -> None:
    here = topic("orders", retention_ms="1", segment_bytes="2")
    [change] = planned(here, topic("A.orders", cleanup_policy="compact"), {"cleanup.policy": "compact"})
    assert change.what == "set retention.ms=1, segment.bytes=2; remove cleanup.policy"
    assert change.why == "source topic 'orders' has it so; source topic 'orders' no longer sets what was copied from it"


def test_a_config_that_the_target_does_not_know_is_left_out() -> None:
    assert planned(topic("orders", since_release_9="x"), topic("A.orders")) == []


def test_a_source_topic_without_a_remote_one_waits_for_it() -> None:
    assert planned(topic("orders", retention_ms="1"), None) == []


@pytest.mark.parametrize(("kept", "expected"), [("604800000", []), ("5", ["retention.ms"])])
def test_the_sources_defaults_count_where_they_differ_if_asked_for(kept: str, expected: list[str]) -> None:
    rules = TopicRules(1, lambda _: False, "source")
    there = topic("A.orders")
    there = Topic(there.name, "", 1, {**there.configs, "retention.ms": ConfigValue(kept, "DEFAULT_CONFIG")})
    [change] = planned(topic("orders"), there, rules=rules)
    assert list(change.sets) == expected


def test_topics_come_in_the_order_of_their_names() -> None:
    source = {name: topic(name, retention_ms="1") for name in ("b", "a")}
    target = {f"A.{name}": topic(f"A.{name}") for name in ("b", "a")}
    changes = plan_configs(source, target, lambda name: f"A.{name}", RULES, {})
    assert [change.remote for change in changes] == ["A.a", "A.b"]


def test_a_note_is_read_back_as_it_was_written() -> None:
    configs = {"retention.ms": "1000", "x": "ü"}
    written = encode_note(configs)
    assert written is not None and decode_note(written) == configs
    assert encode_note({}) is None


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"version":2,"set":{"a":"b"}}', b'{"version":1,"set":[]}'])
def test_a_note_that_cannot_be_read_is_no_note(value: bytes) -> None:
    assert decode_note(value) == {}
