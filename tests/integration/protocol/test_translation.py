"""Exact translation on real logs: the record that an independent client reads at the answer is the record at the question."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from heliograph.kafka.client import ClusterClient
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.slot import Warm
from heliograph.kafka.translator import Translator, end_of
from heliograph.model.clusters import Cluster
from heliograph.replication.translation import (
    Answer,
    Exact,
    Gone,
    NeverCopied,
    NotKnown,
    NotYetCopied,
    position_of,
)
from tests.integration.protocol.harness import BATCH_BY_BATCH, Attempt, Mirror, carry, with_warm
from tests.support.compaction import COMPACTED, count_records, stop_cleaning
from tests.support.topics import ends, set_configs, starts
from tests.support.waiting import wait_until
from tests.support.writers import (
    OpenTransaction,
    Sample,
    samples,
    write,
    write_single_record_batches,
    write_transactions,
)

NEVER = {"max.compaction.lag.ms": str((1 << 63) - 1), "min.compaction.lag.ms": str((1 << 63) - 1)}


def read(bootstrap: str, topic: str, isolation: str = "read_committed") -> dict[int, Any]:
    """Every record of partition 0 by its offset, as confluent-kafka sees it."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "read", "enable.partition.eof": True}
    client = Consumer({**settings, "isolation.level": isolation, "fetch.wait.max.ms": 20})
    client.assign([TopicPartition(topic, 0, starts(bootstrap, topic)[0])])
    found: dict[int, Any] = {}
    try:
        while True:
            message = client.poll(20)
            assert message is not None, f"{topic} did not end"
            error = message.error()
            if error is None:
                found[message.offset()] = (message.key(), message.value(), message.timestamp(), message.headers())
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
            else:
                raise AssertionError(error.str())
    finally:
        client.close()


def translated(mirror: Mirror, offsets: Iterable[int], reverse: bool = False) -> dict[int, Answer]:
    async def ask(warm: Warm) -> dict[int, Answer]:
        source: ClusterClient = warm.client(Cluster("s", (mirror.source,)))
        target: ClusterClient = warm.client(mirror.target_cluster)
        book = await Ledger(target).refresh()
        (lane,) = (lane for lane in book.lanes() if lane.key == mirror.lane_key)
        entry = book.latest(lane)
        assert entry is not None
        translator = Translator(
            entry,
            await end_of(source, mirror.topic, 0, entry.source_topic_id),
            await end_of(target, mirror.remote, 0, entry.target_topic_id),
        )
        return {offset: await translator.translate(offset, reverse) for offset in offsets}

    return with_warm(ask)


def next_of(records: Mapping[int, Any], offset: int) -> Any:
    """What a reader gets who stands at an offset."""
    return next((records[at] for at in sorted(records) if at >= offset), None)


def some(chance: random.Random, offsets: Iterable[int], count: int) -> list[int]:
    known = list(offsets)
    return sorted(chance.sample(known, min(count, len(known))))


def assert_none_unknown(answers: Mapping[int, Answer]) -> None:
    unknown = {offset: answer for offset, answer in answers.items() if isinstance(answer, NotKnown)}
    assert unknown == {}, f"{len(unknown)} of {len(answers)}, the first: {next(iter(unknown.items()))}"


@pytest.fixture
def chance() -> random.Random:
    return random.Random(20261116)


