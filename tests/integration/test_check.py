"""`heliograph check` and docs/footprint.md, on brokers with the authorizer on: exactly those permissions, and each one less."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import pytest
from confluent_kafka.admin import AdminClient

from heliograph.cli.main import main
from heliograph.config.flows import Settings
from heliograph.config.load import load_file
from heliograph.control.clock import Clock
from heliograph.control.flow_watch import FlowWatch, Runner
from heliograph.control.opening import OpenedFlow
from heliograph.embedded.cluster import start_many
from heliograph.errors import HeliographError
from heliograph.kafka.slot import Warm
from heliograph.model.lanes import LaneState
from heliograph.operations.check import check
from heliograph.operations.compare import compare_topics
from heliograph.replication.findings import Finding, Level
from heliograph.replication.permissions import NEEDS, Need, On
from tests.integration.protocol.harness import Attempt, Opened, with_warm
from tests.support.guarded import Grant, GuardedCluster
from tests.support.mirror import flow_file, run_to_the_end, word
from tests.support.topics import ANSWER_SECONDS, ends

OWN_TOPICS = ("__heliograph-ledger", "__heliograph-telemetry", "__heliograph-events")
CLUSTER = "kafka-cluster"
COMPARISON = [Grant("group", "heliograph-comparison", "READ")]
"""Not Heliograph's need: the client that compares wants it."""


Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Pair:
    a: GuardedCluster
    b: GuardedCluster


