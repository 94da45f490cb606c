from __future__ import annotations

import json

from heliograph.model.clusters import Flow
from heliograph.replication.canary import Canary, Punctuality, SendCanary, WithCanary, canary_topic, make_canary_topic
from heliograph.replication.filters import NameFilter

TOPIC = canary_topic(Flow("A", "B"))


class Time:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def test_the_topic_is_taken_whatever_the_file_says_and_no_other() -> None:
    names = WithCanary(NameFilter(("orders",), ("heliograph-.*", "old")), TOPIC)
    assert TOPIC == "heliograph-canary-A-B"
    assert names.accepts(TOPIC) and names.accepts("orders") and not names.accepts("heliograph-canary-A-C")
    assert names.excludes("old") and not names.excludes(TOPIC) and not names.excludes("orders")


def test_latency_is_told_once_for_each_event_of_our_own() -> None:
    now = Time()
    canary = Canary("me", now)
    assert canary.sentence() == "0 sent, none arrived yet"
    key, value = canary.send(1234)
    assert json.loads(value) == {"version": 1, "sent_ms": 1234}
    now.s += 0.25
    assert (canary.waiting_ms, canary.last_ms) == (250.0, None)
    assert canary.see(b"other/1") is None and canary.see(None) is None
    assert canary.see(key) == 250.0
    assert canary.see(key) is None
    assert canary.waiting_ms == 0.0
    assert canary.standing() == {
        "sent": 1,
        "arrived": 1,
        "waiting_ms": 0,
        "last_ms": 250.0,
        "median_ms": 250.0,
        "longest_ms": 250.0,
    }
    assert canary.sentence() == "250.0 ms; of the last 1 the median 250.0 ms, the longest 250.0 ms"


def test_two_senders_have_events_of_their_own() -> None:
    one, other = Canary("one", Time()), Canary("other", Time())
    key, _ = one.send(0)
    other.send(0)
    assert other.see(key) is None and one.see(key) == 0.0


def test_what_could_not_be_written_is_not_awaited_and_does_not_count() -> None:
    now = Time()
    canary = Canary("me", now)
    lost, _ = canary.send(0)
    canary.give_up(lost)
    now.s += 60
    assert (canary.waiting_ms, canary.sent, canary.why_late(1_000)) == (0.0, 0, "")
    key, _ = canary.send(0)
    now.s += 0.5
    assert canary.see(lost) is None, "it was there after all, and another event has another key"
    assert (canary.see(key), canary.sent, canary.arrived) == (500.0, 1, 1)


def test_it_is_late_when_the_last_took_long_or_the_next_does_not_come() -> None:
    now = Time()
    canary = Canary("me", now)
    first, _ = canary.send(0)
    now.s += 0.5
    assert canary.why_late(500) == ""
    now.s += 0.1
    assert canary.why_late(500) == "an event that was sent 0.6 s ago has not arrived; canary.limit.ms is 500"
    canary.see(first)
    assert canary.why_late(500) == "the last event took 600 ms; canary.limit.ms is 500"
    second, _ = canary.send(0)
    canary.see(second)
    assert canary.why_late(500) == ""


def test_lateness_is_told_when_it_begins_and_when_it_ends() -> None:
    now, late = Time(), Punctuality()
    canary = Canary("me", now)
    key, _ = canary.send(0)
    assert late.look(canary, 500) == ""
    now.s += 1
    assert late.look(canary, 0) == "", "there is no limit"
    assert late.look(canary, 500).startswith("an event that was sent 1.0 s ago") and late.is_late
    canary.see(key)
    assert late.look(canary, 500) == "", "it took too long"
    canary.see(canary.send(0)[0])
    assert late.look(canary, 500).startswith("the canary is in time again: 0.0 ms; of the last 2") and not late.is_late
    assert late.look(canary, 500) == ""


def test_what_is_awaited_is_bounded_and_the_oldest_counts() -> None:
    now = Time()
    canary = Canary("me", now)
    keys = []
    for _ in range(1_002):
        keys.append(canary.send(0)[0])
        now.s += 1
    assert canary.waiting_ms == 1_002_000.0
    assert canary.see(keys[999]) is not None
    assert canary.see(keys[1_000]) is None, "too many were on their way to measure this one"


def test_actions_read_as_sentences() -> None:
    make, send = make_canary_topic(TOPIC), SendCanary(TOPIC)
    assert (make.subject, make.what, make.why) == (f"topic {TOPIC}", "create", "canary.enabled")
    assert (send.subject, send.what, send.why) == (f"topic {TOPIC}", "write to", "canary.enabled")
    assert not make.routine and send.routine
    assert (make.topic.name, make.topic.partitions, make.topic.replication_factor) == (TOPIC, 1, -1)
