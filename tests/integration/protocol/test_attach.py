"""P2: a lane goes on exactly where the target is, by the leader's memory, by headers, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.errors import HeliographError
from heliograph.kafka.attach import Attacher
from heliograph.kafka.lane import LaneRun
from heliograph.kafka.ranges import Log
from heliograph.kafka.slot import now_ms
from heliograph.model.events import EventKind
from heliograph.model.lanes import Identity, LedgerEntry
from heliograph.replication.attach import Remembered
from tests.integration.protocol.harness import (
    BATCH_BY_BATCH,
    QUICK,
    SILENT,
    UNCLEAN,
    Attempt,
    Mirror,
    Opened,
    carry,
    elect_uncleanly,
)
from tests.support.clusters import ClusterFactory, TwoClusters
from tests.support.compaction import COMPACTED, write_compacted
from tests.support.doors import AuthorizedCluster
from tests.support.leaders import wait_until_in_sync
from tests.support.mirror import word
from tests.support.topics import admin, create_topic, delete_records, delete_topic, ends, set_configs, starts
from tests.support.waiting import wait_until
from tests.support.writers import samples, write, write_dense, write_single_record_batches, write_transactions


def test_after_a_kill_the_next_attempt_walks_over_aborted_transactions_and_goes_on_exactly(mirror: Mirror) -> None:
    """P2.3a, P2.5, P2.6: the ledger is still at 0; k records are counted by the rule, past aborts and markers."""
    mirror.make_topic()
    committed = write_transactions(mirror.source, mirror.topic, mirror.topic, transactions=400, size=7)
    opened = mirror.open()
    killed = 0
    for number in range(3):
        # There is enough left for it, however far the one before came until it was killed.
        committed += write_transactions(mirror.source, mirror.topic, mirror.topic, transactions=60, size=7)
        with Attempt(opened, BATCH_BY_BATCH) as attempt:
            attempt.wait_for_records(40 + 20 * number)
            attempt.kill()
            killed += attempt.records
    assert mirror.book().latest(opened.entries[0].lane) == opened.entries[0], "nobody wrote the ledger"
    # The last one may have copied everything before it was dead: there is something left for the next.
    committed += write_transactions(mirror.source, mirror.topic, mirror.topic, transactions=60, size=7)
    last = carry(mirror.open())
    assert killed + last.records <= committed
    assert last.life.run.counts.dropped["aborted"] > 0
    mirror.assert_identical(committed)


def test_without_state_the_headers_of_the_target_tell(new_cluster: ClusterFactory, mirror: Mirror) -> None:
    """P2.3d: DeleteRecords, then a clean restart: the leader forgot us (case 4a); the ledger and the headers give the number."""
    target = new_cluster("T")
    own = Mirror(mirror.source, target.bootstrap, mirror.topic)
    own.make_topic()
    write(own.source, own.topic, samples(50))
    opened = own.open()
    carry(opened, settings=QUICK)
    end = ends(target.bootstrap, own.remote)[0]
    delete_records(target.bootstrap, own.remote, 0, end)
    target.terminate(1)
    target.restart(1)
    assert opened.entries[0].identity.producer_id not in own.producers()
    write(own.source, own.topic, samples(20, seed=2))
    carry(own.open())
    assert starts(target.bootstrap, own.remote)[0] == end
    assert ends(target.bootstrap, own.remote)[0] == end + 20
    assert own.producers()[opened.entries[0].identity.producer_id].last_sequence == 69


def test_a_remote_topic_made_anew_parks_the_attempt_and_is_copied_again_in_a_new_generation(mirror: Mirror) -> None:
    """P2.1, P9: another topic id; on.target.loss = recopy from the log's start under a fresh epoch."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(30))
    opened = mirror.open()
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_for_records(30)
        delete_topic(mirror.target, mirror.remote)
        create_topic(mirror.target, mirror.remote)
        write(mirror.source, mirror.topic, samples(10, seed=2))
        attempt.wait_parked("deleted and created again")
    assert ends(mirror.target, mirror.remote)[0] == 0, "nothing was written by the old numbering"
    again = mirror.open()
    entry = again.entries[0]
    assert (entry.generation, entry.source_next, entry.sequence_next) == (1, 0, 0)
    assert entry.identity.producer_epoch > opened.entries[0].identity.producer_epoch
    carry(again)
    mirror.assert_identical(40)


