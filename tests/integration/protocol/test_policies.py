"""The options on.*, each value with its fault made real on brokers: what is written, what is told, what a person reads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.kafka.common_end import common_end
from heliograph.kafka.slot import Warm, now_ms
from heliograph.model.events import EventKind
from heliograph.model.lanes import LaneState, LedgerEntry
from heliograph.operations.compare import compare_topics
from heliograph.replication.policies import dead_letter_topic
from tests.integration.protocol.harness import (
    QUICK,
    SILENT,
    UNCLEAN,
    Attempt,
    Mirror,
    carry,
    elect_uncleanly,
    with_warm,
)
from tests.support.clusters import ClusterFactory
from tests.support.leaders import wait_until_in_sync
from tests.support.mirror import word
from tests.support.reading import messages, values
from tests.support.topics import admin, create_topic, delete_records, delete_topic, ends, topic_names
from tests.support.waiting import wait_until
from tests.support.writers import Sample, samples, write, write_dense

DAY_MS = 86_400_000


def kinds(attempt: Attempt) -> list[str]:
    return [event.kind for event in attempt.events]


# -- on.source.reset ----------------------------------------------------------------------------------------------------


def test_a_source_made_anew_under_load_is_copied_after_what_was_there(mirror: Mirror) -> None:
    """restart: the attempt that runs waits for the driver, whose next plan opens a generation from the new topic's start."""
    mirror.policies = {"on.source.reset": "restart"}
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(50))
    opened = mirror.open()
    with Attempt(opened, QUICK) as attempt, under_load(mirror):
        attempt.wait_for_records(50)
        delete_topic(mirror.source, mirror.topic)
        wait_until(lambda: mirror.topic not in topic_names(mirror.source), "the topic is gone")
        run = attempt.life.run
        attempt.wait_for(
            lambda: run.state is not LaneState.FOLLOWING and not run.queue and not run.in_flight,
            "what was read of the old topic is on the target",
        )
        old = ends(mirror.target, mirror.remote)[0]
        mirror.make_topic()
        attempt.wait_parked("on.source.reset = restart")
        attempt.kill()
    anew = list(samples(30, seed=2))
    write(mirror.source, mirror.topic, anew)
    again = mirror.open()
    entry = again.entries[0]
    assert (entry.generation, entry.source_next, entry.target_next) == (1, 0, old)
    assert [event.kind for event in again.flow.events] == [EventKind.SOURCE_RESET]
    carry(again)
    everything = values(mirror.source, mirror.topic)
    assert everything[-30:] == [record.value for record in anew]
    assert values(mirror.target, mirror.remote)[old:] == everything


def test_the_position_in_a_topic_that_is_gone_is_not_handed_over_to_its_successor(mirror: Mirror) -> None:
    """The task before drained in the old generation; at its offset 10 the new topic has other records, 0 to 9 before them."""
    mirror.policies = {"on.source.reset": "restart"}
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(10))
    before = carry(mirror.open())
    delete_topic(mirror.source, mirror.topic)
    wait_until(lambda: mirror.topic not in topic_names(mirror.source), "the topic is gone")
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(30, seed=2))
    again = mirror.open()
    with Attempt(again, QUICK, handed={mirror.lane_key: before.life.run.acked}) as attempt:
        attempt.wait_for_position(30)
        attempt.stop()
    assert values(mirror.target, mirror.remote)[10:] == values(mirror.source, mirror.topic)


def test_source_and_copy_agree_up_to_an_offset_if_the_record_before_it_is_the_same(mirror: Mirror) -> None:
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(10))
    opened = mirror.open()
    carry(opened)
    entry = mirror.book().latest(opened.entries[0].lane)
    assert entry is not None
    lane, settings = opened.plan.lanes[0], opened.plan.settings

    async def agree(warm: Warm, known: LedgerEntry) -> list[int]:
        clients = (warm.client(settings.source), warm.client(settings.target))
        nodes = ((await clients[0].metadata([mirror.topic]))[mirror.topic].leaders[0].node, 1)
        return [offset for offset in (0, 1, 7, 10, 11) if await common_end(lane, known, clients, nodes, offset)]

    shifted = replace(entry, target_start=1, anchors=())
    assert with_warm(lambda warm: agree(warm, entry)) == [1, 7, 10]
    assert with_warm(lambda warm: agree(warm, shifted)) == [], "another record stands there"


