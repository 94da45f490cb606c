"""Remote topics: made like their source, grown with it, and joined by new ones without disturbing the lanes that run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

from heliograph.operations.compare import compare_topics
from tests.support.arrivals import Arrivals, SteadyWriter
from tests.support.clusters import TwoClusters
from tests.support.heliograph_run import HeliographRun
from tests.support.mirror import flow_file, lanes_of, status, word
from tests.support.topics import ANSWER_SECONDS, add_partitions, admin, create_topic, ends, partition_count
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

REFRESH_SECONDS = 2
FOUND_WITHIN_SECONDS = 60
"""Of a busy machine; without the option it would take the ten minutes of its default."""
"""The interval, and what a loaded machine of two cores needs to make the topic and begin an epoch."""
GAP_SECONDS = 0.25


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
    write(here, f"{w}-grown", samples(100, partitions=2))
    properties = flow_file(
        tmp_path_factory.mktemp("integ") / "topics.properties",
        {source: here, target: there},
        {f"{source}->{target}": f"{w}-.*"},
        {"refresh.topics.interval.seconds": str(REFRESH_SECONDS)},
    )
    with HeliographRun(properties) as run:
        made = Mirror(two_clusters, source, target, w, run, properties)
        wait_until(lambda: sum(ends(there, made.remote("grown")).values()) == 100, "the mirror runs", every=0.2)
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
        FOUND_WITHIN_SECONDS,
        every=0.1,
    )
    assert partition_count(there, mirror.remote("grown")) == 4
    mirror.assert_identical("grown", 500)
    after = mirror.lanes("grown")
    same = ("producer_id", "producer_epoch", "generation")
    assert [[lane[name] for name in same] for lane in after[:2]] == [[lane[name] for name in same] for lane in before]


def test_a_new_topic_joins_without_disturbing_the_others(mirror: Mirror) -> None:
    """Same identity, and no delivery gap over 250 ms.

    What the machine itself delays is taken off: the source is read by the same kind of consumer at the same time, and a gap
    that its arrivals show as well was not made by the mirror. The best of three joins counts, because two cores that also run
    four JVMs stall now and then; a mirror that disturbs its lanes does so every time.
    """
    here, there = mirror.clusters.a.bootstrap, mirror.clusters.b.bootstrap
    steady, remote = f"{mirror.w}-steady", mirror.remote("steady")
    before = mirror.lanes("steady")
    writer = SteadyWriter(here, steady)
    at_source, at_target = Arrivals(here, steady), Arrivals(there, remote)
    gaps: list[float] = []
    try:
        wait_until(lambda: len(at_target.times) > 200, "records flow")
        for number in range(3):
            gaps.append(_gap_at_join(mirror, f"joins-{number}", at_source, at_target))
            if gaps[-1] <= GAP_SECONDS:
                break
    finally:
        writer.stop()
        at_source.stop()
        at_target.stop()
    assert min(gaps) <= GAP_SECONDS, f"gaps at three joins: {gaps}"
    wait_until(lambda: ends(there, remote) == ends(here, steady), "everything arrived")
    mirror.assert_identical("steady", ends(here, steady)[0])
    after = mirror.lanes("steady")
    for name in ("producer_id", "producer_epoch", "generation", "delta"):
        assert [lane[name] for lane in after] == [lane[name] for lane in before]


def _gap_at_join(mirror: Mirror, kind: str, at_source: Arrivals, at_target: Arrivals) -> float:
    """The longest gap on the target around the join of a new topic, less the source's own longest gap beyond its usual."""
    here, there = mirror.clusters.a.bootstrap, mirror.clusters.b.bootstrap
    create_topic(here, f"{mirror.w}-{kind}", partitions=2)
    write(here, f"{mirror.w}-{kind}", samples(100, partitions=2))
    began = time.monotonic()
    wait_until(lambda: sum(ends(there, mirror.remote(kind)).values()) == 100, f"{kind} joined", FOUND_WITHIN_SECONDS)
    joined = time.monotonic()
    time.sleep(0.5)
    mirror.assert_identical(kind, 100)
    own = at_source.longest_gap(began, joined + 0.5)
    return at_target.longest_gap(began, joined + 0.5) - max(0.0, own - 0.05)
