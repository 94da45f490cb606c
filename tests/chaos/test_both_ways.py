"""Two flows in both directions that keep names: every record is on both clusters once, also over kill -9 under load."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.support.clusters import TwoClusters
from tests.support.heliograph_run import PROGRAM, HeliographRun
from tests.support.mirror import command, flow_file, lanes_of, reasons, status, summed
from tests.support.topics import create_topic, ends, partition_count, wait_until_stable
from tests.support.waiting import wait_until
from tests.support.writers import Sample, producer, samples, send, write

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
PARTITIONS = 2


class Load:
    """An application that writes distinct records until it is stopped; with a producer id, or without."""

    def __init__(self, bootstrap: str, topic: str, name: str, **settings: object) -> None:
        self._bootstrap, self._topic, self._name = bootstrap, topic, name
        self._settings = settings
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.written: list[bytes] = []

    def _run(self) -> None:
        client = producer(self._bootstrap, linger_ms=5, **self._settings)
        while not self._stop.wait(0.02):
            first = len(self.written)
            values = [b"%s-%d" % (self._name.encode(), number) for number in range(first, first + 20)]
            send(client, self._topic, (Sample(v, v, partition=n % PARTITIONS) for n, v in enumerate(values)))
            self.written += values

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()


def contents(bootstrap: str, topic: str) -> Counter[bytes]:
    """Every committed record of a topic, through another client."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "by-hand", "enable.partition.eof": True}
    client = Consumer(settings | {"enable.auto.commit": False, "isolation.level": "read_committed"})
    places = [TopicPartition(topic, number, 0) for number in range(partition_count(bootstrap, topic))]
    client.assign(places)
    found: Counter[bytes] = Counter()
    left = len(places)
    try:
        while left:
            message = client.poll(20)
            assert message is not None, f"{topic} on {bootstrap} gave {found.total()} records and no end"
            error = message.error()
            if error is None:
                found[message.value() or b""] += 1
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                left -= 1
    finally:
        client.close()
    return found


def test_both_clusters_have_every_record_once_over_a_kill_under_load_in_both_directions(
    two_clusters: TwoClusters, unique: str, tmp_path: Path
) -> None:
    a, b = two_clusters.a.bootstrap, two_clusters.b.bootstrap
    there, back = f"{unique}A->{unique}B", f"{unique}B->{unique}A"
    early, topic, transactions = f"{unique}-early", f"{unique}-load", f"{unique}-tx"
    create_topic(a, topic, PARTITIONS)
    create_topic(b, topic, PARTITIONS)
    create_topic(a, transactions, 1)
    create_topic(b, early, 1)
    write(b, early, samples(100), "lz4")  # on one side only: the other side's copy must not come back
    file = flow_file(
        tmp_path / "both.properties",
        {f"{unique}A": a, f"{unique}B": b},
        {there: f"{unique}.*", back: f"{unique}.*"},
        {"replication.policy.class": IDENTITY, "epoch.seconds": "10", "refresh.topics.interval.seconds": "2"},
    )
    load = [
        Load(a, topic, "a-id", enable_idempotence=True, compression_type="lz4"),
        Load(a, topic, "a-plain"),
        Load(b, topic, "b-id", enable_idempotence=True),
        Load(b, topic, "b-plain", compression_type="zstd"),
    ]
    committed = 0
    with load[0], load[1], load[2], load[3]:
        with HeliographRun(file, program=PROGRAM) as first:
            _wait_for_crossing(a, b, topic, load)
            committed += _transactions(a, transactions, f"{unique}-one")
            first.kill_tree()
        with HeliographRun(file) as second:
            _wait_for_crossing(a, b, topic, load)
            committed += _transactions(b, transactions, f"{unique}-two")
            for one in load:
                one.__exit__(None, None, None)
            shown: dict[str, Any] = {}
            try:
                wait_until(
                    lambda: _settled(file, a, b, topic, load, shown), "everything is on both sides", 240, every=1
                )
            except AssertionError as error:
                raise AssertionError(f"{error}: {_where(file, a, b, topic, load)}\n{second.output}") from error
            assert second.terminate() == 0, second.output
    expected = Counter(value for one in load for value in one.written)
    for name in (a, b):
        found = contents(name, topic)
        assert found == expected, (name, list((found - expected).items())[:5], list((expected - found).items())[:5])
        assert contents(name, transactions).total() == committed
        assert contents(name, early).total() == 100
    for flow in (there, back):
        lanes = lanes_of(shown[flow], topic)
        assert reasons(lanes, "dropped")["came home"] > 0
        assert summed(lanes, "lag") == 0
    _accounts_close(file, there, topic)
    before = {name: ends(where, name) for where in (a, b) for name in (topic, early, transactions)}
    with HeliographRun(file, "--until-caught-up") as again:
        assert again.wait() == 0, again.output
        assert "copied 0 records" in again.output
    assert {name: ends(where, name) for where in (a, b) for name in (topic, early, transactions)} == before


