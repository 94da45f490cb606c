"""A standalone Spark with two workers: executors, workers and the driver are killed or frozen under load; the copy is identical.

One Spark cluster and one load for all; victims and moments come from a fixed seed. docs/faults.md has the figures.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.clusters import TwoClusters
from tests.support.fault_stage import Load, Stage, Watcher
from tests.support.heliograph_run import PROGRAM, HeliographRun
from tests.support.mirror import flow_file, word
from tests.support.rest import rest_of, wait_for_flow
from tests.support.spark_cluster import HERE, SparkCluster, freeze, signal_to, thaw
from tests.support.waiting import wait_until

SEED = 12
MORE = {
    "slots": "2",
    "spark.executor.memory": "512m",
    "spark.driver.host": HERE,
    "listeners": "http://127.0.0.1:0",
}


class Lab:
    """The Spark cluster, and the run that is mirrored on it."""

    def __init__(self, spark: SparkCluster, stage: Stage, file: Path) -> None:
        self.spark, self.stage = spark, stage
        self._file = file
        self._chance = random.Random(SEED)

    def executor(self) -> psutil.Process:
        """Any of those that have tasks, after a while."""
        wait_until(lambda: len(self.spark.executors()) == len(self.spark.workers), "both workers have an executor")
        time.sleep(self._chance.uniform(0, 2))
        return self._chance.choice(self.spark.executors())

    def worker(self) -> str:
        wait_until(lambda: len(self.spark.executors()) == len(self.spark.workers), "both workers have an executor")
        time.sleep(self._chance.uniform(0, 2))
        return self._chance.choice(self.spark.workers)

    def driver_again(self) -> None:
        """As an init system does it."""
        self.stage.run = start(self._file, self.spark)
        self.stage.watcher.rest = rest_of(self.stage.run)
        wait_for_flow(self.stage.watcher.rest, self.stage.watcher.flow)


def start(file: Path, spark: SparkCluster) -> HeliographRun:
    return HeliographRun(file, "--master", spark.address, program=PROGRAM).start()


@pytest.fixture(scope="module")
def lab(two_clusters: TwoClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    here, there = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    folder, source, target, prefix = tmp_path_factory.mktemp("spark"), word(), word(), f"{word()}-"
    load = Load(here, prefix)
    load.create_topics(there, source, 1, {})
    flow = f"{source}->{target}"
    file = flow_file(folder / "mm2.properties", {source: here, target: there}, {flow: f"{prefix}.*"}, MORE)
    with SparkCluster(folder, workers=2) as spark:
        run = start(file, spark)
        try:
            rest = rest_of(run)
            wait_for_flow(rest, flow)
            made = Lab(spark, Stage(two_clusters.a, two_clusters.b, run, load, Watcher(rest, flow)), file)
            made.stage.start()
            yield made
            load.stop()
            made.stage.settle("the last fault")
            run = made.stage.run
            assert run.terminate() == 0, run.output
        finally:
            run.kill_tree()


def test_an_executor_killed_with_9_leaves_an_identical_copy(lab: Lab) -> None:
    with lab.stage.fault("executor killed") as seen:
        signal_to(lab.executor(), signal.SIGKILL)
    assert not seen.parked()


def test_a_worker_killed_with_9_leaves_an_identical_copy(lab: Lab) -> None:
    with lab.stage.fault("worker killed") as seen:
        name = lab.worker()
        lab.spark.kill_worker(name)
        time.sleep(5)
        lab.spark.start_worker(name)
    assert not seen.parked()


def test_an_executor_that_is_frozen_is_left_and_does_no_harm_when_it_wakes(lab: Lab) -> None:
    with lab.stage.fault("executor frozen") as seen:
        family = freeze(lab.executor())
        try:
            lab.stage.settle("the executor froze")
        finally:
            thaw(family)
        time.sleep(5)
    assert not seen.parked()


def test_a_worker_that_is_frozen_keeps_no_record_from_the_target(lab: Lab) -> None:
    """Its JVM alone. Executors talk to the driver and to brokers themselves: they copy on while it is frozen."""
    with lab.stage.fault("worker frozen") as seen:
        name = lab.worker()
        lab.spark.signal_worker(name, signal.SIGSTOP)
        try:
            lab.stage.go_on("the worker froze")
        finally:
            lab.spark.signal_worker(name, signal.SIGCONT)
    assert not seen.parked()


def test_a_driver_killed_with_9_and_started_again_leaves_an_identical_copy(lab: Lab) -> None:
    with lab.stage.fault("driver killed") as seen:
        lab.stage.run.kill()
        lab.driver_again()
    assert not seen.parked()


def test_a_driver_that_is_frozen_and_wakes_leaves_an_identical_copy(lab: Lab) -> None:
    with lab.stage.fault("driver frozen") as seen:
        run = lab.stage.run
        family = [psutil.Process(run.pid), *(psutil.Process(pid) for pid in run.jvms())]
        for process in family:
            signal_to(process, signal.SIGSTOP)
        try:
            time.sleep(20)
        finally:
            thaw(family)
    assert not seen.parked()