class under_load:  # noqa: N801  reads as a sentence where it is used
    """Somebody writes into the source topic all the time; what meets the topic while it is gone is refused, and that is fine."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def _write(self) -> None:
        number = 0
        while not self._end.wait(0.02):
            number += 1
            try:
                write(self._mirror.source, self._mirror.topic, [Sample(b"load %d" % number)], message_timeout_ms=500)
            except (AssertionError, KafkaException):
                continue

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *about: object) -> None:
        self._end.set()
        self._thread.join()


def test_a_source_cut_back_and_grown_again_by_an_unclean_election(new_cluster: ClusterFactory, mirror: Mirror) -> None:
    """P10.2, case 15a: records 30 to 69 were copied and are gone, others stand in their place. First fail, then restart.

    Three lanes (L7): of one the ledger knows 70 records; one was killed before it wrote more than 30 down, where both still
    agree; and one before it wrote more than 50 down, which the source no longer has.
    """
    source = new_cluster("S", brokers=2, config=UNCLEAN)
    known, killed, between = (Mirror(source.bootstrap, mirror.target, name) for name in (mirror.topic, word(), word()))
    kept, lost, other = list(samples(30)), list(samples(40, seed=2)), list(samples(60, seed=3))
    client, opened = admin(source.bootstrap), {}
    for own in (known, killed, between):
        topic = NewTopic(own.topic, 1, replica_assignment=[[1, 2]], config={})
        client.create_topics([topic])[own.topic].result(30)
        write(source.bootstrap, own.topic, kept)
        opened[own] = own.open()
        carry(opened[own])
    wait_until_in_sync(source.bootstrap, {1, 2}, known.topic, killed.topic)  # a slow one is left out for a while
    source.kill(2)  # this follower has 30
    for own, records, settings in (
        (known, lost, QUICK),
        (killed, lost, SILENT),
        (between, lost[:20], QUICK),
        (between, lost[20:], SILENT),
    ):
        write(source.bootstrap, own.topic, records, acks=1)
        with Attempt(opened[own], settings) as attempt:
            attempt.wait_for_records(len(records))
            attempt.stop() if settings is QUICK else attempt.kill()
    elect_uncleanly(source, lambda: [_end(source, own.topic) for own in opened] == [30, 30, 30])
    for own, before in opened.items():
        write(source.bootstrap, own.topic, other, acks=1)
        with Attempt(before, QUICK) as attempt:
            reason = attempt.wait_parked("on.source.reset = fail")
            assert "up to 30" in reason and "up to 70" in reason
            assert kinds(attempt) == [EventKind.SOURCE_RESET]
        assert ends(own.target, own.remote)[0] == 70, "nothing is written"
        own.policies = {"on.source.reset": "restart"}
        last = carry(own.open(), {own.lane_key: 90})
        assert (last.life.run.acked.generation, last.life.run.acked.source_start) == (1, 30)
        assert kinds(last) == [EventKind.SOURCE_RESET]
        expected = [record.value for record in (*kept, *lost, *other)]
        assert values(own.target, own.remote) == expected


def _end(cluster: EmbeddedCluster, topic: str) -> int | None:
    """None while no leader answers."""
    try:
        return ends(cluster.bootstrap, topic, within=3.0).get(0)
    except (TimeoutError, KafkaException):
        return None


# -- on.data.loss -------------------------------------------------------------------------------------------------------


def test_deleted_records_park_the_lane_with_their_exact_number(mirror: Mirror) -> None:
    """fail, DeleteRecords: nothing is written, every later attempt says the same, continue goes on."""
    mirror.policies = {"on.data.loss": "fail"}
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(10))
    opened = mirror.open()
    carry(opened)
    write(mirror.source, mirror.topic, samples(30, seed=2))
    delete_records(mirror.source, mirror.topic, 0, 23)
    for _ in range(2):
        with Attempt(opened, QUICK) as attempt:
            reason = attempt.wait_parked("13 offsets")
            assert "(10 to 22)" in reason and "on.data.loss = continue" in reason
            assert kinds(attempt) == [EventKind.DATA_LOSS]
    assert ends(mirror.target, mirror.remote)[0] == 10
    mirror.policies = {}
    carry(mirror.open())
    assert ends(mirror.target, mirror.remote)[0] == 27


# -- on.target.loss -----------------------------------------------------------------------------------------------------


def test_a_target_that_deleted_what_the_ledger_did_not_know(new_cluster: ClusterFactory, mirror: Mirror) -> None:
    """DeleteRecords beyond our records, and a restart: no state, no headers. First fail, then recopy from the ledger on."""
    target = new_cluster("T")
    own = Mirror(mirror.source, target.bootstrap, mirror.topic)
    own.policies = {"on.target.loss": "fail"}
    own.make_topic()
    write(own.source, own.topic, samples(50))
    opened = own.open()
    with Attempt(opened, SILENT) as attempt:
        attempt.wait_for_records(50)
        attempt.kill()
    delete_records(target.bootstrap, own.remote, 0, 50)
    target.terminate(1)
    target.restart(1)
    with Attempt(opened, SILENT) as attempt:
        attempt.wait_parked("the position is unknown (on.target.loss = fail)")
        assert kinds(attempt) == [EventKind.TARGET_LOSS]
    assert ends(target.bootstrap, own.remote)[0] == 50
    own.policies = {"on.target.loss": "recopy"}
    last = carry(own.open())
    assert EventKind.TARGET_LOSS in kinds(last)
    assert (ends(target.bootstrap, own.remote)[0], last.life.run.acked.generation) == (100, 1)
    own.assert_identical(50)


def test_a_remote_topic_made_anew_is_refused_where_the_policy_says_so(mirror: Mirror) -> None:
    mirror.policies = {"on.target.loss": "fail"}
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(30))
    opened = mirror.open()
    carry(opened)
    delete_topic(mirror.target, mirror.remote)
    create_topic(mirror.target, mirror.remote)
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_parked("on.target.loss = fail")
    again = mirror.open()
    assert "on.target.loss = fail" in again.flow.refused[mirror.lane_key]
    assert [event.kind for event in again.flow.events] == [EventKind.TARGET_LOSS]
    assert ends(mirror.target, mirror.remote)[0] == 0


def test_a_batch_of_ours_in_an_emptied_target_does_not_stand_for_what_is_lost(mirror: Mirror) -> None:
    """P3.5, case 2b: the target took 30 to 39 into an empty log. By its number alone the lane would go on at 40."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(40))
    opened = mirror.open()
    entry = opened.entries[0]
    mirror.write_entry(replace(entry, source_next=30, target_next=30, sequence_next=30))
    assert mirror.write_as(entry.identity, 30, [b"stray"] * 10).error_code == 0
    last = carry(opened)
    assert kinds(last) == [EventKind.TARGET_LOSS] and "stray batch" in last.notes
    assert values(mirror.target, mirror.remote)[10:] == values(mirror.source, mirror.topic)


