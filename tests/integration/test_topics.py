"""Remote topics: made like their source, grown with it, and joined by new ones without disturbing the lanes that run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

from heliograph.operations.compare import compare_topics
from tests.support.arrivals import SteadyWriter
from tests.support.clusters import TwoClusters
from tests.support.frozen import SteadyLane, is_carried_through
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import flow_file, lanes_of, status, word
from tests.support.topics import ANSWER_SECONDS, add_partitions, admin, create_topic, ends, partition_count
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

REFRESH_SECONDS = 2
SELDOM_SECONDS = 86_400
JOINS = 3
SAME = ("producer_id", "producer_epoch", "generation", "delta")


@dataclass(frozen=True)
class Mirror:
    clusters: TwoClusters
    source: str
    target: str
    w: str
    run: HeliographRun
    properties: Path

    def remote(self, kind: str) -> str:
        return f"{self.source}.{self.w}-{kind}"

    def lanes(self, kind: str) -> list[dict[str, Any]]:
        return lanes_of(status(self.properties)[f"{self.source}->{self.target}"], f"{self.w}-{kind}")

    def assert_identical(self, kind: str, records: int) -> None:
        here, there = self.clusters.a.bootstrap, self.clusters.b.bootstrap
        comparison = compare_topics(here, there, {f"{self.w}-{kind}": self.remote(kind)})
        assert comparison.differences == []
        assert comparison.records == records


CONFIG = {
    "retention.ms": "123456789",
    "max.message.bytes": "2000000",
    "cleanup.policy": "delete",
    "unclean.leader.election.enable": "true",
    "message.timestamp.type": "LogAppendTime",
}


@pytest.fixture(scope="module")
def mirror(two_clusters: TwoClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    w, source, target = word(), word(), word()
    create_topic(here, f"{w}-made", partitions=3, config=CONFIG)
    create_topic(here, f"{w}-grown", partitions=2)
    create_topic(here, f"{w}-steady")
    create_topic(there, f"{w}-early")
    write(here, f"{w}-grown", samples(100, partitions=2))
    write(there, f"{w}-early", samples(10))
    properties = flow_file(
        tmp_path_factory.mktemp("integ") / "topics.properties",
        {source: here, target: there},
        {f"{source}->{target}": f"{w}-.*", f"{target}->{source}": f"{w}-.*"},
        {
            f"{source}->{target}.refresh.topics.interval.seconds": str(REFRESH_SECONDS),
            f"{target}->{source}.refresh.topics.interval.seconds": str(SELDOM_SECONDS),
        },
    )
    with HeliographRun(properties, "--log-level", "debug") as run:
        made = Mirror(two_clusters, source, target, w, run, properties)
        wait_until(lambda: sum(ends(there, made.remote("grown")).values()) == 100, "the mirror runs", every=0.2)
        wait_until(lambda: ends(here, f"{target}.{w}-early") == {0: 10}, "the flow back runs", every=0.2)
        yield made
        assert run.terminate() == 0, run.output


def topic_config(bootstrap: str, topic: str) -> dict[str, tuple[str, bool]]:
    client = admin(bootstrap)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = client.describe_configs([resource])[resource].result(ANSWER_SECONDS)
    return {name: (entry.value, entry.is_default) for name, entry in entries.items()}


def test_a_remote_topic_has_the_partitions_and_the_copyable_configs_of_its_source(mirror: Mirror) -> None:
    there = mirror.clusters.b.bootstrap
    assert partition_count(there, mirror.remote("made")) == 3
    config = topic_config(there, mirror.remote("made"))
    assert config["retention.ms"] == ("123456789", False)
    assert config["max.message.bytes"] == ("2000000", False)
    assert config["message.timestamp.type"][0] == "CreateTime"
    # Excluded by config.properties.exclude.
    assert config["unclean.leader.election.enable"][0] == "false"
    assert config["segment.bytes"][1]


def test_a_grown_source_grows_its_remote_topic_and_the_new_partitions_are_copied(mirror: Mirror) -> None:
    here, there = mirror.clusters.a.bootstrap, mirror.clusters.b.bootstrap
    before = mirror.lanes("grown")
    add_partitions(here, f"{mirror.w}-grown", 4)
    write(here, f"{mirror.w}-grown", samples(400, partitions=4, seed=5))
    wait_until(
        lambda: sum(ends(there, mirror.remote("grown")).values()) == 500,
        "all partitions are copied",
        every=0.1,
    )
    assert partition_count(there, mirror.remote("grown")) == 4
    mirror.assert_identical("grown", 500)
    after = mirror.lanes("grown")
    same = ("producer_id", "producer_epoch", "generation")
    assert [[lane[name] for name in same] for lane in after[:2]] == [[lane[name] for name in same] for lane in before]


def test_new_topics_are_found_at_the_interval_of_their_own_flow(mirror: Mirror) -> None:
    """One flow looks every two seconds, the other once a day, and neither at the default of ten minutes.

    How long after its interval a topic is really copied is a matter of the machine: `python -m tests.bench.joining` measures it.
    """
    here, there = mirror.clusters.a.bootstrap, mirror.clusters.b.bootstrap
    create_topic(there, f"{mirror.w}-late")
    write(there, f"{mirror.w}-late", samples(10))
    for number in range(JOINS):
        join(mirror, f"found-{number}")
        wait_until(partial(is_copied, mirror, f"found-{number}"), "it is copied", every=0.1)
    assert partition_count(here, f"{mirror.target}.{mirror.w}-late") == 0, "the flow back looked at another's interval"


def test_new_topics_join_while_the_others_are_carried_until_their_next_task_is_ready(mirror: Mirror) -> None:
    """At every one of three joins, and with the same identity throughout.

    A join is a new epoch, and the danger is that lanes are let go before somebody can take them. So the tasks of the new epoch
    are kept from starting: records that are written from then on must arrive all the same. No clock is asked, because a busy
    machine stalls the mirror and its brokers alike; how long the hand-over itself takes is measured by
    `python -m tests.bench.joining`.
    """
    here, there = mirror.clusters.a.bootstrap, mirror.clusters.b.bootstrap
    steady, remote = f"{mirror.w}-steady", mirror.remote("steady")
    lane, before = SteadyLane((here, steady), (there, remote)), mirror.lanes("steady")
    writer = SteadyWriter(here, steady)
    shown: list[bool] = []
    try:
        wait_until(lambda: lane.copied > 200, "records flow")
        while shown.count(True) < JOINS:
            assert len(shown) < 2 * JOINS, "lanes were carried only by a Spark that was started again"
            kind = f"joins-{len(shown)}"
            shown.append(
                is_carried_through(mirror.run, lane, partial(join, mirror, kind), partial(is_copied, mirror, kind))
            )
            wait_until(partial(is_copied, mirror, kind), f"{kind} is copied")
            mirror.assert_identical(kind, 100)
            after = mirror.lanes("steady")
            assert [[one[name] for name in SAME] for one in after] == [[one[name] for name in SAME] for one in before]
    finally:
        writer.stop()
    wait_until(lambda: ends(there, remote) == ends(here, steady), "everything arrived")
    mirror.assert_identical("steady", ends(here, steady)[0])


def join(mirror: Mirror, kind: str) -> None:
    """A new topic with a hundred records; back when the flow has found it."""
    here, there = mirror.clusters.a.bootstrap, mirror.clusters.b.bootstrap
    create_topic(here, f"{mirror.w}-{kind}", partitions=2)
    write(here, f"{mirror.w}-{kind}", samples(100, partitions=2))
    wait_until(lambda: partition_count(there, mirror.remote(kind)) == 2, f"{kind} is found")


def is_copied(mirror: Mirror, kind: str) -> bool:
    return sum(ends(mirror.clusters.b.bootstrap, mirror.remote(kind)).values()) == 100
