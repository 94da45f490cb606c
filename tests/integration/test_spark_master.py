"""The same command on Spark's own cluster manager: a master and a worker of their own, executors in other processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.operations.compare import compare_topics
from tests.support.clusters import TwoClusters
from tests.support.mirror import flow_file, run_to_the_end, word
from tests.support.spark_cluster import HERE, SparkCluster
from tests.support.topics import create_topic
from tests.support.writers import write_every_codec, write_transactions


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[str]:
    """The address of a standalone Spark with one worker of four cores."""
    with SparkCluster(tmp_path) as spark:
        yield spark.address


def test_executors_of_a_standalone_spark_carry_the_lanes(
    two_clusters: TwoClusters, standalone: str, tmp_path: Path
) -> None:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    topic, source, target = word(), word(), word()
    create_topic(here, topic, partitions=3)
    written = write_every_codec(here, topic, 200, partitions=3)
    written += write_transactions(here, topic, topic, transactions=20, size=5)
    more = {"slots": "2", "spark.executor.memory": "512m", "spark.driver.host": HERE}
    properties = flow_file(
        tmp_path / "standalone.properties", {source: here, target: there}, {f"{source}->{target}": topic}, more
    )
    output = run_to_the_end(properties, "--master", standalone)
    assert f"master {standalone}, 2 slots" in output
    assert f"copied {written:,} records" in output
    comparison = compare_topics(here, there, {topic: f"{source}.{topic}"})
    assert (comparison.differences, comparison.records) == ([], written)
    # The executor's folder is where Spark ran the tasks: not in the driver.
    assert list((tmp_path / "work").glob("app-*/0/stderr"))