# -- on.foreign.writer --------------------------------------------------------------------------------------------------


def test_an_intruder_in_the_remote_topic_is_named_and_the_copy_goes_on(mirror: Mirror) -> None:
    """continue: seen at attach and by acknowledgements; the copy itself stays exact."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(10))
    opened = mirror.open()
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_for_records(10)
        write(mirror.target, mirror.remote, [Sample(b"intruder 1"), Sample(b"intruder 2")])
        write(mirror.source, mirror.topic, samples(5, seed=2))
        attempt.wait_for_records(15)
        assert kinds(attempt) == [EventKind.FOREIGN_WRITER]
        assert "2 records" in attempt.notes and "offset 10" in attempt.notes
        assert attempt.life.run.counts.foreign == 2
        attempt.stop()
    write(mirror.target, mirror.remote, [Sample(b"intruder 3")])
    write(mirror.source, mirror.topic, samples(5, seed=3))
    last = carry(opened, {mirror.lane_key: 20})
    assert kinds(last) == [EventKind.FOREIGN_WRITER] and "offset 17" in last.notes
    copied = [value for value in values(mirror.target, mirror.remote) if not value.startswith(b"intruder")]
    assert copied == values(mirror.source, mirror.topic)


def test_an_intruder_in_the_remote_topic_stops_the_lane_until_a_person_lets_it_go_on(mirror: Mirror) -> None:
    """fail: every later attempt meets the intruder's record again; with continue nothing is lost or repeated."""
    mirror.policies = {"on.foreign.writer": "fail"}
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(10))
    opened = mirror.open()
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_for_records(10)
        write(mirror.target, mirror.remote, [Sample(b"intruder")])
        write(mirror.source, mirror.topic, samples(5, seed=2))
        assert "from offset 10" in attempt.wait_parked("on.foreign.writer = fail")
        assert kinds(attempt) == [EventKind.FOREIGN_WRITER]
        attempt.stop()
    end = ends(mirror.target, mirror.remote)[0]
    write(mirror.source, mirror.topic, samples(5, seed=3))
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_parked("on.foreign.writer = fail")
    assert ends(mirror.target, mirror.remote)[0] == end
    mirror.policies = {}
    carry(mirror.open())
    copied = [value for value in values(mirror.target, mirror.remote) if value != b"intruder"]
    assert copied == values(mirror.source, mirror.topic)


# -- on.bad.record ------------------------------------------------------------------------------------------------------


Fault = tuple[dict[str, str], Callable[[int], Sample], str, str]
"""The remote topic's configs, the record that they refuse, the cause and the cure in the reason."""

