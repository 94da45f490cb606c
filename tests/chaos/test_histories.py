"""The short form of `make chaos`: one seed, three brokers on each side; and the checker on real logs with planted differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.histories.chaos import Chaos, summary
from tests.histories.checker import Kind, judge
from tests.histories.history import History, Recorder, load
from tests.histories.logs import LABEL, read
from tests.histories.observers import Group, GroupWatch
from tests.support.clusters import TwoClusters
from tests.support.topics import admin, create_topic, wait_until_stable
from tests.support.waiting import wait_until

SEED = 80
SECONDS = 45.0
PAUSE_SECONDS = (2.0, 6.0)
RECORDS = 20
KEPT = {"retention.ms": "-1"}
"""The records written here are years old, and brokers delete what is older than a week."""


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
    source = create_topic(a, unique, config=KEPT)
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
        remote = create_topic(b, f"{unique}-{name}", config=KEPT)
        _write(b, remote, numbers)
        history = History(source={place: read(a, source, 0)}, target={place: read(b, remote, 0)}, aborted={"r90"})
        assert len(history.source[place]) == len(right), "an aborted record is not on the source"
        assert {anomaly.kind for anomaly in judge(history).anomalies} == expected, name


def test_a_log_whose_beginning_was_deleted_is_not_read_as_an_empty_one(two_clusters: TwoClusters, unique: str) -> None:
    bootstrap = two_clusters.a.bootstrap
    _write(bootstrap, create_topic(bootstrap, unique, config=KEPT), list(range(RECORDS)))
    assert len(read(bootstrap, unique, 0)) == RECORDS
    client, place = admin(bootstrap), TopicPartition(unique, 0, 5)
    client.delete_records([place])[place].result(30)
    with pytest.raises(RuntimeError, match=f"{unique}-0: .*out of range"):
        read(bootstrap, unique, 0)


class _Heard(Recorder):
    """A recorder that can be asked what it noted."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.offsets: dict[str, list[int]] = {"commit": [], "group": []}

    def note(self, kind: str, **fields: Any) -> None:
        super().note(kind, **fields)
        if kind in self.offsets:
            self.offsets[kind].append(fields["offset"])


def _set_group(bootstrap: str, group: str, topic: str, offset: int) -> None:
    client = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 2})
    try:
        client.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    finally:
        client.close()


@pytest.mark.parametrize("too_far", [0, 1])
def test_a_group_that_is_set_past_a_record_on_a_real_target_is_found(
    two_clusters: TwoClusters, unique: str, tmp_path: Path, too_far: int
) -> None:
    a, b, group, place = two_clusters.a.bootstrap, two_clusters.b.bootstrap, f"{unique}-group", (unique, 0)
    remote = create_topic(b, f"{unique}-copy", config=KEPT)
    for bootstrap, topic in ((a, create_topic(a, unique, config=KEPT)), (b, remote)):
        _write(bootstrap, topic, list(range(RECORDS)))
    recorder = _Heard(tmp_path / "history.jsonl")
    application = Group(recorder, a, group, [unique], rate=3)
    try:
        while not recorder.offsets["commit"]:
            application.turn()
    finally:
        application.close()
    got = recorder.offsets["commit"][-1]
    assert 0 < got <= 3
    _set_group(b, group, remote, got + too_far)
    watch = GroupWatch(recorder, b, [group], {(remote, 0): place})
    watch.start()
    try:
        wait_until(lambda: bool(recorder.offsets["group"]), "the watch has seen the group on the target", 60)
    finally:
        watch.stop()
    recorder.log("source", place, read(a, unique, 0))
    recorder.log("target", place, read(b, remote, 0))
    recorder.close()
    verdict = judge(load(recorder.path))
    assert verdict.group_looks == 1
    assert [(anomaly.kind, anomaly.records) for anomaly in verdict.anomalies] == [(Kind.GROUP, 1)] * too_far
