"""Remote topics of deleted sources: deleted after the grace and named before, and never on mere doubt."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient

from heliograph.config.load import load_file
from heliograph.control.clock import Clock
from heliograph.control.jobs import JobRunner
from heliograph.control.planner import FlowPlanner
from heliograph.control.topic_deletes import TopicDeletesJob
from heliograph.kafka.slot import Warm
from heliograph.model.events import Event, EventKind
from tests.support.clusters import TwoClusters
from tests.support.guarded import Grant, GuardedCluster
from tests.support.mirror import flow_file
from tests.support.topics import ANSWER_SECONDS, admin, create_topic, topic_names
from tests.support.waiting import wait_until

GRACE_SECONDS = 2


class Deleting:
    """The job of a flow, as a run would do it, without Spark. Every turn has a plan and a job of its own."""

    def __init__(self, file: Path) -> None:
        settings = load_file(str(file))
        self.flow = settings.flows[0]
        self.planner = FlowPlanner(self.flow, settings.engine)
        self.planner.apply(self.planner.discover())
        self.events: list[Event] = []

    def turn(self) -> bool:
        plan = self.planner.discover()

        async def once() -> bool:
            warm = Warm()
            runner = JobRunner(plan.name, lambda: True, self.events.append, Clock())
            try:
                return await runner.once(TopicDeletesJob(self.flow, lambda: plan, warm, Clock(), self.events.append))
            finally:
                warm.close()

        return asyncio.run(once())


@contextmanager
def deleting(path: Path, clusters: dict[str, str], topics: str) -> Iterator[Deleting]:
    source, target = clusters
    more = {"sync.topic.deletes.enabled": "true", "sync.topic.deletes.grace.seconds": str(GRACE_SECONDS)}
    job = Deleting(flow_file(path / "mm2.properties", clusters, {f"{source}->{target}": topics}, more))
    try:
        yield job
    finally:
        job.planner.close()


def delete(client: AdminClient, topic: str) -> None:
    client.delete_topics([topic])[topic].result(ANSWER_SECONDS)
    wait_until(lambda: topic not in client.list_topics(timeout=ANSWER_SECONDS).topics, f"{topic} is gone")


def test_a_remote_topic_follows_its_source_after_the_grace_and_is_named_before(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    source, going, staying = f"{unique}s", f"{unique}-a", f"{unique}-b"
    for topic in (going, staying):
        create_topic(here, topic)
    with deleting(tmp_path, {source: here, "B": there}, f"{going}, {staying}") as job:
        assert job.turn() and job.events == []
        delete(admin(here), going)
        assert job.turn()
        assert [event.kind for event in job.events] == [EventKind.TOPIC_GONE]
        assert f"{source}.{going}" in topic_names(there)
        wait_until(lambda: job.turn() and f"{source}.{going}" not in topic_names(there), "it is deleted", every=0.5)
        assert job.turn()
    named, deleted = job.events
    assert (deleted.kind, deleted.subject) == (EventKind.TOPIC_DELETED, f"{source}.{going}")
    assert deleted.time_ms - named.time_ms >= GRACE_SECONDS * 1000
    assert f"{source}.{staying}" in topic_names(there)


def test_a_topic_that_may_no_longer_be_seen_or_comes_back_is_kept(
    two_clusters: TwoClusters, kafka_jars: Path, unique: str, tmp_path: Path
) -> None:
    del kafka_jars
    there = two_clusters.b.bootstrap
    source = f"{unique}s"
    remote = f"{source}.{unique}"
    guarded = GuardedCluster("G", tmp_path)
    guarded.start()
    may = [Grant("topic", unique, operation) for operation in ("READ", "DESCRIBE_CONFIGS")]
    try:
        guarded.create_topic(unique)
        guarded.grant(*may)
        with deleting(tmp_path, {source: guarded.bootstrap, "B": there}, f"{unique}.*") as job:
            assert job.turn()
            guarded.revoke(*may)
            begun = Clock().monotonic()
            while Clock().monotonic() - begun < 2 * GRACE_SECONDS:
                assert job.turn()
            assert job.events == []
            assert remote in topic_names(there)

            guarded.grant(*may)
            guarded.delete_topic(unique)
            assert job.turn()
            assert [event.kind for event in job.events] == [EventKind.TOPIC_GONE]
            guarded.create_topic(unique)
            begun = Clock().monotonic()
            while Clock().monotonic() - begun < 2 * GRACE_SECONDS:
                assert job.turn()
            assert [event.kind for event in job.events] == [EventKind.TOPIC_GONE]
            assert remote in topic_names(there)
    finally:
        guarded.stop()
