"""Looking again at single topics of a flow, for lanes that stand still: the others are neither asked for nor disturbed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from heliograph.config.load import load_file
from heliograph.control.flow_watch import FlowWatch, Runner
from heliograph.control.planner import FlowPlan
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.slot import Warm
from heliograph.model.topics import Topic
from tests.support.clusters import TwoClusters
from tests.support.mirror import flow_file, word
from tests.support.topics import add_partitions, create_topic, delete_topic, partition_count

ORDERS, CLICKS, STEADY = "orders", "clicks", "steady"


class Watched:
    """A flow as a run opens it, without Spark."""

    def __init__(self, watch: FlowWatch, w: str, alias: str, changes: list[str]) -> None:
        self.watch, self.w, self.alias, self.changes = watch, w, alias, changes

    def lanes(self) -> dict[str, int]:
        assert self.watch.opened is not None
        names = [lane.id.topic.removeprefix(f"{self.w}-") for lane in self.watch.opened.plan.lanes]
        assert set(self.watch.opened.entries) == {lane.id.key for lane in self.watch.opened.plan.lanes}
        return {name: names.count(name) for name in names}

    async def look(self, *topics: str) -> None:
        """At these, or at everything."""
        chosen = frozenset(f"{self.w}-{topic}" for topic in topics) or None
        if self.watch.tenure is not None:
            await self.watch.tenure.renew()  # as a run does every few seconds, or the flow is not its own for long
        await self.watch.open(await self.watch.discover(chosen))


def with_watched(clusters: TwoClusters, tmp_path: Path, scenario: Callable[[Watched], Awaitable[None]]) -> None:
    w, source, target = word(), word(), word()
    here, there = clusters.a.bootstrap, clusters.b.bootstrap
    for topic in (ORDERS, CLICKS, STEADY):
        create_topic(here, f"{w}-{topic}", partitions=2)
    file = flow_file(tmp_path / "f.properties", {source: here, target: there}, {f"{source}->{target}": f"{w}-.*"})
    settings = load_file(str(file))

    async def run() -> None:
        warm, changes = Warm(), list[str]()
        me = Runner("host", 1, word(), 0)
        watch = FlowWatch(
            settings.flows[0], settings.engine, warm, me, lambda: changes.append("changed"), lambda _: None
        )
        try:
            watched = Watched(watch, w, source, changes)
            await watched.look()
            changes.clear()
            await scenario(watched)
        finally:
            if watch.tenure is not None:
                await watch.tenure.release()
            watch.close()
            warm.close()

    asyncio.run(run())


def test_a_look_at_one_topic_asks_both_clusters_for_that_topic_alone(
    two_clusters: TwoClusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    everything: list[str] = []
    topics, starts = ClusterAdmin.topics, ClusterAdmin.starts

    def noted_topics(self: ClusterAdmin, names: object = None, *more: object, **named: object) -> dict[str, Topic]:
        listed = None if names is None else list(names)  # type: ignore[call-overload]
        everything.extend([] if listed is not None else ["all topics"])
        asked.update(listed or ())
        return topics(self, listed, *more, **named)  # type: ignore[arg-type]

    def noted_starts(self: ClusterAdmin, partitions: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
        asked.update(topic for topic, _ in partitions)
        return starts(self, partitions)

    async def scenario(watched: Watched) -> None:
        monkeypatch.setattr(ClusterAdmin, "topics", noted_topics)
        monkeypatch.setattr(ClusterAdmin, "starts", noted_starts)
        await watched.look(ORDERS)
        ours = {name for name in asked if not name.startswith("__heliograph")}
        assert ours == {f"{watched.w}-{ORDERS}", f"{watched.alias}.{watched.w}-{ORDERS}"}
        assert everything == []
        await watched.look()
        assert everything, "a look at everything lists all topics of both clusters"

    with_watched(two_clusters, tmp_path, scenario)


def test_what_it_finds_joins_what_is_known_of_the_others(two_clusters: TwoClusters, tmp_path: Path) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap

    async def scenario(watched: Watched) -> None:
        assert watched.lanes() == {CLICKS: 2, ORDERS: 2, STEADY: 2}
        before = plan_of(watched)
        await watched.look(STEADY)
        assert (watched.changes, plan_of(watched)) == ([], before), "nothing changed: tasks need not be told anything"

        for topic in (ORDERS, CLICKS):
            add_partitions(here, f"{watched.w}-{topic}", 3)
        await watched.look(ORDERS)
        assert watched.lanes() == {CLICKS: 2, ORDERS: 3, STEADY: 2}
        assert watched.changes == ["changed"]

        remote = f"{watched.alias}.{watched.w}-{CLICKS}"
        delete_topic(there, remote)
        await watched.look(CLICKS)
        assert watched.lanes() == {CLICKS: 3, ORDERS: 3, STEADY: 2}, "made again, with all partitions"
        assert partition_count(there, remote) == 3

        delete_topic(here, f"{watched.w}-{ORDERS}")
        await watched.look(ORDERS)
        assert watched.lanes() == {CLICKS: 3, STEADY: 2}
        joined = plan_of(watched)
        await watched.look()
        assert plan_of(watched) == joined, "a look at everything finds the same"

    with_watched(two_clusters, tmp_path, scenario)


def plan_of(watched: Watched) -> tuple[object, ...]:
    plan: FlowPlan | None = watched.watch.plan_now()
    assert plan is not None and plan.only is None
    return plan.topics, plan.remote, plan.lanes, plan.starts.keys(), plan.ends.keys(), plan.home_ledger
