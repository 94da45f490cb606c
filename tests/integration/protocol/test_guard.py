"""P3, P5, P6: windows, guards and expiry: what keeps a record from landing twice, or from being passed over."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

from heliograph.kafka.slot import now_ms
from heliograph.model.lanes import Guard, Identity
from heliograph.wire.record_batch import read_header
from tests.integration.protocol.harness import BATCH_BY_BATCH, QUICK, SILENT, Attempt, Mirror, Opened, carry
from tests.support.batches import read_batches
from tests.support.clusters import ClusterFactory
from tests.support.topics import broker_config, create_topic, ends, set_broker_config, set_configs
from tests.support.waiting import wait_until
from tests.support.writers import Sample, producer, samples, send, write, write_old_records, write_single_record_batches

MEMORY = "producer.id.expiration.ms"
FORGETFUL = {MEMORY: "2000", "producer.id.expiration.check.interval.ms": "200"}
"""A target that forgets a producer after two seconds."""


def with_limit(opened: Opened, max_batch_bytes: int) -> Opened:
    """The plan believes in this limit of the remote topic."""
    lanes = tuple(replace(lane, max_batch_bytes=max_batch_bytes) for lane in opened.plan.lanes)
    return replace(opened, plan=replace(opened.plan, lanes=lanes))


def set_limit(mirror: Mirror, size: int) -> None:
    set_configs(mirror.target, mirror.remote, {"max.message.bytes": str(size)})
    time.sleep(0.3)


def large_then_small(mirror: Mirror) -> None:
    """Two batches: one of 60 kB, then a small one, both above the merge size."""
    write(mirror.source, mirror.topic, [Sample(b"L%d" % n * 3000) for n in range(10)])
    write(mirror.source, mirror.topic, [Sample(b"S%d" % n * 300) for n in range(10)])


def large_then_small_at_once(mirror: Mirror) -> None:
    """In one transaction: a reader of committed records gets both in one answer."""
    client = producer(mirror.source, transactional_id=mirror.topic, linger_ms=5)
    client.init_transactions(30)
    client.begin_transaction()
    send(client, mirror.topic, [Sample(b"L%d" % n * 3000) for n in range(10)])
    send(client, mirror.topic, [Sample(b"S%d" % n * 300) for n in range(10)])
    client.commit_transaction(30)


def test_on_an_empty_state_a_refused_first_batch_keeps_the_second_from_landing(mirror: Mirror) -> None:
    """P3.2, case 9b: window 1 until the first acknowledgement; else the second lands at 0 and the first is lost."""
    mirror.make_topic()
    large_then_small(mirror)
    opened = mirror.open()
    set_limit(mirror, 20_000)
    with Attempt(with_limit(opened, 1_048_588), replace(SILENT, merge_below=0)) as attempt:
        attempt.wait_for(lambda: attempt.life.run.counts.refused >= 1, "the first batch is refused")
        attempt.kill()
    assert attempt.records == 0
    assert ends(mirror.target, mirror.remote)[0] == 0, "the second batch landed before the first"
    set_limit(mirror, 1_048_588)
    carry(opened)
    mirror.assert_identical(20)


def test_a_batch_over_a_limit_that_was_lowered_is_split_by_the_record_path(mirror: Mirror) -> None:
    """P4, E10: not appended; that batch is opened and goes on in pieces."""
    mirror.make_topic()
    large_then_small(mirror)
    opened = mirror.open()
    set_limit(mirror, 20_000)
    carry(with_limit(opened, 1_048_588))
    mirror.assert_identical(20)


def test_an_idle_lane_that_the_target_forgot_begins_again_with_one_in_flight(
    new_cluster: ClusterFactory, mirror: Mirror
) -> None:
    """P3.2 (idle lane), P6.2, case 9b: the state expired while nothing came; a refused batch must hold up the next one."""
    target = new_cluster("T", config=FORGETFUL)
    own = Mirror(mirror.source, target.bootstrap, mirror.topic)
    own.make_topic()
    write(own.source, own.topic, samples(10))
    opened = own.open()
    identity = opened.entries[0].identity
    with Attempt(with_limit(opened, 1_048_588), replace(QUICK, merge_below=0)) as attempt:
        attempt.wait_for_records(10)
        wait_until(lambda: identity.producer_id not in own.producers(), "the target forgot the producer")
        set_limit(own, 20_000)
        large_then_small_at_once(own)
        attempt.wait_for(lambda: attempt.life.run.counts.refused >= 1, "the large batch is refused")
        attempt.kill()
    landed = ends(own.target, own.remote)[0]
    set_limit(own, 1_048_588)
    write(own.source, own.topic, samples(10, seed=2))
    carry(opened, {own.lane_key: 41})
    own.assert_identical(40)
    assert landed == 10, "the second batch landed before the first"


def test_an_idle_lane_expires_and_the_next_append_goes_on_exactly(new_cluster: ClusterFactory, mirror: Mirror) -> None:
    """P6.2, P2.3d: the same attempt, and a new one, go on at the right number though the target forgot the last."""
    target = new_cluster("T", config=FORGETFUL)
    own = Mirror(mirror.source, target.bootstrap, mirror.topic)
    own.make_topic()
    write(own.source, own.topic, samples(10))
    opened = own.open()
    identity = opened.entries[0].identity
    assert opened.plan.expiration_ms == 2_000, "the option is read from the target"
    with Attempt(opened, SILENT) as attempt:
        attempt.wait_for_records(10)
        wait_until(lambda: identity.producer_id not in own.producers(), "the target forgot the producer")
        write(own.source, own.topic, samples(10, seed=2))
        attempt.wait_for_records(20)
        attempt.kill()
    wait_until(lambda: identity.producer_id not in own.producers(), "the target forgot the producer")
    write(own.source, own.topic, samples(10, seed=3))
    carry(opened, {own.lane_key: 30})
    # By the log: the target may have forgotten again what it knew.
    last = read_header(read_batches(own.target, own.remote)[-1], 0)
    assert (last.producer_id, last.base_sequence + last.last_offset_delta) == (identity.producer_id, 29)
    own.assert_identical(30)


def test_a_lost_ledger_is_noticed_though_the_target_forgot_the_producer(
    new_cluster: ClusterFactory, mirror: Mirror
) -> None:
    """P1.6: the partition *holds batches* of the flow's id; the leader's memory of it may be gone."""
    target = new_cluster("T", config=FORGETFUL)
    own = Mirror(mirror.source, target.bootstrap, mirror.topic)
    own.make_topic()
    write(own.source, own.topic, samples(10))
    opened = own.open()
    carry(opened)
    wait_until(lambda: not own.producers(), "the target forgot the producer")
    own.erase(opened)
    again = own.open()
    assert "the ledger was lost" in again.flow.refused.get(own.lane_key, "nothing was refused")


def test_fresh_data_is_guarded_by_the_broker_and_may_overlap(mirror: Mirror) -> None:
    """P6.1, P5.1: the last batch is young: a second attempt goes on without anybody's word."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(10))
    opened = mirror.open()
    carry(opened)
    write(mirror.source, mirror.topic, samples(10, seed=2))
    with Attempt(opened, QUICK, alone=False) as attempt:
        attempt.wait_for_records(10)
        assert attempt.life.guard is Guard.BROKER
        attempt.stop()
    mirror.assert_identical(20)