FAULTS: dict[str, Fault] = {
    "too large": (
        {"max.message.bytes": "3000"},
        lambda number: Sample(b"bad %d" % number + bytes(5_000), b"k"),
        "takes 3000",
        "max.message.bytes",
    ),
    "no key": (
        {"cleanup.policy": "compact"},
        lambda number: Sample(b"bad %d" % number, None),
        "no key",
        "cleanup.policy",
    ),
    "too old": (
        {"message.timestamp.before.max.ms": str(DAY_MS)},
        lambda number: Sample(b"bad %d" % number, b"k", timestamp_ms=now_ms() - 9 * DAY_MS),
        "too old",
        "message.timestamp.before.max.ms",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("policy", ["park", "skip", "dead-letter"])
def test_a_record_that_the_target_refuses(mirror: Mirror, fault: str, policy: str) -> None:
    """Inside batches of good ones: those before it are copied; after skip and dead-letter those behind it too, once."""
    config, bad, cause, cure = FAULTS[fault]
    mirror.policies = {"on.bad.record": policy}
    mirror.make_topic()
    create_topic(mirror.target, mirror.remote, config=config)
    good = [Sample(b"good %d" % number, b"k%d" % number) for number in range(300)]
    mixed = [*good[:100], bad(1), *good[100:200], bad(2), bad(3), *good[200:]]
    write_dense(mirror.source, mirror.topic, mixed, codec="none", size=6_000 if fault == "too large" else 256 << 10)
    opened = mirror.open()
    if policy == "park":
        with Attempt(opened, QUICK) as attempt:
            reason = attempt.wait_parked("on.bad.record = park")
            assert f"record 100 of {mirror.topic}-0" in reason and cause in reason and cure in reason
            assert attempt.life.run.position() == 100
            assert kinds(attempt)[-1] == EventKind.BAD_RECORD
        assert ends(mirror.target, mirror.remote)[0] == 100
        return
    last = carry(opened)
    assert values(mirror.target, mirror.remote) == [record.value for record in good]
    assert last.life.run.counts.skipped == {policy: 3}
    told = [event for event in last.events if event.kind == EventKind.BAD_RECORD]
    assert f"record 100 of {mirror.topic}-0" in told[0].reason and cause in told[0].reason
    assert cure in told[0].what_to_do
    letters = dead_letter_topic(mirror.remote)
    if policy == "skip":
        assert letters not in topic_names(mirror.target)
        return
    kept = messages(mirror.target, letters)
    assert [message.value()[:5] for message in kept] == [b"bad 1", b"bad 2", b"bad 3"]
    headers = dict(kept[0].headers())
    assert headers["heliograph.source.topic"] == mirror.topic.encode()
    assert (headers["heliograph.source.partition"], headers["heliograph.source.offset"]) == (b"0", b"100")
    assert cause.encode() in headers["heliograph.cause"] and cure.encode() in headers["heliograph.cure"]


def test_after_a_skip_and_a_kill_nothing_is_lost_or_repeated(mirror: Mirror) -> None:
    """P7: the skipped record has no number; the next attempt counts in the generation behind it."""
    mirror.policies = {"on.bad.record": "skip"}
    mirror.make_topic()
    create_topic(mirror.target, mirror.remote, config={"cleanup.policy": "compact"})
    good = [Sample(b"good %d" % number, b"k%d" % number) for number in range(60)]
    write(mirror.source, mirror.topic, [*good[:20], Sample(b"bad", None), *good[20:40]])
    opened = mirror.open()
    with Attempt(opened, SILENT) as attempt:
        attempt.wait_for_position(41)
        attempt.kill()
    write(mirror.source, mirror.topic, good[40:])
    carry(opened, {mirror.lane_key: 61})
    assert values(mirror.target, mirror.remote) == [record.value for record in good]
    found = compare_topics(mirror.source, mirror.target, {mirror.topic: mirror.remote})
    assert len(found.differences) == 1


def test_records_that_arrive_while_a_lane_attaches_again_do_not_hide_those_before_them(mirror: Mirror) -> None:
    """A poll that was on its way when the lane stopped answers for an offset that the lane has gone back from."""
    mirror.policies = {"on.bad.record": "skip"}
    mirror.make_topic()
    create_topic(mirror.target, mirror.remote, config={"cleanup.policy": "compact"})
    sent = [Sample(b"good %d" % number, b"k%d" % number) for number in range(40)]
    write(mirror.source, mirror.topic, sent)
    opened = mirror.open()
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_for_records(40)
        for number in range(5):
            burst = [Sample(b"burst %d %d" % (number, place), b"b%d-%d" % (number, place)) for place in range(20)]
            write(mirror.source, mirror.topic, [*burst[:10], Sample(b"bad", None), *burst[10:]])
            trickle = [Sample(b"drop %d %d" % (number, place), b"d%d-%d" % (number, place)) for place in range(8)]
            for drop in trickle:
                write(mirror.source, mirror.topic, [drop], linger_ms=0)
            sent += [*burst, *trickle]
        attempt.wait_for_position(40 + 5 * 29)
        attempt.stop()
    assert values(mirror.target, mirror.remote) == [record.value for record in sent]
