"""ACLs in step, on real brokers with Kafka's authorizer, written and read by another client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from heliograph.config.load import load_file
from heliograph.control.acl_sync import AclSyncJob
from heliograph.control.clock import Clock
from heliograph.control.jobs import JobRunner
from heliograph.control.planner import FlowPlanner
from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.kafka.slot import Warm
from heliograph.model.events import Event
from heliograph.operations.pending import pending
from tests.support.acls import acls, add, remove
from tests.support.clusters import TwoClusters
from tests.support.mirror import flow_file
from tests.support.topics import create_topic
from tests.support.waiting import wait_until


@dataclass
class Syncing:
    """The job of a flow, as a run would do it, without Spark. Every turn has a job of its own: nothing is kept in memory."""

    file: Path
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings = load_file(str(self.file))
        self.settings = settings.flows[0]
        self.planner = FlowPlanner(self.settings, settings.engine)
        self.plan = self.planner.apply(self.planner.discover())

    def turn(self, turns: int = 1) -> bool:
        async def take() -> bool:
            warm = Warm()
            runner = JobRunner(self.plan.name, lambda: True, self.events.append, Clock())
            job = AclSyncJob(self.settings, lambda: self.plan, self.planner, warm, Clock())
            try:
                return all([await runner.once(job) for _ in range(turns)])
            finally:
                warm.close()

        return asyncio.run(take())

    def pending(self) -> list[str]:
        """As `heliograph plan` has them."""
        [flow] = asyncio.run(pending(load_file(str(self.file))))
        assert flow.troubles == []
        return [f"{each.subject}: {each.what}" for each in flow.actions if each.job == "ACLs"]


@contextmanager
def syncing(
    directory: Path, clusters: Mapping[str, str], topics: str, more: Mapping[str, str] | None = None
) -> Iterator[Syncing]:
    source, target = clusters
    file = flow_file(directory / f"{source}.properties", clusters, {f"{source}->{target}": topics}, more)
    job = Syncing(file)
    try:
        yield job
    finally:
        job.planner.close()


def test_acls_of_topics_follow_by_mirrormakers_rules_and_nothing_is_written_twice(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    source, target = f"{unique}s", f"{unique}t"
    remote = f"{source}.{unique}"
    create_topic(here, unique)
    add(
        here,
        ("topic", unique, "LITERAL", "User:bob", "READ", "ALLOW"),
        ("topic", unique, "LITERAL", "User:bob", "WRITE", "ALLOW"),
        ("topic", unique, "LITERAL", "User:eve", "ALL", "ALLOW"),
        ("topic", unique, "LITERAL", "User:mallory", "ALL", "DENY"),
        ("topic", unique, "PREFIXED", "User:bob", "READ", "ALLOW"),
        ("group", unique, "LITERAL", "User:bob", "READ", "ALLOW"),
    )
    clusters = {source: here, target: there}
    copied = {
        ("topic", remote, "LITERAL", "User:bob", "READ", "ALLOW"),
        ("topic", remote, "LITERAL", "User:eve", "READ", "ALLOW"),
        ("topic", remote, "LITERAL", "User:mallory", "ALL", "DENY"),
    }
    with syncing(tmp_path, clusters, unique) as job:
        said = "add ALLOW READ to User:bob, ALLOW READ to User:eve, DENY ALL to User:mallory"
        assert job.pending() == [f"ACLs of topic {remote}: {said}"]
        assert acls(there, unique) == set()
        assert job.turn()
        wait_until(lambda: acls(there, unique) == copied, "the ACLs are copied")
        assert job.pending() == []

        remove(here, ("topic", unique, "LITERAL", "User:bob", "READ", "ALLOW"))
        assert job.turn() and job.pending() == []
        assert acls(there, unique) == copied, "MirrorMaker 2 removes none"
    assert job.events == []


def test_the_full_scope_takes_prefixes_and_groups_and_removes_only_what_it_set(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    source, target = f"{unique}s", f"{unique}t"
    create_topic(here, unique)
    prefix = unique[:-1]
    topic = ("topic", unique, "LITERAL", "User:bob", "READ", "ALLOW")
    begins = ("topic", prefix, "PREFIXED", "User:bob", "DESCRIBE", "ALLOW")
    group = ("group", f"{unique}#g", "LITERAL", "User:bob", "READ", "ALLOW")
    groups = ("group", prefix, "PREFIXED", "User:eve", "ALL", "DENY")
    known = ("group", f"{unique}-known", "LITERAL", "User:bob", "READ", "ALLOW")
    own = ("topic", f"{source}.{unique}", "LITERAL", "User:own", "READ", "ALLOW")
    add(here, topic, begins, group, groups, known)
    add(there, known, own)
    copied = {
        ("topic", f"{source}.{unique}", *topic[2:]),
        ("topic", f"{source}.{prefix}", *begins[2:]),
        group,
        groups,
        known,
        own,
    }
    clusters = {source: here, target: there}
    full = {"sync.topic.acls.scope": "full"}
    with syncing(tmp_path, clusters, unique, full) as job:
        assert job.turn()
        wait_until(lambda: acls(there, prefix) == copied, "the ACLs are copied")
        assert job.pending() == []

        # The way back: what came from A is not A's again, or it could never be removed.
        back = {target: there, source: here}
        create_topic(there, f"{unique}-b")
        with syncing(tmp_path, back, f"{unique}-b", full) as other:
            remove(here, topic, begins, group, groups, known)
            assert other.turn()
            wait_until(lambda: known in acls(here, prefix), "what B had before is copied")
            assert acls(here, prefix) == {known}

        remove(here, known)
        removed = "remove ALLOW READ to User:bob"
        assert f"ACLs of group {unique}#g: {removed}" in job.pending()
        assert job.turn()
        wait_until(lambda: acls(there, prefix) == {known, own}, "what was copied is removed, what was there stays")
        assert job.turn() and job.pending() == []
    assert job.events == []


def test_a_missing_permission_is_named_and_once_it_is_granted_acls_are_copied(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    source, target = f"{unique}s", f"{unique}t"
    copied = ("topic", f"{source}.{unique}", "LITERAL", "User:bob", "READ", "ALLOW")
    create_topic(here, unique)
    add(here, ("topic", unique, "LITERAL", "User:bob", "READ", "ALLOW"))
    see, change = (
        ("broker", "kafka-cluster", "LITERAL", "User:mirror", operation, "ALLOW") for operation in ("DESCRIBE", "ALTER")
    )
    with syncing(tmp_path, {source: here, target: there}, unique) as job:
        remove(there, change)
        try:
            assert not job.turn()
            remove(there, see)
            assert not job.turn()
        finally:
            add(there, see, change)
        wanting = [event.reason.partition("this needs ")[2] for event in job.events]
        assert wanting[0] == f"ALTER on the cluster of cluster {target}"
        assert wanting[1].startswith(f"DESCRIBE on the cluster of cluster {target}")
        assert copied not in acls(there, unique)
        assert job.turn()
        wait_until(lambda: copied in acls(there, unique), "the ACL is copied")


def test_no_authorizer_on_either_side_is_said_once_and_nothing_is_written(
    two_clusters: TwoClusters, unique: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    guarded = two_clusters.a.bootstrap
    create_topic(guarded, unique)
    add(guarded, ("topic", unique, "LITERAL", "User:bob", "READ", "ALLOW"))
    before = acls(guarded, unique)
    with EmbeddedCluster("plain", tmp_path / "plain") as plain, caplog.at_level(logging.INFO, "heliograph"):
        create_topic(plain.bootstrap, f"{unique}-p")
        outward = {unique: guarded, "plain": plain.bootstrap}
        homeward = {"plain": plain.bootstrap, unique: guarded}
        for clusters, topic in ((outward, unique), (homeward, f"{unique}-p")):
            with syncing(tmp_path, clusters, topic) as job:
                assert job.turn(turns=3)
            assert job.events == []
    said = [record.getMessage() for record in caplog.records if "authorizer" in record.getMessage()]
    none = "cluster plain has no authorizer: no ACLs are copied"
    assert said == [f"{unique}->plain: {none}", f"plain->{unique}: {none}"]
    assert acls(guarded, unique) == before