def test_a_higher_epoch_on_the_target_stops_the_attempt(mirror: Mirror) -> None:
    """P2.3b: the target knows an epoch that the ledger does not: nothing is written."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(30))
    opened = mirror.open()
    ours = opened.entries[0].identity
    assert mirror.write_as(Identity(ours.producer_id, ours.producer_epoch + 1), 0, [b"newer"]).error_code == 0
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_reason("the target knows epoch")
        assert attempt.records == 0
    assert ends(mirror.target, mirror.remote)[0] == 1


def test_a_higher_epoch_that_the_ledger_knows_is_adopted(mirror: Mirror) -> None:
    """P2.3b: read the ledger again; it knows the epoch: use that generation."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(30))
    opened = mirror.open()
    carry(opened)
    newer = mirror.open("read_uncommitted").entries[0]
    mirror.write_entry(replace(newer, rule=opened.entries[0].rule))
    assert newer.generation == 1
    write(mirror.source, mirror.topic, samples(10, seed=2))
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_for_records(10)
        attempt.stop()
    assert mirror.producers()[newer.identity.producer_id].epoch == newer.identity.producer_epoch
    mirror.assert_identical(40)


def test_a_record_of_ours_that_is_not_the_sources_disproves_the_attach(mirror: Mirror) -> None:
    """P2.6: somebody wrote under our identity and number; counting alone would pass over a source record."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(30))
    opened = mirror.open()
    assert mirror.write_as(opened.entries[0].identity, 0, [b"not a record of the source"]).error_code == 0
    with Attempt(opened, SILENT) as attempt:
        attempt.wait_parked("attach disproved")
        assert attempt.records == 0


def test_a_tampered_position_disproves_the_attach(mirror: Mirror) -> None:
    """P2.6: source_next is wrong by one, k records more are on the target: unequal, parked (cases 11b to 11d, 15a)."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(30))
    opened = mirror.open()
    with Attempt(opened, SILENT) as attempt:
        attempt.wait_for_records(30)
        attempt.kill()
    write(mirror.source, mirror.topic, samples(30, seed=2))
    mirror.write_entry(replace(opened.entries[0], source_next=1))
    with Attempt(opened, SILENT) as attempt:
        attempt.wait_parked("attach disproved")
    assert ends(mirror.target, mirror.remote)[0] == 30