@pytest.fixture(scope="module")
def guarded(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    del kafka_jars
    directory = tmp_path_factory.mktemp("guarded")
    pair = Pair(GuardedCluster("A", directory / "a"), GuardedCluster("B", directory / "b"))
    try:
        start_many([pair.a, pair.b])
        pair.a.grant(*COMPARISON)
        pair.b.grant(*COMPARISON)
        yield pair
    finally:
        pair.a.stop()
        pair.b.stop()


class Footprint:
    """One flow of one topic, and a grant for every row of the table."""

    def __init__(self, pair: Pair, directory: Path) -> None:
        self.pair = pair
        self.name = word()
        self.source, self.target = f"{self.name}s", f"{self.name}t"
        self.flow = f"{self.source}->{self.target}"
        self.remote = f"{self.source}.{self.name}"
        clusters = {self.source: pair.a.bootstrap, self.target: pair.b.bootstrap}
        self.file = flow_file(directory / "mm2.properties", clusters, {self.flow: self.name})
        pair.a.create_topic(self.name, 2)
        pair.a.write(self.name, 100)

    def grant_of(self, need: Need) -> Grant:
        resources = {
            On.SOURCE_TOPICS: ("topic", self.name, False),
            On.REMOTE_TOPICS: ("topic", self.remote, False),
            On.OWN_TOPICS: ("topic", "__heliograph-", True),
            On.SOURCE_CLUSTER: ("cluster", CLUSTER, False),
            On.TARGET_CLUSTER: ("cluster", CLUSTER, False),
            On.TRANSACTIONAL_ID: ("transactional id", f"heliograph.{self.flow}", False),
            On.MM2_GROUP: ("group", f"{self.source}-mm2", False),
        }
        kind, name, prefixed = resources[need.on]
        return Grant(kind, name, need.operation, prefixed)

    def cluster_of(self, need: Need) -> GuardedCluster:
        return self.pair.a if need.is_on_source else self.pair.b

    def __enter__(self) -> Self:
        for need in NEEDS:
            self.cluster_of(need).grant(self.grant_of(need))
        return self

    def __exit__(self, *_: object) -> None:
        for need in NEEDS:
            self.cluster_of(need).revoke(self.grant_of(need))

    def topics(self) -> set[str]:
        """All topics of the target."""
        return set(AdminClient(self.pair.b.root).list_topics(timeout=ANSWER_SECONDS).topics)

    def check(self) -> list[Finding]:
        return asyncio.run(check(load_file(str(self.file)), Clock().now_ms))


@pytest.fixture
def footprint(guarded: Pair, tmp_path: Path) -> Iterator[Footprint]:
    """All permissions granted, nothing of Heliograph's on the target yet."""
    admin = AdminClient(guarded.b.root)
    there = [name for name in OWN_TOPICS if name in admin.list_topics(timeout=ANSWER_SECONDS).topics]
    for future in admin.delete_topics(there).values() if there else ():
        future.result(ANSWER_SECONDS)
    with Footprint(guarded, tmp_path) as found:
        yield found


@pytest.fixture
def own_logs() -> Iterator[None]:
    """A command sets up logging for its process; here that is pytest's."""
    root, ours = logging.getLogger(), logging.getLogger("heliograph")
    kept = (list(root.handlers), root.level, ours.level)
    yield
    root.handlers[:], root.level, ours.level = kept


def not_passed(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level is not Level.PASS]


def missing(footprint: Footprint, need: Need, look: Callable[[], Seen]) -> Seen:
    """What is seen while one permission is taken away."""
    cluster, grant = footprint.cluster_of(need), footprint.grant_of(need)
    cluster.revoke(grant)
    try:
        return look()
    finally:
        cluster.grant(grant)


def assert_named(footprint: Footprint, need: Need, findings: list[Finding]) -> None:
    subject = f"{footprint.flow}: permission {need.operation}"
    alias = footprint.source if need.is_on_source else footprint.target
    resource = "the cluster" if need.on in (On.SOURCE_CLUSTER, On.TARGET_CLUSTER) else footprint.grant_of(need).name
    named = [f for f in not_passed(findings) if f.subject == subject and resource in f.sentence]
    assert len(named) == 1, f"{need}: {findings}"
    assert named[0].level is need.level
    assert f"{need.operation} on" in named[0].sentence
    assert f"of cluster {alias} is missing" in named[0].sentence
    assert f"grant {need.operation} on" in named[0].advice


def test_exactly_the_permissions_of_the_footprint_are_enough_to_copy(footprint: Footprint) -> None:
    assert not_passed(footprint.check()) == []
    run_to_the_end(footprint.file)
    compared = compare_topics(
        footprint.pair.a.bootstrap, footprint.pair.b.bootstrap, {footprint.name: footprint.remote}
    )
    assert (compared.records, list(compared.differences)) == (100, [])
    assert not_passed(footprint.check()) == []
    for need in NEEDS:
        if need.operation != "CREATE":
            assert_named(footprint, need, missing(footprint, need, footprint.check))


@pytest.mark.usefixtures("own_logs")
def test_every_missing_permission_is_named_by_check_and_run_before_anything_exists(
    footprint: Footprint, capsys: pytest.CaptureFixture[str]
) -> None:
    def dry_run() -> list[Finding]:
        findings = footprint.check()
        code = main(["run", str(footprint.file), "--dry-run"])
        said = capsys.readouterr().err
        for finding in not_passed(findings):
            if "permission" in finding.subject:
                assert finding.sentence in said, f"{finding}: {said}"
        assert code == (1 if any(finding.level is Level.FAIL for finding in findings) else 0)
        return findings

    before = footprint.topics()
    for need in NEEDS:
        assert_named(footprint, need, missing(footprint, need, dry_run))
    assert not_passed(footprint.check()) == []
    assert footprint.topics() == before


async def opened_by_a_driver(settings: Settings, warm: Warm) -> OpenedFlow:
    """Discover, make topics, take the flow, open its lanes, and let the flow go again."""
    watch = FlowWatch(
        settings.flows[0], settings.engine, warm, Runner("host", 1, word(), 0), lambda: None, lambda _: None
    )
    try:
        await watch.open(await watch.discover())
        assert watch.opened is not None
        return watch.opened
    finally:
        if watch.tenure is not None:
            await watch.tenure.release()  # or the next driver waits for this one, and writes nothing meanwhile
        watch.close()


def carried(footprint: Footprint) -> str:
    """What keeps the flow from being carried: a driver's steps and one slot, without Spark. Empty if all was copied."""
    settings = load_file(str(footprint.file))
    try:
        flow = with_warm(lambda warm: opened_by_a_driver(settings, warm))
    except HeliographError as error:
        return str(error)
    plan, opened = flow.plan, Opened(flow.plan, flow)
    if not plan.lanes:
        return "no topic is seen"
    until = {lane.id.key: plan.ends[lane.id.topic, lane.id.partition] for lane in plan.lanes}
    with Attempt(opened, until=until) as attempt:
        reason = ""

        def ended() -> bool:
            nonlocal reason
            stopped = [life.run for life in attempt.lives if life.run.state in (LaneState.WAITING, LaneState.PARKED)]
            reason = next((run.reason for run in stopped if run.reason), "")
            return bool(reason) or all(life.run.state is LaneState.DONE for life in attempt.lives)

        attempt.wait_for(ended, "the lanes are done or say why not")
        return reason


REFUSALS = {
    (On.REMOTE_TOPICS, "CREATE"): "this needs CREATE on the topic",
    (On.OWN_TOPICS, "CREATE"): "this needs CREATE on the topic",
    (On.TRANSACTIONAL_ID, "WRITE"): "this needs WRITE on transactional id",
    (On.SOURCE_TOPICS, "READ"): "no topic is seen",
    (On.SOURCE_TOPICS, "DESCRIBE_CONFIGS"): "this needs DESCRIBE_CONFIGS on the topic",
    (On.REMOTE_TOPICS, "WRITE"): ": TOPIC_AUTHORIZATION_FAILED (29): the principal may not do this on the topic",
    (On.REMOTE_TOPICS, "READ"): "the principal may not do this on the topic",
    (On.REMOTE_TOPICS, "DESCRIBE_CONFIGS"): "this needs DESCRIBE_CONFIGS on the topic",
    (On.OWN_TOPICS, "WRITE"): "this needs WRITE on the topic",
    (On.OWN_TOPICS, "READ"): "this needs READ on the topic",
    (On.OWN_TOPICS, "DESCRIBE_CONFIGS"): "this needs DESCRIBE_CONFIGS on the topic",
    (On.TARGET_CLUSTER, "DESCRIBE_CONFIGS"): "this needs DESCRIBE_CONFIGS on the cluster",
}
"""In this order: once topics exist nobody misses CREATE, and once lanes are open nobody the transactional id."""


def test_a_flow_that_runs_without_one_of_them_copies_nothing_and_says_what_it_needs(footprint: Footprint) -> None:
    needs = {(need.on, need.operation): need for need in NEEDS if need.level is Level.FAIL}
    assert set(needs) == set(REFUSALS)
    for what, said in REFUSALS.items():
        reason = missing(footprint, needs[what], lambda: carried(footprint))
        assert said in reason, f"{what}: {reason}"
    hidden_no_more = Grant("topic", footprint.name, "DESCRIBE")
    footprint.pair.a.grant(hidden_no_more)
    reason = missing(footprint, needs[On.SOURCE_TOPICS, "READ"], lambda: carried(footprint))
    assert "the principal may not do this on the topic" in reason
    footprint.pair.a.revoke(hidden_no_more)
    assert ends(footprint.pair.b.bootstrap, footprint.remote) == {0: 0, 1: 0}
    assert carried(footprint) == ""
    compared = compare_topics(
        footprint.pair.a.bootstrap, footprint.pair.b.bootstrap, {footprint.name: footprint.remote}
    )
    assert (compared.records, list(compared.differences)) == (100, [])
