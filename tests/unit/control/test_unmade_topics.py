"""Topics whose remote topic could not be made: what a run keeps of them, and what it says at its end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import pytest

from heliograph.config.load import load
from heliograph.control.board import Board
from heliograph.control.flow_watch import FlowWatch
from heliograph.control.opening import OpenedFlow, keeping_lanes
from heliograph.control.outcome import Outcome
from heliograph.control.planner import FlowPlan, FlowPlanner, Unmade
from heliograph.model.lanes import Lane, LaneId
from heliograph.model.topics import Topic
from heliograph.replication.topic_plan import CreateTopic
from tests.support.entries import FRESH

FILE = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
SETTINGS = load(FILE, "mm2.properties").flows[0]
UNMADE = Unmade("it may not be made", "grant CREATE")


def plan(*lanes: str) -> FlowPlan:
    """Of the topics `orders` and `clicks`; those that are no lanes have no remote topic."""
    topics = ("orders", "clicks")
    return FlowPlan(
        settings=SETTINGS,
        source_cluster_id="A",
        target_cluster_id="B",
        topics={topic: Topic(topic, f"id-{topic}", 1, {}) for topic in topics},
        remote={topic: f"A.{topic}" for topic in topics},
        actions=(),
        expiration_ms=1,
        lanes=tuple(Lane(LaneId("A->B", topic, 0), "A", "B", f"A.{topic}", f"id-{topic}", "") for topic in lanes),
        unmade={topic: UNMADE for topic in topics if topic not in lanes},
    )


def opened(*lanes: str) -> OpenedFlow:
    made = plan(*lanes)
    refused = {f"A->B/{topic}/0": UNMADE.reason for topic in made.unmade}
    return OpenedFlow(made, {lane.id.key: FRESH for lane in made.lanes}, refused)


@dataclass
class Watch:
    """What an outcome looks at."""

    first: OpenedFlow
    opened: OpenedFlow


def test_lanes_whose_remote_topic_can_no_longer_be_seen_stay_as_they_were() -> None:
    before = opened("orders", "clicks")
    kept = keeping_lanes(opened("orders"), before)
    assert {lane.id.topic for lane in kept.plan.lanes} == {"orders", "clicks"}
    assert (set(kept.entries), dict(kept.refused)) == ({"A->B/orders/0", "A->B/clicks/0"}, {})
    parked = replace(before, entries={}, refused={"A->B/clicks/0": "of a lane that was refused before"})
    assert dict(keeping_lanes(opened("orders"), parked).refused) == parked.refused


def test_a_topic_that_never_had_a_remote_topic_waits_for_it() -> None:
    now = opened("orders")
    for before in (None, opened("orders")):
        assert keeping_lanes(now, before) is now
    grown = opened("orders", "clicks")
    assert keeping_lanes(grown, now) is grown


def test_a_run_that_ends_by_itself_says_which_topics_it_could_not_copy() -> None:
    now = opened("orders")
    outcome = Outcome([cast(FlowWatch, Watch(now, now))], Board())
    assert not outcome.is_reached(0)
    outcome.done.add("A->B/orders/0")
    assert not outcome.is_reached(0), "it may be there at the next look"
    assert not outcome.is_reached(10_000)
    assert outcome.is_reached(10_001)
    summary = outcome.summary(1.0, until_caught_up=True)
    assert (summary.lanes, summary.topics) == (2, 2)
    assert summary.unfinished == (("A->B/clicks/0", UNMADE.reason),)


def test_a_lane_that_is_refused_for_a_moment_does_not_end_the_run() -> None:
    watch = Watch(opened("orders"), opened("orders"))
    outcome = Outcome([cast(FlowWatch, watch)], Board())
    outcome.done.add("A->B/orders/0")
    assert not outcome.is_reached(0)
    watch.opened = opened("orders", "clicks")
    assert not outcome.is_reached(20_000), "it is carried now"
    watch.opened = opened("orders")
    assert not outcome.is_reached(25_000), "and was refused for a moment only"
    assert outcome.is_reached(35_001)


class Target:
    """A cluster that takes every topic and shows only some of them, `late` ones from its third look on."""

    def __init__(self, *shown: str, late: str = "") -> None:
        self._shown = shown
        self._late = late
        self.looks = 0

    def ensure_internal_topics(self, _: int) -> None:
        pass

    def create_all(self, _: object) -> dict[str, object]:
        return {}

    def topics(self, names: list[str], *_: object) -> dict[str, Topic]:
        self.looks += 1
        shown = (*self._shown, self._late) if self.looks > 2 else self._shown
        return {name: Topic(name, f"id-{name}", 1, {}) for name in names if name in shown}


def made(*topics: str) -> FlowPlan:
    """The plan that makes the remote topics of these."""
    actions = tuple(CreateTopic(f"A.{topic}", 1, 3, {}, "missing") for topic in topics)
    return replace(plan("orders", "clicks"), actions=actions)


def applied(target: Target, wanted: FlowPlan, monkeypatch: pytest.MonkeyPatch) -> tuple[FlowPlan, list[float]]:
    """The plan that comes of it, and the pauses on the way."""
    pauses: list[float] = []
    planner = FlowPlanner(SETTINGS, load(FILE, "mm2.properties").engine, pauses.append)
    monkeypatch.setattr(planner, "_target", target)
    return planner.apply(wanted), pauses


def test_a_remote_topic_that_was_made_and_is_not_to_be_seen_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    found, pauses = applied(Target("A.orders"), made("clicks"), monkeypatch)
    assert [lane.id.topic for lane in found.lanes] == ["orders"]
    assert {topic: unmade.reason for topic, unmade in found.unmade.items()} == {
        "clicks": "the remote topic A.clicks was made and is not to be seen"
    }
    assert sum(pauses) == pytest.approx(9.5), "it was waited for"


def test_a_remote_topic_of_which_the_next_broker_hears_later_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three brokers the one that answers may not know yet what another has made."""
    found, pauses = applied(Target("A.orders", late="A.clicks"), made("clicks"), monkeypatch)
    assert {lane.id.topic for lane in found.lanes} == {"orders", "clicks"}
    assert (dict(found.unmade), len(pauses)) == ({}, 2)


def test_a_remote_topic_that_somebody_deleted_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found, pauses = applied(Target("A.orders"), made(), monkeypatch)
    assert (set(found.unmade), pauses) == ({"clicks"}, [])


def test_a_topic_whose_configs_may_not_be_read_is_left_out_and_the_others_are_carried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unread = {"clicks": Unmade("this needs DESCRIBE_CONFIGS", "grant it"), "taken by another flow": UNMADE}
    wanted = replace(made("clicks"), unread=unread)
    found, pauses = applied(Target("A.orders", "A.clicks"), wanted, monkeypatch)
    assert [lane.id.topic for lane in found.lanes] == ["orders"]
    assert (found.unmade, pauses) == ({"clicks": unread["clicks"]}, [])