def test_old_data_is_exclusive_and_waits_until_the_last_attempt_is_known_dead(mirror: Mirror) -> None:
    """P6.1, P5.2, case 5a: decided by the timestamps of the records, not by when they were written."""
    mirror.make_topic(config={"retention.ms": "-1"})
    write_old_records(mirror.source, mirror.topic, samples(10), now_ms(), timedelta(days=3))
    opened = mirror.open()
    carry(opened)
    write_old_records(mirror.source, mirror.topic, samples(10, seed=2), now_ms(), timedelta(days=3))
    with Attempt(opened, QUICK, alone=False) as attempt:
        attempt.wait_waiting("known dead")
        assert attempt.life.guard is Guard.EXCLUSIVE
        time.sleep(0.5)
        assert attempt.records == 0
        attempt.tell_alone()
        attempt.wait_for_records(10)
        attempt.stop()
    mirror.assert_identical(20)


def test_old_records_that_follow_fresh_ones_wait_until_no_other_attempt_is_left(mirror: Mirror) -> None:
    """M3, P6.1: attached with the broker's guard, which the next records take away."""
    mirror.make_topic(config={"retention.ms": "-1"})
    write(mirror.source, mirror.topic, samples(10))
    opened = mirror.open()
    carry(opened)
    write(mirror.source, mirror.topic, samples(10, seed=2))
    with Attempt(opened, QUICK, alone=False) as one, Attempt(opened, QUICK, alone=False) as two:
        for attempt in (one, two):
            attempt.wait_for(lambda of=attempt: of.life.run.fetch_offset >= 20, "both follow")
        write_old_records(mirror.source, mirror.topic, samples(10, seed=3), now_ms(), timedelta(days=3))
        for attempt in (one, two):
            attempt.wait_reason("older than the target remembers: waiting until the last attempt is known dead")
        assert ends(mirror.target, mirror.remote)[0] == 20
        two.stop()
        one.tell_alone()
        one.wait_for_position(30)
        assert one.life.guard is Guard.EXCLUSIVE
        write(mirror.source, mirror.topic, samples(10, seed=4))
        one.wait_for_position(40)
        assert one.life.guard is Guard.BROKER, "a fresh record restores the guard"
        one.stop()
    mirror.assert_identical(40)


