"""Two `heliograph run` of the same file, started at the same moment on an empty ledger: one identical copy, ten times out of ten."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.operations.compare import compare_topics
from tests.support.clusters import TwoClusters
from tests.support.doors import address_lines
from tests.support.heliograph_run import HeliographRun, write_properties
from tests.support.topics import create_topic, delete_topic, topic_names
from tests.support.waiting import wait_until
from tests.support.writers import samples, write, write_transactions

ROUNDS = 10
LEDGER = "__heliograph-ledger"


def _forget_ledger(bootstrap: str) -> None:
    if LEDGER in topic_names(bootstrap):
        delete_topic(bootstrap, LEDGER)
        wait_until(lambda: LEDGER not in topic_names(bootstrap), "the ledger is gone")


@pytest.mark.timeout(900)
def test_two_runs_started_together_make_one_identical_copy(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    source, target = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    plain, transactional = f"{unique}-plain", f"{unique}-tx"
    create_topic(source, plain, 4)
    create_topic(source, transactional, 1)
    write(source, plain, samples(20_000, partitions=4), "lz4")
    write_transactions(source, transactional, f"{unique}-id", transactions=12)
    for number in range(ROUNDS):
        _forget_ledger(target)
        alias = f"r{number}{unique}"
        file = write_properties(
            tmp_path / f"{alias}.properties",
            {
                "clusters": f"{alias}, B",
                **address_lines(alias, source),
                **address_lines("B", target),
                f"{alias}->B.enabled": "true",
                f"{alias}->B.topics": f"{plain}, {transactional}",
                "replication.factor": "1",
                "slots": "1",
            },
        )
        with HeliographRun(file, "--until-caught-up") as first, HeliographRun(file, "--until-caught-up") as second:
            for run in (first, second):
                assert run.wait() == 0, run.output
                assert ", 5 lanes, in" in run.output, run.output
        pairs = {topic: f"{alias}.{topic}" for topic in (plain, transactional)}
        comparison = compare_topics(source, target, pairs)
        assert comparison.identical, (number, [str(difference) for difference in comparison.differences[:5]])
        assert comparison.records > 20_000
