"""A file saved again: what counts at once, what waits for the next start, which flows come and go."""

from __future__ import annotations

from dataclasses import fields

import pytest

from heliograph.config.changes import LIMITS, LIVE, changes, only_limits
from heliograph.config.flows import FlowSettings, Settings
from heliograph.config.load import load

BASE = (
    "clusters = A, B, C\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nC.bootstrap.servers = c:1\n"
    "A->B.enabled = true\nemit.heartbeats.enabled = false\n"
)
LATER = "changed too, which counts from the next start"


def settings(*lines: str) -> Settings:
    return load(BASE + "\n".join(lines), "mm2.properties")


def test_nothing_changes_nothing() -> None:
    found = changes(settings(), settings())
    assert (found.added, found.removed, found.changed, found.said) == ((), (), (), ())


def test_topics_count_at_once_and_are_said_with_what_they_were() -> None:
    found = changes(settings("A->B.topics = orders"), settings("A->B.topics = orders, payments"))
    assert [flow.topics for flow in found.changed] == [("orders", "payments")]
    assert found.said == ("A->B.topics = orders, payments, it was orders",)


def test_a_limit_of_a_topic_that_is_gone_is_said_as_not_set() -> None:
    found = changes(settings("A->B.topic.orders.throttle.bytes.per.second = 5"), settings())
    assert [flow.throttle_topics for flow in found.changed] == [()]
    assert found.said == ("A->B.topic.orders.throttle.bytes.per.second = not set, it was 5",)


def test_flows_come_and_go() -> None:
    found = changes(settings("A->C.enabled = true"), settings("B->C.enabled = true"))
    assert [flow.flow.name for flow in found.added] == ["B->C"]
    assert found.removed == ("A->C",)
    assert found.said == ("flow B->C is new", "flow A->C ends")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("replication.policy.separator = _", "A->B: names of remote topics"),
        ("A->B.start.from = latest", "A->B: where lanes begin"),
        ("A.security.protocol = SSL", "A->B: how clusters are reached"),
        ("A->B.consumer.isolation.level = read_uncommitted", "A->B: isolation"),
        ("slots = 7", "of the run: slots"),
        ("epoch.seconds = 5", "of the run: epoch.seconds"),
    ],
)
def test_what_cannot_change_under_way_waits_and_is_named(line: str, words: str) -> None:
    found = changes(settings(), settings(line))
    assert found.changed == ()
    assert found.said == (f"{words} {LATER}",)


def test_what_counts_is_not_held_up_by_what_waits() -> None:
    now = settings("A->B.topics = orders")
    found = changes(now, settings("A->B.topics = payments", "replication.policy.separator = _"))
    (flow,) = found.changed
    assert (flow.topics, flow.separator) == (("payments",), ".")
    assert f"A->B: names of remote topics {LATER}" in found.said


def test_a_run_that_ends_by_itself_changes_its_limits_alone() -> None:
    lines = ("A->B.topics = orders", "throttle.bytes.per.second = 5", "B->C.enabled = true")
    found = changes(settings(), settings(*lines), LIMITS)
    assert (found.added, found.removed) == ((), ())
    assert [(flow.throttle, flow.topics) for flow in found.changed] == [(5, settings().flows[0].topics)]
    assert f"A->B: topics {LATER}" in found.said
    assert f"flows: B->C {LATER}" in found.said


def test_what_is_live_are_settings_of_a_flow() -> None:
    assert {field.name for field in fields(FlowSettings)} >= LIVE


IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def test_a_flow_whose_records_would_come_home_unknown_waits_for_the_next_start() -> None:
    found = changes(settings(IDENTITY), settings(IDENTITY, "B->A.enabled = true", "A->C.enabled = true"))
    assert [flow.flow.name for flow in found.added] == ["A->C"]
    assert found.said[0] == "flow A->C is new"
    assert found.said[1].startswith("flow B->A waits for the next start: it keeps names, and A->B must know")
    assert f"A->B: the flow in the other direction {LATER}" in found.said
    ended = changes(settings(IDENTITY, "B->A.enabled = true"), settings(IDENTITY))
    assert ended.removed == ("B->A",)
    assert [flow.home for flow in ended.changed] == ["B->A"], "what it wrote last may not have been passed yet"


def test_names_that_other_flows_give_count_at_once_and_a_flows_own_wait() -> None:
    own = "A->B.topic.rename.format = a-${topic}"
    found = changes(settings(own), settings(own, "B->A.enabled = true", "B->A.topic.rename.format = b-${topic}"))
    [flow] = found.changed
    assert flow.naming.is_cycle("b-x", "B")
    assert flow.remote_name("x") == "a-x"
    other = changes(settings(own), settings("A->B.topic.rename.format = z-${topic}"))
    assert other.changed == ()
    assert other.said == (f"A->B: names of remote topics {LATER}",)
    gone = changes(settings(own), settings())
    assert gone.changed == ()
    assert gone.said == (f"A->B: names of remote topics {LATER}",)
    come = changes(settings(), settings(own))
    assert come.changed == ()


def test_another_limit_alone_changes_neither_plan_nor_jobs() -> None:
    limit = "A->B.topic.orders.throttle.bytes.per.second = 5"
    now, limited, more = (settings(*lines).flows[0] for lines in ((), (limit,), (limit, "A->B.topics = orders")))
    assert only_limits(now, limited)
    assert not only_limits(now, more)