def test_a_later_epoch_that_the_ledger_does_not_know_parks_the_lane(mirror: Mirror) -> None:
    """L5, P2.3b: someone writes under this flow's producer id, and no generation explains it."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(10))
    opened = mirror.open()
    carry(opened)
    ours = opened.entries[0].identity
    assert mirror.write_as(Identity(ours.producer_id, ours.producer_epoch + 5), 0, [b"not ours"]).error_code == 0
    write(mirror.source, mirror.topic, samples(10, seed=2))
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_parked("identity conflict")
        attempt.kill()
    assert ends(mirror.target, mirror.remote)[0] == 11


def test_a_target_with_its_own_clock_guards_old_data(mirror: Mirror) -> None:
    """P6.1: LogAppendTime: the broker's memory is as young as the append."""
    mirror.make_topic(config={"retention.ms": "-1"})
    create_topic(mirror.target, mirror.remote, config={"message.timestamp.type": "LogAppendTime"})
    write_old_records(mirror.source, mirror.topic, samples(10), now_ms(), timedelta(days=3))
    opened = mirror.open()
    carry(opened)
    write_old_records(mirror.source, mirror.topic, samples(10, seed=2), now_ms(), timedelta(days=3))
    with Attempt(opened, SILENT, alone=False) as attempt:
        attempt.wait_for_records(10)
        assert attempt.life.guard is Guard.BROKER
        attempt.kill()
    carry(opened)
    assert ends(mirror.target, mirror.remote)[0] == 20


def test_a_lane_is_guarded_no_longer_than_the_broker_remembers_that_forgets_soonest(
    new_cluster: ClusterFactory, mirror: Mirror
) -> None:
    """P6.1, M10: any broker may lead the remote partition next. The first one remembers for a day, the second for ten minutes."""
    target = new_cluster("T", brokers=2)
    set_broker_config(target.bootstrap, 2, MEMORY, "600000")
    wait_until(lambda: broker_config(target.bootstrap, 2, MEMORY) == "600000", "broker 2 has it")
    own = Mirror(mirror.source, target.bootstrap, mirror.topic)
    own.make_topic(config={"retention.ms": "-1"})
    write_old_records(own.source, own.topic, samples(10), now_ms(), timedelta(minutes=8))
    opened = own.open()
    carry(opened, {own.lane_key: 10})
    with Attempt(opened, QUICK, alone=False) as attempt:
        attempt.wait_reason("waiting until the last attempt is known dead")
        assert attempt.life.guard is Guard.EXCLUSIVE
        write_old_records(own.source, own.topic, samples(10, seed=2), now_ms(), timedelta(minutes=8))
        attempt.tell_alone()
        attempt.wait_for_position(20)
        attempt.stop()
    own.assert_identical(20)


def test_a_foreign_record_between_ours_makes_an_anchor(mirror: Mirror) -> None:
    """P3.5: base > expected: somebody else writes here; the delta changes from there on."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(10))
    opened = mirror.open()
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_for_records(10)
        write(mirror.target, mirror.remote, [Sample(b"foreign")])
        write(mirror.source, mirror.topic, samples(10, seed=2))
        attempt.wait_for_records(20)
        attempt.stop()
    entry = mirror.book().latest(opened.entries[0].lane)
    assert entry is not None
    assert entry.anchors == ((0, 0), (10, 11))
    assert (entry.source_next, entry.target_next, entry.sequence_next) == (20, 21, 20)


def test_after_a_kill_with_foreign_records_in_between_the_next_attempt_is_exact(mirror: Mirror) -> None:
    """P2.7: the expected offset is unknown until the first acknowledgement; the number is not."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(10))
    opened = mirror.open()
    with Attempt(opened, SILENT) as attempt:
        attempt.wait_for_records(10)
        attempt.kill()
    write(mirror.target, mirror.remote, [Sample(b"foreign")])
    write(mirror.source, mirror.topic, samples(10, seed=2))
    carry(opened, {mirror.lane_key: 20})
    assert ends(mirror.target, mirror.remote)[0] == 21
    assert mirror.producers()[opened.entries[0].identity.producer_id].last_sequence == 19


def test_three_racers_that_merge_differently_make_one_exact_copy(mirror: Mirror) -> None:
    """P4 E45, P5.1, case 1b: boundaries differ, the losers attach and go on; nothing is repeated or lost."""
    mirror.make_topic(partitions=2)
    write_single_record_batches(mirror.source, mirror.topic, 600, partitions=2)
    opened = mirror.open()
    until = {lane.id.key: opened.plan.ends[(lane.id.topic, lane.id.partition)] for lane in opened.plan.lanes}
    settings = [BATCH_BY_BATCH, replace(SILENT, merge_target=2_000), replace(QUICK, merge_target=9_000)]
    racers = [Attempt(opened, setting, until=until) for setting in settings]
    with racers[0], racers[1], racers[2]:
        for racer in racers:
            racer.join()
    assert sum(racer.records for racer in racers) >= 600
    mirror.assert_identical(600)
