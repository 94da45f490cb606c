"""The short form of `make chaos`: one seed, three brokers on each side; and the checker on real logs with planted differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.histories.chaos import Chaos, summary
from tests.histories.checker import Kind, judge
from tests.histories.history import Commit, History
from tests.histories.logs import LABEL, read
from tests.support.clusters import TwoClusters
from tests.support.topics import create_topic, wait_until_stable

SEED = 80
SECONDS = 45.0
PAUSE_SECONDS = (2.0, 6.0)
RECORDS = 20


@pytest.mark.timeout(900)
def test_a_history_with_faults_by_a_fixed_seed_is_valid(tmp_path: Path) -> None:
    said: list[str] = []
    outcome = Chaos(SEED, SECONDS, tmp_path / "chaos", said.append, PAUSE_SECONDS).run()
    found = "\n".join([*said, *summary(outcome)])
    assert outcome.verdict.is_valid, found
    assert len(outcome.history.faults) >= 6, found
    assert all(count > 200 for count in outcome.verdict.records.values()), found
    assert outcome.verdict.group_looks > 0, found
    assert not outcome.verdict.source_lost, found
    assert not outcome.verdict.failures, found
    assert not [text for text in outcome.history.remarks if "writer" in text], found


def _write(bootstrap: str, topic: str, numbers: list[int], *, transactional: str = "", abort: bool = False) -> None:
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 2}
    client = Producer(settings | ({"transactional.id": transactional} if transactional else {}))
    if transactional:
        client.init_transactions(60)
        client.begin_transaction()
    for number in numbers:
        headers: Any = [(LABEL, b"r%d" % abs(number))]
        value = b"value %d" % number
        client.produce(topic, value, b"key", 0, headers=headers, timestamp=1_700_000_000_000 + abs(number))
    client.flush(60)
    if transactional and abort:
        client.abort_transaction(60)
    elif transactional:
        client.commit_transaction(60)


def test_differences_that_are_planted_on_real_brokers_are_found(two_clusters: TwoClusters, unique: str) -> None:
    a, b = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    right = list(range(1, RECORDS + 1))
    source = create_topic(a, unique)
    _write(a, source, right)
    _write(a, source, [90], transactional=unique, abort=True)
    _write(a, source, [91], transactional=unique)
    wait_until_stable(a, source)
    right = [*right, 91]
    planted = {
        "valid": (right, set()),
        "lost": (right[:5] + right[6:], {Kind.LOST}),
        "late": (right[:-1], {Kind.LATE}),
        "repeated": (right[:5] + right[4:], {Kind.REPEATED}),
        "reordered": ([*right[:4], right[5], right[4], *right[6:]], {Kind.REORDERED}),
        "changed": ([*right[:5], -right[5], *right[6:]], {Kind.CHANGED}),
        "phantom": ([*right[:5], 90, *right[5:]], {Kind.PHANTOM}),
    }
    place = (unique, 0)
    for name, (numbers, expected) in planted.items():
        remote = create_topic(b, f"{unique}-{name}")
        _write(b, remote, numbers)
        history = History(source={place: read(a, source, 0)}, target={place: read(b, remote, 0)}, aborted={"r90"})
        assert len(history.source[place]) == len(right), "an aborted record is not on the source"
        assert {anomaly.kind for anomaly in judge(history).anomalies} == expected, name
        history.commits = [Commit(1.0, "g", place, 3)]
        history.groups = [Commit(2.0, "g", place, 4)]
        assert Kind.GROUP in {anomaly.kind for anomaly in judge(history).anomalies}, name
