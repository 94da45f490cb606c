"""A task that hears nothing of the driver for a while leaves; its lanes are carried again long before the epoch ends (H8)."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from heliograph.operations.compare import compare_topics
from tests.support.clusters import TwoClusters
from tests.support.heliograph_run import HeliographRun, two_cluster_settings, write_properties
from tests.support.topics import create_topic, ends
from tests.support.waiting import wait_until
from tests.support.writers import samples, write

PARTITIONS = 4
LONGER_THAN_SILENCE_SECONDS = 12.0


@pytest.mark.timeout(600)
def test_lanes_of_a_worker_that_stood_still_are_carried_again_before_the_epoch_ends(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    source, target = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    create_topic(source, unique, PARTITIONS)
    alias, remote = f"s{unique}", f"s{unique}.{unique}"
    lines = two_cluster_settings(source, target, unique, slots="2", epoch_seconds="50")
    settings = {
        name.replace("A->B", f"{alias}->B").replace("B->A", f"B->{alias}"): value for name, value in lines.items()
    }
    settings = {f"{alias}{name[1:]}" if name.startswith("A.") else name: value for name, value in settings.items()}
    file = write_properties(tmp_path / "line.properties", settings | {"clusters": f"{alias}, B"})

    def copied() -> bool:
        return ends(target, remote) == ends(source, unique)

    write(source, unique, samples(1000, partitions=PARTITIONS))
    with HeliographRun(file) as run:
        run.wait_for_text("lanes: ")
        wait_until(copied, "everything is copied")
        before: set[int] = set()

        def is_handed_over() -> bool:
            """To two others; those before had let the lanes go when they ended."""
            now = set(run.carriers())
            return len(now) == 2 and not now & before

        wait_until(is_handed_over, "two workers carry", every=0.2)
        before = set(run.carriers())
        # At the beginning of an epoch: at its end others take the lanes over anyhow.
        wait_until(is_handed_over, "the next epoch has begun", every=0.2)
        frozen = (set(run.carriers()) - before).pop()
        os.kill(frozen, signal.SIGSTOP)
        time.sleep(LONGER_THAN_SILENCE_SECONDS)
        os.kill(frozen, signal.SIGCONT)
        run.wait_for_text("lanes lost their task: the next epoch begins", 120)
        write(source, unique, samples(1000, seed=2, partitions=PARTITIONS))
        wait_until(copied, "what came since is copied too")
        assert run.terminate() == 0
    comparison = compare_topics(source, target, {unique: remote})
    assert comparison.identical, [str(difference) for difference in comparison.differences[:5]]
    assert comparison.records == 2000