def _wait_for_crossing(a: str, b: str, topic: str, load: list[Load]) -> None:
    """Each side gets many records of the other's from now on: what came before now shows nothing of the mirror that runs now."""
    _, before = _copied(a, b, topic, load)

    def crossed() -> bool:
        least, _ = _copied(a, b, topic, load)
        return all(now > then + 200 for now, then in zip(least, before, strict=True))

    wait_until(crossed, "records of both sides come to the other", 240, every=0.5)


def _copied(a: str, b: str, topic: str, load: list[Load]) -> tuple[list[int], list[int]]:
    """How many records each side has beyond those that were written there, at least and at most: they are written meanwhile."""
    sooner = _written(load)
    have = [sum(ends(name, topic).values()) for name in (a, b)]
    later = _written(load)
    at_most = [there - own for there, own in zip(have, sooner, strict=True)]
    return [there - own for there, own in zip(have, later, strict=True)], at_most


def _written(load: list[Load]) -> list[int]:
    return [sum(len(one.written) for one in load[:2]), sum(len(one.written) for one in load[2:])]


def _where(file: Path, a: str, b: str, topic: str, load: list[Load]) -> str:
    """What it stands at: how many records each side has, and every lane that is behind."""
    written = sum(len(one.written) for one in load)
    have = [sum(ends(name, topic).values()) for name in (a, b)]
    behind = [lane for flow in status(file).values() for lane in flow["lanes"] if lane["lag"] != 0]
    return f"{written} records written, {have} there, behind: {behind}"


def _transactions(bootstrap: str, topic: str, name: str) -> int:
    client = producer(bootstrap, transactional_id=name, linger_ms=5)
    client.init_transactions(60)
    committed = 0
    for number in range(6):
        client.begin_transaction()
        send(client, topic, (Sample(b"%s-%d-%d" % (name.encode(), number, place)) for place in range(10)))
        if number % 3 == 2:
            client.abort_transaction(60)
        else:
            client.commit_transaction(60)
            committed += 10
    wait_until_stable(bootstrap, topic)
    return committed


def _settled(file: Path, a: str, b: str, topic: str, load: list[Load], shown: dict[str, Any]) -> bool:
    """By what status says at one moment, which is in `shown` then."""
    written = sum(len(one.written) for one in load)
    if any(sum(ends(name, topic).values()) < written for name in (a, b)):
        return False
    shown.update(status(file))
    lanes = [lane for flow in shown.values() for lane in flow["lanes"]]
    told = [reasons(lanes_of(flow, topic), "dropped") for flow in shown.values()]
    return all(lane["lag"] == 0 for lane in lanes) and all("came home" in dropped for dropped in told)


def _accounts_close(file: Path, flow: str, topic: str) -> None:
    audited = command("audit", str(file))
    assert audited.code == 0, audited.out + audited.err
    assert " came home" in audited.out
    place = ("--flow", flow, "--topic", topic, "--partition", "0", "--offset")
    answers = [command("translate", str(file), *place, str(offset)).out for offset in (0, 5)]
    assert all(answers)
    group = command("translate", str(file), "--flow", flow, "--group", "any")
    assert group.code != 0 and "each has the records in another order" in group.err