def test_an_attempt_that_is_overtaken_while_it_looks_looks_again(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P2.6: another attempt wrote after the target was asked what it has; that disproves nothing, and nobody is alarmed."""
    mirror.make_topic()
    write_single_record_batches(mirror.source, mirror.topic, 30)
    opened = mirror.open()
    with Attempt(opened, SILENT) as attempt:
        attempt.wait_for_records(30)
        attempt.kill()
    ask, answers = Attacher.remembered, []

    async def late(self: Attacher, log: Log, entry: LedgerEntry) -> Remembered | None:
        found = await ask(self, log, entry)
        answers.append(found)
        return replace(found, last_sequence=9) if found is not None and len(answers) == 1 else found

    monkeypatch.setattr(Attacher, "remembered", late)
    write(mirror.source, mirror.topic, samples(10, seed=2))
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_for_records(10)
        assert len(answers) == 2, "it looked again"
        assert EventKind.PARKED not in {event.kind for event in attempt.events}
        attempt.stop()
    mirror.assert_identical(40)


def test_more_records_on_the_target_than_the_source_has_parks(mirror: Mirror) -> None:
    """P2.5: the walk ends before k records are counted."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(5))
    opened = mirror.open()
    assert mirror.write_as(opened.entries[0].identity, 0, [b"%d" % n for n in range(9)]).error_code == 0
    with Attempt(opened, SILENT) as attempt:
        attempt.wait_parked("more than the source")


def test_a_position_inside_a_source_batch_goes_on_with_the_next_record(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P2.5: k ends in the middle of a batch; the rest of it is rebuilt, nothing is repeated."""
    mirror.make_topic(config={"max.message.bytes": "2000000"})
    write_dense(mirror.source, mirror.topic, samples(2_000))
    whole = mirror.open()
    # A limit far below the batch: it goes to the target in pieces, and none is sent after the first that is acknowledged.
    lanes = tuple(replace(lane, max_batch_bytes=2_000) for lane in whole.plan.lanes)
    opened = replace(whole, plan=replace(whole.plan, lanes=lanes))
    can_send = LaneRun.can_send
    monkeypatch.setattr(LaneRun, "can_send", lambda run, now: not run.counts.records and can_send(run, now))
    with Attempt(opened, replace(SILENT, window=1, merge_below=0)) as attempt:
        attempt.wait_for(lambda: attempt.records > 0, "a piece of the batch is acknowledged")
        attempt.kill()
    monkeypatch.undo()
    assert 0 < ends(mirror.target, mirror.remote)[0] < 2_000
    last = carry(whole)
    assert last.life.run.counts.rebuilt["begins earlier"] == 1
    mirror.assert_identical(2_000)


def test_a_source_that_was_compacted_once_recovers_from_a_kill(mirror: Mirror) -> None:
    """M8: its batches have gaps, but nothing is cleaned any more: the records in them are counted."""
    mirror.make_topic(config=COMPACTED)
    left = write_compacted(mirror.source, mirror.topic)
    set_configs(mirror.source, mirror.topic, {"cleanup.policy": "delete"})
    opened = mirror.open()
    assert not opened.plan.lanes[0].compacted
    with Attempt(opened, BATCH_BY_BATCH) as attempt:
        attempt.wait_for_records(10)
        attempt.kill()
    assert ends(mirror.target, mirror.remote)[0] >= 10
    carry(opened)
    mirror.assert_identical(left)


def test_sequences_wrap_at_2_to_the_31(mirror: Mirror) -> None:
    """Case 6, P3.3: ... 2147483646, 2147483647, 0, 1: over the wrap by append, and over it again by attach."""
    mirror.make_topic()
    write_single_record_batches(mirror.source, mirror.topic, 30)
    opened = mirror.open()
    entry = opened.entries[0]
    near = 2_147_483_640
    assert mirror.write_as(entry.identity, near - 1, [b"before"]).error_code == 0
    delete_records(mirror.target, mirror.remote, 0, 1)
    mirror.write_entry(
        replace(entry, target_start=1, target_next=1, sequence_next=near, source_next=0, time_ms=now_ms())
    )
    with Attempt(opened, BATCH_BY_BATCH) as attempt:
        attempt.wait_for_records(12)
        attempt.kill()
    carry(opened)
    assert mirror.producers()[entry.identity.producer_id].last_sequence == 21
    mirror.assert_identical(30)


def test_a_walk_that_retention_cut_short_does_not_stop_the_lane_for_ever(mirror: Mirror) -> None:
    """P2.5: log start after the ledger's position, k > 0, dense source: the position is source_next + k, nothing is lost."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(30))
    opened = mirror.open()
    with Attempt(opened, SILENT) as attempt:
        attempt.wait_for_records(30)
        attempt.kill()
    write(mirror.source, mirror.topic, samples(10, seed=2))
    delete_records(mirror.source, mirror.topic, 0, 5)
    carry(opened, {mirror.lane_key: 40})
    assert ends(mirror.target, mirror.remote)[0] == 40


@dataclass(frozen=True)
class Cut:
    """A target of which an unclean election took the end of one flow's topic and all of another's."""

    tail: Mirror
    whole: Mirror


@pytest.fixture(scope="module")
def cut(two_clusters: TwoClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cut]:
    """One election for both: three starts of brokers, and two more to elect."""
    with AuthorizedCluster("T", tmp_path_factory.mktemp("cut"), brokers=2, config=UNCLEAN) as target:
        tail, whole = (Mirror(two_clusters.a.bootstrap, target.bootstrap, word()) for _ in range(2))
        opened = {own.topic: _opened_on_both_brokers(own) for own in (tail, whole)}
        write(tail.source, tail.topic, samples(30))
        with Attempt(opened[tail.topic], QUICK) as attempt:
            attempt.wait_for_records(30)
            wait_until_in_sync(
                target.bootstrap, {1, 2}, tail.remote, whole.remote
            )  # a slow one is left out for a while
            target.kill(2)  # this follower has 30 of the one, nothing of the other
            write(tail.source, tail.topic, samples(40, seed=2))
            attempt.wait_for_records(70)
            _wait_for_ledger(tail, 70)
            attempt.stop()
        write(whole.source, whole.topic, samples(30))
        with Attempt(opened[whole.topic], QUICK) as attempt:
            attempt.wait_for_records(30)
            _wait_for_ledger(whole, 30)
            attempt.stop()
        elect_uncleanly(target, lambda: (_end(target, tail), _end(target, whole)) == (30, 0))
        yield Cut(tail, whole)


def _opened_on_both_brokers(own: Mirror) -> Opened:
    own.make_topic()
    client = admin(own.target)
    client.create_topics([NewTopic(own.remote, 1, replica_assignment=[[1, 2]], config={})])[own.remote].result(30)
    return own.open()


def _wait_for_ledger(own: Mirror, position: int) -> None:
    """What the ledger does not know nobody can miss. With a broker gone its partitions may have to move first."""

    def is_written() -> bool:
        try:
            book = own.book()
        except HeliographError:
            return False  # a partition of the ledger is still led by the broker that is gone
        entries = [book.latest(lane) for lane in book.lanes() if lane.flow == own.flow]
        return [entry.source_next for entry in entries if entry is not None] == [position]

    wait_until(is_written, f"the ledger says {position}", every=0.2)


def _end(target: EmbeddedCluster, own: Mirror) -> int | None:
    """None while no leader answers."""
    try:
        return ends(target.bootstrap, own.remote, within=3.0).get(0)
    except (TimeoutError, KafkaException):
        return None


def test_a_target_that_lost_its_tail_is_written_again_from_there(cut: Cut) -> None:
    """P2.4, case 2a: an unclean election cut the target; the same generation goes back and repeats nothing."""
    own = cut.tail
    own.policies = {"on.target.loss": "fail"}
    with Attempt(own.open(), QUICK) as attempt:
        attempt.wait_parked("lost the last 40 records")
    own.policies = {}
    last = carry(own.open(), {own.lane_key: 70})
    assert "lost the last 40 records" in last.notes
    assert ends(own.target, own.remote)[0] == 70, "what the target lost is copied again"
    own.assert_identical(70)


def test_a_target_that_lost_everything_is_copied_again_from_the_start(cut: Cut) -> None:
    """P3.5, P9, case 2b: the new leader is empty. Going on with the next record would leave the first 30 missing."""
    own = cut.whole
    write(own.source, own.topic, samples(10, seed=2))
    own.policies = {"on.target.loss": "fail"}
    with Attempt(own.open(), QUICK) as attempt:
        reason = attempt.wait_parked("on.target.loss = fail")
        assert "ends at 0" in reason and "30 was acknowledged" in reason
        attempt.kill()
    assert ends(own.target, own.remote)[0] == 0
    own.policies = {}
    last = carry(own.open(), {own.lane_key: 40})
    assert [event.kind for event in last.events] == [EventKind.TARGET_LOSS]
    assert last.life.run.acked.generation == 1
    own.assert_identical(40)
