"""Permissions that a run lacks, or that are taken away under it: the lane names resource and operation, other lanes go on, and so does it once granted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from heliograph.config.load import load_file
from heliograph.control.flow_watch import FlowWatch, Runner
from heliograph.kafka.slot import Warm
from heliograph.model.events import EventKind
from heliograph.operations.compare import compare_topics
from tests.integration.protocol.harness import with_warm
from tests.support.clusters import TwoClusters
from tests.support.guarded import Grant, GuardedCluster
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import command, flow_file, status, status_when_following, word
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

COUNT = 100


@dataclass(frozen=True)
class Flows:
    """Into a cluster with the authorizer on and out of it, by one file."""

    guarded: GuardedCluster
    before: str
    after: str
    into: str
    """The flow whose remote topic is guarded."""
    out_of: str
    """The flow whose source topic is guarded."""
    alias: str
    topic: str
    """The source topic of both flows, each in its own cluster."""
    remote: str
    unmade: str
    """A second source topic of the first flow, whose remote topic may not be made at first."""
    unread: str
    """A second source topic of the second flow, whose configs may not be read at first."""
    file: Path

    @property
    def write_remote(self) -> Grant:
        return Grant("topic", self.remote, "WRITE")

    @property
    def read_remote(self) -> Grant:
        return Grant("topic", self.remote, "READ")

    @property
    def remote_unmade(self) -> str:
        return self.remote.replace(self.topic, self.unmade)

    @property
    def make_unmade(self) -> list[Grant]:
        operations = ("CREATE", "DESCRIBE_CONFIGS", "READ", "WRITE")
        return [Grant("topic", self.remote_unmade, operation) for operation in operations]

    @property
    def read_source(self) -> Grant:
        return Grant("topic", self.topic, "READ")


@pytest.fixture(scope="module")
def guarded(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    del kafka_jars
    cluster = GuardedCluster("G", tmp_path_factory.mktemp("guarded"))
    try:
        cluster.start()
        cluster.grant(
            *(Grant("cluster", "kafka-cluster", operation) for operation in ("DESCRIBE", "DESCRIBE_CONFIGS")),
            *(
                Grant("topic", "__heliograph-", operation, prefixed=True)
                for operation in ("CREATE", "READ", "WRITE", "DESCRIBE_CONFIGS")
            ),
            Grant("transactional id", "heliograph.", "WRITE", prefixed=True),
            Grant("group", "heliograph-comparison", "READ"),
        )
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def flows(guarded: GuardedCluster, two_clusters: TwoClusters, tmp_path: Path) -> Flows:
    first, alias, last, topic, unmade, unread = (word() for _ in range(6))
    into, out_of, remote = f"{first}->{alias}", f"{alias}->{last}", f"{first}.{topic}"
    before, after = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    file = flow_file(
        tmp_path / "mm2.properties",
        {first: before, alias: guarded.bootstrap, last: after},
        {into: f"{topic}, {unmade}", out_of: f"{topic}, {unread}"},
        {"lane.retry.backoff.max.ms": "1000"},
    )
    found = Flows(guarded, before, after, into, out_of, alias, topic, remote, unmade, unread, file)
    for name in (topic, unmade):
        create_topic(before, name)
        write(before, name, samples(COUNT))
    for name in (topic, unread):
        guarded.create_topic(name)
        guarded.write(name, COUNT)
    guarded.grant(
        *(Grant("topic", remote, operation) for operation in ("CREATE", "DESCRIBE_CONFIGS")),
        Grant("topic", topic, "DESCRIBE_CONFIGS"),
        Grant("topic", unread, "READ"),
        *(found.write_remote, found.read_remote, found.read_source),
    )
    return found


def reason(flows: Flows, flow: str, topic: str) -> str:
    return " ".join(lane["reason"] for lane in status(flows.file)[flow]["lanes"] if lane["topic"] == topic)


def copied(bootstrap: str, topic: str) -> int:
    try:
        return ends(bootstrap, topic).get(0, 0)
    except KafkaException:
        return 0  # it is not made yet


def parked(flows: Flows, flow: str) -> list[dict[str, Any]]:
    """The events of lanes that stopped for what no policy covers."""
    said = command("events", str(flows.file), "--json")
    assert said.code == 0, said.err
    events = [json.loads(line) for line in said.out.splitlines()]
    return [event for event in events if (event["flow"], event["kind"]) == (flow, EventKind.PARKED)]


def _wait_until_told(flows: Flows, flow: str, subject: str) -> None:
    """Events reach their topic a moment after they were told."""
    wait_until(
        lambda: any(event["subject"] == subject for event in parked(flows, flow)), f"an event of {subject}", every=0.3
    )


def assert_unmade(flows: Flows) -> None:
    """The topic that may not be made is named with what it needs, while the flow copies its other topic."""
    said = f"the remote topic {flows.remote_unmade} cannot be made"
    wait_until(lambda: said in reason(flows, flows.into, flows.unmade), f"status says that {said}", every=0.3)
    found = reason(flows, flows.into, flows.unmade)
    assert said in found and "this needs CREATE on the topic" in found, found
    _wait_until_told(flows, flows.into, flows.unmade)
    advice = f"grant CREATE on the topic {flows.remote_unmade} to Heliograph's principal on cluster {flows.alias}"
    told = [event for event in parked(flows, flows.into) if event["subject"] == flows.unmade]
    assert [(said in event["reason"], event["what_to_do"]) for event in told] == [(True, advice)]


def assert_unread_until_granted(flows: Flows) -> None:
    """The topic whose configs may not be read is named with what it needs, while the flow copies its other topic."""
    needed = f"this needs DESCRIBE_CONFIGS on the topic {flows.unread} of cluster {flows.alias}"
    wait_until(lambda: needed in reason(flows, flows.out_of, flows.unread), f"status says that {needed}", every=0.3)
    _wait_until_told(flows, flows.out_of, flows.unread)
    advice = f"grant DESCRIBE_CONFIGS on the topic {flows.unread} to Heliograph's principal on cluster {flows.alias}"
    told = [event for event in parked(flows, flows.out_of) if event["subject"] == flows.unread]
    assert [(needed in event["reason"], event["what_to_do"]) for event in told] == [(True, advice)]
    flows.guarded.grant(Grant("topic", flows.unread, "DESCRIBE_CONFIGS"))
    remote = f"{flows.alias}.{flows.unread}"
    wait_until(lambda: copied(flows.after, remote) == COUNT, "its configs may be read, it joins", every=0.2)


def test_a_lane_that_is_refused_names_resource_and_operation_and_goes_on_once_it_may(flows: Flows) -> None:
    guarded, there = flows.guarded, flows.after
    copy_of_guarded = f"{flows.alias}.{flows.topic}"

    def refused(flow: str, operation: str, topic: str) -> None:
        needed = f"this needs {operation} on the topic {topic} of cluster {flows.alias}"
        wait_until(lambda: needed in reason(flows, flow, flows.topic), f"status says that it {needed}", every=0.3)
        advice = f"grant {operation} on the topic {topic} to Heliograph's principal on cluster {flows.alias}"
        wait_until(
            lambda: any(needed in event["reason"] and event["what_to_do"] == advice for event in parked(flows, flow)),
            f"an event says that it {needed}",
        )

    with HeliographRun(flows.file) as run:
        wait_until(lambda: ends(guarded.bootstrap, flows.remote).get(0) == COUNT, "one flow copies", every=0.2)
        wait_until(lambda: ends(there, copy_of_guarded).get(0) == COUNT, "the other copies", every=0.2)
        assert_unmade(flows)
        assert_unread_until_granted(flows)
        guarded.revoke(flows.write_remote)
        write(flows.before, flows.topic, samples(COUNT, seed=2))
        refused(flows.into, "WRITE", flows.remote)
        guarded.write(flows.topic, COUNT)
        wait_until(lambda: ends(there, copy_of_guarded).get(0) == 2 * COUNT, "the other flow goes on", every=0.2)
        guarded.revoke(flows.read_remote)
        refused(flows.into, "READ and WRITE", flows.remote)
        guarded.grant(flows.write_remote)
        refused(flows.into, "READ", flows.remote)
        guarded.grant(flows.read_remote)
        wait_until(lambda: ends(guarded.bootstrap, flows.remote).get(0) == 2 * COUNT, "granted, it goes on", every=0.2)
        guarded.grant(*flows.make_unmade)
        wait_until(lambda: ends(guarded.bootstrap, flows.remote_unmade).get(0) == COUNT, "it joins", every=0.2)
        guarded.revoke(flows.read_source)
        refused(flows.out_of, "READ", flows.topic)
        guarded.grant(flows.read_source)
        guarded.write(flows.topic, COUNT)
        wait_until(lambda: ends(there, copy_of_guarded).get(0) == 3 * COUNT, "granted, it reads on", every=0.2)
        status_when_following(flows.file, flows.out_of)
        assert run.terminate() == 0, run.output
    into = compare_topics(flows.before, guarded.bootstrap, {flows.topic: flows.remote})
    joined = compare_topics(flows.before, guarded.bootstrap, {flows.unmade: flows.remote_unmade})
    out_of = compare_topics(guarded.bootstrap, there, {flows.topic: copy_of_guarded})
    assert (into.records, into.differences) == (2 * COUNT, [])
    assert (joined.records, joined.differences) == (COUNT, [])
    assert (out_of.records, out_of.differences) == (3 * COUNT, [])


def test_a_source_topic_that_may_no_longer_be_seen_keeps_its_lanes_and_a_deleted_one_does_not(flows: Flows) -> None:
    settings = load_file(str(flows.file))
    (out_of,) = [flow for flow in settings.flows if flow.flow.name == flows.out_of]

    async def story(warm: Warm) -> tuple[list[str], list[str], list[str]]:
        watch = FlowWatch(out_of, settings.engine, warm, Runner("host", 1, word(), 0), lambda: None, lambda _: None)

        async def lanes() -> list[str]:
            await watch.open(await watch.discover())
            assert watch.opened is not None
            return [lane.id.topic for lane in watch.opened.plan.lanes]

        try:
            seen = await lanes()
            flows.guarded.revoke(flows.read_source, Grant("topic", flows.topic, "DESCRIBE_CONFIGS"))
            hidden = await lanes()
            flows.guarded.grant(flows.read_source, Grant("topic", flows.topic, "DESCRIBE_CONFIGS"))
            flows.guarded.delete_topic(flows.topic)
            return seen, hidden, await lanes()
        finally:
            if watch.tenure is not None:
                await watch.tenure.release()
            watch.close()

    assert with_warm(story) == ([flows.topic], [flows.topic], [])
