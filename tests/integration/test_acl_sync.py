"""ACLs in step, on real brokers with Kafka's authorizer, written and read by another client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from heliograph.config.load import load_file
from heliograph.control.acl_sync import AclSyncJob
from heliograph.control.clock import Clock
from heliograph.control.jobs import JobRunner
from heliograph.control.planner import FlowPlanner
from heliograph.embedded.cluster import start_many
from heliograph.kafka.slot import Warm
from heliograph.model.events import Event
from heliograph.operations.pending import pending
from tests.support.clusters import TwoClusters
from tests.support.footprint import Pair
from tests.support.guarded import Grant, GuardedCluster
from tests.support.mirror import flow_file
from tests.support.topics import ANSWER_SECONDS, create_topic
from tests.support.waiting import wait_until

Rows = set[tuple[str, ...]]


@pytest.fixture(scope="module")
def guarded(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    del kafka_jars
    directory = tmp_path_factory.mktemp("guarded")
    pair = Pair(GuardedCluster("A", directory / "a"), GuardedCluster("B", directory / "b"))
    try:
        start_many([pair.a, pair.b])
        yield pair
    finally:
        pair.a.stop()
        pair.b.stop()


def binding(row: tuple[str, ...]) -> AclBinding:
    """`("topic", "orders", "LITERAL", "User:bob", "READ", "ALLOW")`."""
    kind, name, pattern, principal, operation, permission = row
    return AclBinding(
        ResourceType[kind.upper()],
        name,
        ResourcePatternType[pattern],
        principal,
        "*",
        AclOperation[operation],
        AclPermissionType[permission],
    )


def add(cluster: GuardedCluster, *rows: tuple[str, ...]) -> None:
    client = AdminClient(cluster.root)
    for future in client.create_acls([binding(row) for row in rows]).values():
        future.result(ANSWER_SECONDS)
    wait_until(lambda: acls(cluster) >= set(rows), "the ACLs are in force")


def remove(cluster: GuardedCluster, *rows: tuple[str, ...]) -> None:
    client = AdminClient(cluster.root)
    for row in rows:
        one = binding(row)
        wanted = AclBindingFilter(
            one.restype, one.name, one.resource_pattern_type, one.principal, "*", one.operation, one.permission_type
        )
        assert client.delete_acls([wanted])[wanted].result(ANSWER_SECONDS)
    wait_until(lambda: not acls(cluster) & set(rows), "the ACLs are gone")


def acls(cluster: GuardedCluster, part: str = "") -> Rows:
    """All ACLs whose resource's name holds a word."""
    client = AdminClient(cluster.root)
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    return {
        (
            acl.restype.name.lower(),
            acl.name,
            acl.resource_pattern_type.name,
            acl.principal,
            acl.operation.name,
            acl.permission_type.name,
        )
        for acl in client.describe_acls(everything).result(ANSWER_SECONDS)
        if part in acl.name
    }


def as_root(*aliases: str) -> dict[str, str]:
    """Lines of a file with which Heliograph is the superuser."""
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="root" password="root";'
    keys = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
    return {f"{alias}.{name}": value for alias in aliases for name, value in keys.items()}


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


def root_address(cluster: GuardedCluster) -> str:
    return cluster.root["bootstrap.servers"]


def test_acls_of_topics_follow_by_mirrormakers_rules_and_nothing_is_written_twice(
    guarded: Pair, unique: str, tmp_path: Path
) -> None:
    source, target = f"{unique}s", f"{unique}t"
    remote = f"{source}.{unique}"
    guarded.a.create_topic(unique)
    add(
        guarded.a,
        ("topic", unique, "LITERAL", "User:bob", "READ", "ALLOW"),
        ("topic", unique, "LITERAL", "User:bob", "WRITE", "ALLOW"),
        ("topic", unique, "LITERAL", "User:eve", "ALL", "ALLOW"),
        ("topic", unique, "LITERAL", "User:mallory", "ALL", "DENY"),
        ("topic", unique, "PREFIXED", "User:bob", "READ", "ALLOW"),
        ("group", unique, "LITERAL", "User:bob", "READ", "ALLOW"),
    )
    clusters = {source: root_address(guarded.a), target: root_address(guarded.b)}
    copied = {
        ("topic", remote, "LITERAL", "User:bob", "READ", "ALLOW"),
        ("topic", remote, "LITERAL", "User:eve", "READ", "ALLOW"),
        ("topic", remote, "LITERAL", "User:mallory", "ALL", "DENY"),
    }
    with syncing(tmp_path, clusters, unique, as_root(source, target)) as job:
        said = "add ALLOW READ to User:bob, ALLOW READ to User:eve, DENY ALL to User:mallory"
        assert job.pending() == [f"ACLs of topic {remote}: {said}"]
        assert acls(guarded.b, unique) == set()
        assert job.turn()
        wait_until(lambda: acls(guarded.b, unique) == copied, "the ACLs are copied")
        assert job.pending() == []

        remove(guarded.a, ("topic", unique, "LITERAL", "User:bob", "READ", "ALLOW"))
        assert job.turn() and job.pending() == []
        assert acls(guarded.b, unique) == copied, "MirrorMaker 2 removes none"
    assert job.events == []


