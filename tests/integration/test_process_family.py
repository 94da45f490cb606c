"""The tests' own view of a running mirror: every process of its family is seen, and none outlives the driver."""

from __future__ import annotations

from pathlib import Path

from tests.support.clusters import TwoClusters
from tests.support.heliograph_run import PROGRAM, HeliographRun, two_cluster_settings, write_properties
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.writers import samples, write


def test_jvm_daemon_and_workers_are_seen_and_die_with_a_killed_driver(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    create_topic(two_clusters.a.bootstrap, unique)
    write(two_clusters.a.bootstrap, unique, samples(10))
    settings = two_cluster_settings(two_clusters.a.bootstrap, two_clusters.b.bootstrap, unique)
    file = write_properties(tmp_path / "flow.properties", settings)
    with HeliographRun(file, program=PROGRAM) as run:
        wait_until(lambda: bool(run.workers()), "Python workers were seen", every=0.2)
        seen = {run.pid, *run.jvms(), *run.daemons(), *run.workers()}
        assert (len(run.jvms()), len(run.daemons())) == (1, 1)
        assert seen <= set(run.survivors())
        run.kill()
        wait_until(lambda: not run.survivors(), "the whole family is gone")
