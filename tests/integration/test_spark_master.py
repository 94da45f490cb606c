"""The same command on Spark's own cluster manager: a master and a worker of their own, executors in other processes."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from heliograph.operations.compare import compare_topics
from tests.support.clusters import TwoClusters
from tests.support.mirror import flow_file, run_to_the_end, word
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.writers import write_every_codec, write_transactions

HERE = "127.0.0.1"


def spark_class(log: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = os.environ | {"SPARK_LOCAL_IP": HERE, "SPARK_HOME": str(program.parent.parent)}
    environment |= {"SPARK_WORKER_DIR": str(log.parent / "work"), "SPARK_DAEMON_MEMORY": "256m"}
    with log.open("wb") as stream:
        return subprocess.Popen([str(program), name, *arguments], stdout=stream, stderr=stream, env=environment)


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[str]:
    """The address of a standalone Spark with one worker of four cores, on ports that it chose itself."""
    package = "org.apache.spark.deploy"
    at = ("--host", HERE, "--port", "0", "--webui-port", "0")
    log = tmp_path / "master.log"
    processes = [spark_class(log, f"{package}.master.Master", *at)]
    try:

        def address() -> str:
            found = re.search(r"Starting Spark master at (spark://\S+)", log.read_text())
            return found[1] if found else ""

        wait_until(lambda: address() != "", "the master listens")
        more = ("--cores", "4", "--memory", "1g", address())
        processes.append(spark_class(tmp_path / "worker.log", f"{package}.worker.Worker", *at, *more))
        wait_until(lambda: "Registering worker" in log.read_text(), "the worker is registered")
        yield address()
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(20)


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
