"""A run that is stopped while something of its may still reach the target: it must not say that it left in good order (M4)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest

from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.operations.compare import compare_topics
from heliograph.replication.generations import Holder
from tests.support.clusters import ClusterFactory, TwoClusters
from tests.support.heliograph_run import HeliographRun, two_cluster_settings, write_properties
from tests.support.rest import Rest, rest_of
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import samples, write_old_records

RECORDS = 3_000
OLD = timedelta(days=3)
"""The target forgets such records by their age, and guards no lane that copies them."""
UNANSWERED = "not everything that was sent is answered; the next run waits up to 15 s"


def holder(bootstrap: str) -> Holder:
    """Whom the ledger names as the flow's holder."""

    async def read() -> Holder | None:
        warm = Warm()
        try:
            ledger: Ledger = warm.ledger(Cluster("B", tuple(bootstrap.split(","))))
            return (await ledger.refresh()).holder("A->B")
        finally:
            warm.close()

    found = asyncio.run(read())
    assert found is not None
    return found


def _seen_end(rest: Rest) -> int:
    """Where the source ends by the last answer that the lane's task got from it, which had the records before it."""
    return max((lane["source_end"] for lane in rest.get("/api/v1/flows/A->B/lanes")["lanes"]), default=-1)


class Scene:
    """A topic of old records, its copy on a target of its own, and a file that mirrors it."""

    def __init__(self, source: str, cluster: EmbeddedCluster, topic: str, folder: Path) -> None:
        self.source, self.cluster, self.target = source, cluster, cluster.bootstrap
        self.topic, self.remote = topic, f"A.{topic}"
        create_topic(source, topic)
        quick = {"takeover.wait.seconds": "15", "request.timeout.ms": "8000", "slots": "1"}
        quick |= {"listeners": "http://127.0.0.1:0"}
        self.file = write_properties(
            folder / "mm2.properties", two_cluster_settings(source, self.target, topic) | quick
        )
        self.written = 0

    def write(self) -> None:
        now_ms = time.time_ns() // 1_000_000
        self.written += write_old_records(self.source, self.topic, samples(RECORDS, seed=self.written), now_ms, OLD)

    def wait_until_copied(self) -> None:
        wait_until(
            lambda: sum(ends(self.target, self.remote).values()) == self.written, "all is copied", 120, every=0.2
        )

    def assert_identical(self) -> None:
        comparison = compare_topics(self.source, self.target, {self.topic: self.remote})
        assert comparison.identical, [str(difference) for difference in comparison.differences[:5]]
        assert comparison.records == self.written


@pytest.fixture
def scene(two_clusters: TwoClusters, new_cluster: ClusterFactory, unique: str, tmp_path: Path) -> Scene:
    return Scene(two_clusters.a.bootstrap, new_cluster("left"), unique, tmp_path)


@pytest.mark.timeout(600)
def test_a_run_that_ends_with_records_on_their_way_makes_the_next_one_wait(scene: Scene) -> None:
    """Once its worker was lost a moment before, once the target stands still; a run that ends in order makes nobody wait."""
    scene.write()
    with HeliographRun(scene.file) as run:
        scene.wait_until_copied()
        carriers: list[int] = []

        def is_one() -> bool:
            carriers[:] = run.carriers()
            return len(carriers) == 1  # of two, one has let the lane go

        wait_until(is_one, "one worker carries", every=0.05)
        os.kill(carriers[0], signal.SIGKILL)
        assert run.terminate() == 0, run.output
        assert UNANSWERED in run.output
    assert not holder(scene.target).released

    scene.write()
    with HeliographRun(scene.file) as run:
        scene.wait_until_copied()  # once it has waited
        assert run.terminate() == 0, run.output
        assert UNANSWERED not in run.output
    assert holder(scene.target).released, "nothing was on its way"

    with HeliographRun(scene.file) as run:
        scene.write()
        scene.wait_until_copied()
        scene.cluster.freeze(1)
        rest, before = rest_of(run), scene.written
        scene.write()
        wait_until(lambda: _seen_end(rest) > before, "it has read some of it, and sent it", every=0.2)
        assert run.terminate() == 0, run.output
        assert UNANSWERED in run.output
        scene.cluster.thaw(1)
    wait_until(lambda: bool(ends(scene.target, scene.remote)), "the target answers again", every=0.2)
    assert not holder(scene.target).released, "what waited in the target's sockets said otherwise when it woke up"

    scene.write()  # all that was on its way may be there by now, and a run that is still loaded knows no SIGTERM
    with HeliographRun(scene.file) as run:
        scene.wait_until_copied()
        assert run.terminate() == 0, run.output
    assert holder(scene.target).released
    scene.assert_identical()
