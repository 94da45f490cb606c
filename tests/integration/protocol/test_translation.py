"""Exact translation on real logs: the record that an independent client reads at the answer is the record at the question."""

from __future__ import annotations

import json
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from heliograph.cli.main import main
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.log_ends import end_of
from heliograph.kafka.slot import Warm
from heliograph.kafka.translator import Translator
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
from heliograph.wire.mm2 import OffsetSync, encode_offset_sync
from tests.integration.protocol.harness import BATCH_BY_BATCH, Attempt, Mirror, carry, with_warm
from tests.support.compaction import COMPACTED, count_records, stop_cleaning
from tests.support.groups import commit
from tests.support.topics import create_topic, delete_records, ends, set_configs, starts, wait_until_stable
from tests.support.waiting import wait_until
from tests.support.writers import (
    OpenTransaction,
    Sample,
    producer,
    samples,
    send,
    write,
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


def next_of(records: list[tuple[int, Any]], offset: int) -> Any:
    """What a reader gets who stands at an offset."""
    at = bisect_left(records, (offset,))
    return records[at][1] if at < len(records) else None


def some(chance: random.Random, offsets: Iterable[int], count: int) -> list[int]:
    known = list(offsets)
    return sorted(chance.sample(known, min(count, len(known))))


def assert_none_unknown(answers: Mapping[int, Answer]) -> None:
    unknown = {offset: answer for offset, answer in answers.items() if isinstance(answer, NotKnown)}
    assert unknown == {}, f"{len(unknown)} of {len(answers)}, the first: {next(iter(unknown.items()))}"


@pytest.fixture
def chance() -> random.Random:
    return random.Random(20261116)


def keyed(chance: random.Random, count: int, number: int) -> list[Sample]:
    """Records that differ, of keys that come again and again."""
    return [Sample(b"%d:%d" % (number, place), b"key-%d" % chance.randrange(2_500)) for place in range(count)]


def write_in_transactions(mirror: Mirror, chance: random.Random, number: int, transactions: int) -> None:
    """Every third one is aborted."""
    client = producer(mirror.source, transactional_id=mirror.topic, linger_ms=5)
    client.init_transactions(30)
    for each in range(transactions):
        client.begin_transaction()
        send(client, mirror.topic, keyed(chance, 25, 1_000 * number + each))
        if each % 3 == 2:
            client.abort_transaction(30)
        else:
            client.commit_transaction(30)
    wait_until_stable(mirror.source, mirror.topic)


def history(mirror: Mirror, chance: random.Random) -> None:
    """Plain runs, markers, aborts, single records, two kills in the middle, and other people's records in the remote partition."""
    for number in range(3):
        write(mirror.source, mirror.topic, keyed(chance, 1_100, 10 * number), "lz4")
        write_in_transactions(mirror, chance, 10 * number + 1, 12)
        with Attempt(mirror.open(), BATCH_BY_BATCH) as attempt:
            attempt.wait_for_records(40)
            attempt.kill()
        others = [Sample(b"foreign %d" % place, b"foreign-%d" % place) for place in range(number, number + 4)]
        write(mirror.target, mirror.remote, others)
        write(mirror.source, mirror.topic, keyed(chance, 700, 10 * number + 2), batch_num_messages=1, linger_ms=0)
        write_in_transactions(mirror, chance, 10 * number + 3, 20)
        carry(mirror.open())


class Asked:
    """Random offsets of both sides, and whether an independent client reads at each answer what lies at the question."""

    def __init__(self, mirror: Mirror, chance: random.Random, copied: tuple[int, int]) -> None:
        """`copied`: where the source and its copy ended when both were the same; what makes the cleaner come lies behind."""
        self._mirror = mirror
        self._chance = chance
        self.end, remote_end = copied
        source, target = read(mirror.source, mirror.topic), read(mirror.target, mirror.remote)
        self.source = {at: record for at, record in source.items() if at < self.end}
        self.target = {at: record for at, record in target.items() if at < remote_end}
        self._ours = {at: record for at, record in self.target.items() if not record[1].startswith(b"foreign")}
        self._originals, self._copies = set(self.source.values()), set(self._ours.values())
        self._left = [(at, record) for at, record in self.source.items() if record in self._copies]
        self._common = [(at, record) for at, record in self._ours.items() if record in self._originals]

    def forth(self, count: int) -> Counter[str]:
        answers = translated(self._mirror, some(self._chance, range(self.end), count))
        assert_none_unknown(answers)
        for offset, answer in answers.items():
            if offset in self.source and self.source[offset] in self._copies:
                assert isinstance(answer, Exact) and self.target[answer.offset] == self.source[offset], (
                    f"{offset}: {answer}"
                )
                continue
            assert not (isinstance(answer, Exact) and answer.is_record), f"{offset}: {answer}"
            position = position_of(answer)
            assert position is not None, f"{offset}: {answer}"
            assert next_of(self._common, position) == next_of(self._left, offset), f"{offset}: {answer}"
        return Counter(type(answer).__name__ for answer in answers.values())

    def back(self, count: int) -> Counter[str]:
        answers = translated(self._mirror, some(self._chance, self.target, count), reverse=True)
        assert_none_unknown(answers)
        for offset, answer in answers.items():
            if offset not in self._ours:
                assert isinstance(answer, NeverCopied), f"{offset}: {answer}"
            elif self.target[offset] in self._originals:
                assert isinstance(answer, Exact) and self.source[answer.offset] == self.target[offset], (
                    f"{offset}: {answer}"
                )
            else:
                assert isinstance(answer, Gone), f"{offset}: {answer}"
        return Counter(type(answer).__name__ for answer in answers.values())


def test_ten_thousand_offsets_over_aborts_restarts_foreign_records_and_two_cleanings(
    mirror: Mirror, chance: random.Random
) -> None:
    """The lane was carried by processes that are gone; each side is cleaned after the copy, and asked again."""
    mirror.make_topic()
    history(mirror, chance)
    copied = (ends(mirror.source, mirror.topic)[0], ends(mirror.target, mirror.remote)[0])
    whole = Asked(mirror, chance, copied)
    assert whole.end > 7_500
    seen = whole.forth(4_000) + whole.back(1_000)
    assert seen["NeverCopied"] > 300 and seen["Exact"] > 4_000
    end = {copied[0]: Exact(copied[1], is_record=False)}
    assert translated(mirror, end) == end

    clean(mirror.source, mirror.topic)
    once = Asked(mirror, chance, copied)
    assert len(once.source) < len(whole.source) * 0.7
    seen = once.forth(2_000) + once.back(500)
    assert seen["Gone"] > 300 and seen["Exact"] > 500

    clean(mirror.target, mirror.remote)
    twice = Asked(mirror, chance, copied)
    assert len(twice.target) < len(whole.target) * 0.7
    seen = twice.forth(2_000) + twice.back(500)
    assert seen["Gone"] > 300 and seen["Exact"] > 500


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


def test_logs_that_were_cut_off_at_their_beginning(mirror: Mirror) -> None:
    """Retention on both sides, at different places: what is left is exact, and of the rest it is said which side lost it."""
    mirror.make_topic()
    write_transactions(mirror.source, mirror.topic, mirror.topic, transactions=9)
    carry(mirror.open())
    write(mirror.target, mirror.remote, [Sample(b"foreign")])
    write_transactions(mirror.source, mirror.topic, mirror.topic, transactions=9)
    carry(mirror.open())
    source, target = read(mirror.source, mirror.topic), read(mirror.target, mirror.remote)
    whole = translated(mirror, source)
    assert all(isinstance(answer, Exact) for answer in whole.values())
    delete_records(mirror.source, mirror.topic, 0, 100)
    delete_records(mirror.target, mirror.remote, 0, 150)
    for offset, answer in translated(mirror, source).items():
        before = whole[offset]
        assert isinstance(before, Exact)
        if offset >= 100 and before.offset >= 150:
            assert answer == before, f"{offset}: {answer}"
            assert target[before.offset] == source[offset]
        elif offset >= 100:
            assert isinstance(answer, Gone) and answer.side == "target", f"{offset}: {answer}"
        else:
            assert isinstance(answer, Gone) and answer.side == "source", f"{offset}: {answer}"


def test_the_command_gives_the_answer_and_mirrormakers_beside_it(
    mirror: Mirror, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.make_topic(partitions=2)
    write(mirror.source, mirror.topic, samples(100, partitions=1))
    write_transactions(mirror.source, mirror.topic, mirror.topic, transactions=3)
    alone = mirror.open()
    carry(alone)
    syncs = create_topic(mirror.source, f"mm2-offset-syncs.{mirror.topic}t.internal")
    pairs = [encode_offset_sync(OffsetSync(mirror.topic, 0, offset, offset)) for offset in (0, 40)]
    write(mirror.source, syncs, [Sample(value, key) for key, value in pairs])
    write(mirror.source, syncs, [Sample(b"not a sync", b"not a sync")])
    commit(mirror.source, "readers", {(mirror.topic, 0): 41})
    file = tmp_path / "mm2.properties"
    file.write_text(
        f"clusters = {mirror.topic}s, {mirror.topic}t\n{mirror.topic}s.bootstrap.servers = {mirror.source}\n"
        f"{mirror.topic}t.bootstrap.servers = {mirror.target}\n{mirror.flow}.enabled = true\n"
    )
    flow = ["translate", str(file), "--flow", mirror.flow]
    lane = ["--topic", mirror.topic, "--partition", "0"]

    def says(*options: str) -> tuple[int, str]:
        code = main([*flow, *options])
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    here, there = f"{mirror.topic}-0", f"{mirror.remote}-0"
    assert says(*lane, "--offset", "40") == (0, f"{here} 40 -> {there} 40, exact; MirrorMaker 2: 40\n")
    assert says("--group", "readers") == (0, f"{here} 41 -> {there} 41, exact; MirrorMaker 2: 41\n")
    code, text = says(*lane, "--offset", "45", "--json")
    assert (code, json.loads(text)[0]["position"], json.loads(text)[0]["mm2_offset"]) == (0, 45, 41)
    back = ["--topic", mirror.remote, "--partition", "0", "--offset", "3", "--reverse"]
    assert says(*back) == (0, f"{there} 3 -> {here} 3, exact\n")
    code, text = says(*lane, "--offset", "999")
    assert code == 1 and "beyond the source's end" in text
    for options, fault in (
        (["--topic", "nobody", "--partition", "0", "--offset", "1"], "the topic does not exist"),
        (["--topic", mirror.topic, "--partition", "7", "--offset", "1"], "there is no partition 7"),
        (["--topic", syncs, "--partition", "0", "--offset", "1"], "is not a lane"),
        (["--group", "nobody"], "group 'nobody' has committed no offset"),
    ):
        code, text = says(*options)
        assert code == 1 and fault in text, text
    code, text = says(*lane, "--offset", "-3")
    assert code == 2 and "offsets begin at 0" in text, text


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


def test_records_that_were_skipped_are_named_and_their_neighbours_are_exact(mirror: Mirror) -> None:
    mirror.policies = {"on.bad.record": "skip"}
    mirror.make_topic()
    create_topic(mirror.target, mirror.remote, config={"cleanup.policy": "compact"})
    good = [Sample(b"good %d" % number, b"k%d" % number) for number in range(60)]
    write(
        mirror.source, mirror.topic, [*good[:20], Sample(b"bad", None), *good[20:40], Sample(b"bad", None), *good[40:]]
    )
    carry(mirror.open())
    source, target = read(mirror.source, mirror.topic), read(mirror.target, mirror.remote)
    for offset, answer in translated(mirror, range(62)).items():
        if offset in (20, 41):
            assert isinstance(answer, NeverCopied) and "left out" in answer.reason, f"{offset}: {answer}"
            assert answer.resume is not None and target[answer.resume] == source[offset + 1]
        else:
            assert isinstance(answer, Exact) and target[answer.offset] == source[offset], f"{offset}: {answer}"
    back = translated(mirror, target, reverse=True)
    assert all(isinstance(answer, Exact) and source[answer.offset] == target[at] for at, answer in back.items()), back