def test_a_history_with_transactions_restarts_and_foreign_records(mirror: Mirror, chance: random.Random) -> None:
    """Plain runs, markers, aborts, a kill in the middle and other people's records, in all of one remote partition."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(700, seed=1))
    write_transactions(mirror.source, mirror.topic, mirror.topic, transactions=12)
    carry(mirror.open())
    write(mirror.target, mirror.remote, [Sample(b"foreign %d" % number) for number in range(7)])
    write_single_record_batches(mirror.source, mirror.topic, 300)
    write_transactions(mirror.source, mirror.topic, mirror.topic, transactions=30)
    with Attempt(mirror.open(), BATCH_BY_BATCH) as attempt:
        attempt.wait_for_records(40)
        attempt.kill()
    write(mirror.target, mirror.remote, [Sample(b"more %d" % number) for number in range(3)])
    write(mirror.source, mirror.topic, samples(900, seed=3), "lz4")
    carry(mirror.open())
    write_transactions(mirror.source, mirror.topic, mirror.topic, transactions=9)
    carry(mirror.open())

    source, target = read(mirror.source, mirror.topic), read(mirror.target, mirror.remote)
    end = ends(mirror.source, mirror.topic)[0]
    answers = translated(mirror, some(chance, range(end), 2_000))
    assert_none_unknown(answers)
    for offset, answer in answers.items():
        if offset in source:
            assert isinstance(answer, Exact) and target[answer.offset] == source[offset], f"{offset}: {answer}"
        else:
            assert isinstance(answer, NeverCopied), f"{offset}: {answer}"
            assert answer.resume is not None
            ours = {at: record for at, record in target.items() if record in source.values()}
            assert next_of(ours, answer.resume) == next_of(source, offset), f"{offset}: {answer}"
    assert len([answer for answer in answers.values() if isinstance(answer, NeverCopied)]) > 100
    assert translated(mirror, [end]) == {end: Exact(ends(mirror.target, mirror.remote)[0], is_record=False)}

    back = translated(mirror, some(chance, target, 1_500), reverse=True)
    assert_none_unknown(back)
    foreign = {offset for offset, record in target.items() if record[1].startswith((b"foreign", b"more"))}
    for offset, answer in back.items():
        if offset in foreign:
            assert isinstance(answer, NeverCopied), f"{offset}: {answer}"
        else:
            assert isinstance(answer, Exact) and source[answer.offset] == target[offset], f"{offset}: {answer}"


def test_what_is_not_copied_yet_and_an_open_transaction(mirror: Mirror) -> None:
    """The end is a position only when nothing that could still be committed lies before it."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(50))
    carry(mirror.open())
    transaction = OpenTransaction(mirror.source, mirror.topic, mirror.topic, count=10)
    assert translated(mirror, [50, 60]) == {50: Exact(50, is_record=False), 60: NotYetCopied(10)}
    transaction.abort()
    wait_until(lambda: ends(mirror.source, mirror.topic)[0] == 61, "the marker is written")
    assert translated(mirror, [61]) == {61: Exact(50, is_record=False)}
    write(mirror.source, mirror.topic, samples(5))
    assert translated(mirror, [61, 63]) == {61: Exact(50, is_record=False), 63: NotYetCopied(13)}


def clean(bootstrap: str, topic: str) -> None:
    """Let the cleaner come once, for real, then keep it away."""
    set_configs(bootstrap, topic, COMPACTED)

    def is_cleaned() -> bool:
        write(bootstrap, topic, [Sample(b"tick", b"tick")])
        return count_records(bootstrap, topic) < (ends(bootstrap, topic)[0] - starts(bootstrap, topic)[0]) * 0.7

    wait_until(is_cleaned, f"the cleaner has cleaned {topic}", every=0.5)
    stop_cleaning(bootstrap, topic)


def test_a_compacted_topic_that_is_cleaned_after_the_copy(mirror: Mirror, chance: random.Random) -> None:
    """Both sides are cleaned at different moments, over three generations of the lane, one of them killed."""
    mirror.make_topic(config=COMPACTED | NEVER)

    def rounds(first: int, count: int, size: int = 80) -> None:
        for number in range(first, first + count):
            keys = chance.sample(range(300), size)
            write(mirror.source, mirror.topic, [Sample(b"round %d" % number, b"key-%d" % key) for key in keys], "lz4")

    rounds(0, 8)
    carry(mirror.open())
    rounds(8, 8)
    with Attempt(mirror.open()) as attempt:
        attempt.wait_for_position(ends(mirror.source, mirror.topic)[0])
        rounds(16, 3)
        attempt.wait_for_records(1)
        attempt.kill()
    carry(mirror.open())
    clean(mirror.source, mirror.topic)
    rounds(30, 6)
    carry(mirror.open())
    clean(mirror.target, mirror.remote)
    rounds(40, 6)
    carry(mirror.open())

    source, target = read(mirror.source, mirror.topic), read(mirror.target, mirror.remote)
    end = ends(mirror.source, mirror.topic)[0]
    assert len(source) < end
    answers = translated(mirror, some(chance, range(end), 1_500))
    assert_none_unknown(answers)
    exact = 0
    for offset, answer in answers.items():
        if offset in source and isinstance(answer, Exact):
            assert target[answer.offset] == source[offset], f"{offset}: {answer}"
            exact += 1
        elif offset in source:
            assert isinstance(answer, Gone) and answer.side == "target", f"{offset}: {answer}"
            assert source[offset] not in target.values(), f"{offset} is there, but was not found"
        else:
            assert position_of(answer) is not None or isinstance(answer, Gone), f"{offset}: {answer}"
    assert exact > 200