def test_the_full_scope_takes_prefixes_and_groups_and_removes_only_what_it_set(
    guarded: Pair, unique: str, tmp_path: Path
) -> None:
    source, target = f"{unique}s", f"{unique}t"
    guarded.a.create_topic(unique)
    prefix = unique[:-1]
    topic = ("topic", unique, "LITERAL", "User:bob", "READ", "ALLOW")
    begins = ("topic", prefix, "PREFIXED", "User:bob", "DESCRIBE", "ALLOW")
    group = ("group", f"{unique}#g", "LITERAL", "User:bob", "READ", "ALLOW")
    groups = ("group", prefix, "PREFIXED", "User:eve", "ALL", "DENY")
    known = ("group", f"{unique}-known", "LITERAL", "User:bob", "READ", "ALLOW")
    own = ("topic", f"{source}.{unique}", "LITERAL", "User:own", "READ", "ALLOW")
    add(guarded.a, topic, begins, group, groups, known)
    add(guarded.b, known, own)
    there = {
        ("topic", f"{source}.{unique}", *topic[2:]),
        ("topic", f"{source}.{prefix}", *begins[2:]),
        group,
        groups,
        known,
        own,
    }
    clusters = {source: root_address(guarded.a), target: root_address(guarded.b)}
    full = as_root(source, target) | {"sync.topic.acls.scope": "full"}
    with syncing(tmp_path, clusters, unique, full) as job:
        assert job.turn()
        wait_until(lambda: acls(guarded.b, prefix) == there, "the ACLs are copied")
        assert job.pending() == []

        # The way back: what came from A is not A's again, or it could never be removed.
        back = {target: root_address(guarded.b), source: root_address(guarded.a)}
        guarded.b.create_topic(f"{unique}-b")
        with syncing(tmp_path, back, f"{unique}-b", full) as other:
            remove(guarded.a, topic, begins, group, groups, known)
            assert other.turn() and acls(guarded.a, prefix) == {known}, "this one B had before"

        remove(guarded.a, known)
        removed = "remove ALLOW READ to User:bob"
        assert f"ACLs of group {unique}#g: {removed}" in job.pending()
        assert job.turn()
        wait_until(lambda: acls(guarded.b, prefix) == {known, own}, "what was copied is removed, what was there stays")
        assert job.turn() and job.pending() == []
    assert job.events == []


def test_a_missing_permission_is_named_and_no_authorizer_is_said_once(
    guarded: Pair, two_clusters: TwoClusters, unique: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, target = f"{unique}s", f"{unique}t"
    remote = ("topic", f"{source}.{unique}", "LITERAL", "User:bob", "READ", "ALLOW")
    guarded.a.create_topic(unique)
    add(guarded.a, ("topic", unique, "LITERAL", "User:bob", "READ", "ALLOW"))
    may = [Grant("topic", "*", operation) for operation in ("CREATE", "WRITE", "READ", "DESCRIBE_CONFIGS")]
    may += [Grant("cluster", "kafka-cluster", "DESCRIBE_CONFIGS")]
    see, change = Grant("cluster", "kafka-cluster", "DESCRIBE"), Grant("cluster", "kafka-cluster", "ALTER")
    guarded.b.grant(*may)
    clusters = {source: root_address(guarded.a), target: guarded.b.bootstrap}
    try:
        with syncing(tmp_path, clusters, unique, as_root(source)) as job:
            assert not job.turn()
            guarded.b.grant(see)
            assert not job.turn()
            assert remote not in acls(guarded.b, unique)
            wanting = [event.reason for event in job.events]
            assert [
                f"{name} on the cluster of cluster {target}" in said
                for name, said in zip(("DESCRIBE", "ALTER"), wanting, strict=True)
            ] == [
                True,
                True,
            ], wanting
            guarded.b.grant(change)
            assert job.turn()
            wait_until(lambda: remote in acls(guarded.b, unique), "the ACL is copied")
            guarded.b.revoke(change)
    finally:
        guarded.b.revoke(*may, see)

    plain = create_topic(two_clusters.a.bootstrap, f"{unique}-plain")
    clusters = {source: two_clusters.a.bootstrap, target: two_clusters.b.bootstrap}
    with syncing(tmp_path, clusters, plain) as job, caplog.at_level(logging.INFO, "heliograph"):
        assert job.turn(turns=3)
    assert job.events == []
    said = [record.getMessage() for record in caplog.records if "authorizer" in record.getMessage()]
    assert said == [f"{source}->{target}: cluster {source} has no authorizer: no ACLs are copied"]
