"""P4 (E2, E45), P7, P8, P10: damaged batches, conflicts, changed rules, compacted sources, sources that changed."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from heliograph.kafka import cutting
from heliograph.kafka.claims import transactional_id
from heliograph.model.lanes import Guard, LedgerEntry
from heliograph.operations.compare import compare_topics
from tests.integration.protocol.harness import QUICK, SILENT, Attempt, Mirror, carry, with_client
from tests.support.batches import read_batches
from tests.support.topics import delete_records, delete_topic, ends
from tests.support.writers import Sample, samples, write, write_single_record_batches, write_transactions


def test_a_batch_damaged_on_its_way_is_fetched_again(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    """P4, E2: the source's CRC is carried, so the target refuses the flipped bit; the batch is fetched once more."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(100))
    opened = mirror.open()
    honest = cutting.restamp
    flipped: list[int] = []

    def flip(buffer: Any, at: int, header: Any, *identity: int) -> None:
        honest(buffer, at, header, *identity)
        if not flipped:
            flipped.append(at)
            buffer[at + header.size - 3] ^= 1

    monkeypatch.setattr(cutting, "restamp", flip)
    last = carry(opened)
    assert flipped and last.life.run.counts.refused == 1
    assert "fetching" in last.notes
    mirror.assert_identical(100)


def has_passed(attempt: Attempt, end: int) -> bool:
    """Who finds on the target what the other one wrote last does not know at which offset, and tells no position until it has
    written something itself."""
    run = attempt.life.run
    at_rest = run.failure is None and not run.queue and not run.in_flight
    return attempt.position() >= end or (at_rest and run.fetch_offset >= end)


def test_a_lane_that_another_attempt_overtook_attaches_and_goes_on(mirror: Mirror) -> None:
    """P4, E45: the number is taken; it is not a gap: attach, go on after the other's records."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(10))
    opened = mirror.open()
    with Attempt(opened, SILENT) as slow:
        slow.wait_for_records(10)
        with Attempt(opened, replace(SILENT, merge_below=0)) as quick:
            quick.wait_for(lambda: quick.life.run.counts.attaches == 1, "both follow")
            write_single_record_batches(mirror.source, mirror.topic, 200)
            for attempt in (quick, slow):
                attempt.wait_for(lambda attempt=attempt: has_passed(attempt, 210), "it has nothing left to copy")  # type: ignore[misc]
            slow.stop()
            quick.stop()
    mirror.assert_identical(210)


def test_a_changed_isolation_level_opens_the_next_generation_at_the_exact_position(mirror: Mirror) -> None:
    """P7: drained, the entry is exact; g+1 has the new rule, a fresh epoch, sequence 0."""
    mirror.make_topic()
    committed = write_transactions(mirror.source, mirror.topic, mirror.topic, transactions=6, size=5)
    opened = mirror.open()
    carry(opened)
    again = mirror.open("read_uncommitted")
    entry = again.entries[0]
    assert (entry.generation, entry.rule.isolation, entry.sequence_next) == (1, "read_uncommitted", 0)
    assert entry.source_next == ends(mirror.source, mirror.topic)[0]
    write(mirror.source, mirror.topic, samples(10))
    carry(mirror.open("read_uncommitted"))
    mirror.assert_identical(committed + 10)


def test_a_changed_rule_after_a_kill_repeats_nothing(mirror: Mirror) -> None:
    """P7: the ledger is behind the target; g+1 must begin where the target is, not where the ledger is."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(30))
    opened = mirror.open()
    with Attempt(opened, SILENT) as attempt:
        attempt.wait_for_records(30)
        attempt.kill()
    carry(mirror.open("read_uncommitted"))
    mirror.assert_identical(30)


def test_an_attempt_with_another_rule_than_the_entrys_does_not_attach(mirror: Mirror) -> None:
    """P7: it would put other records under the same numbers."""
    mirror.make_topic()
    committed = write_transactions(mirror.source, mirror.topic, mirror.topic, transactions=6, size=5)
    opened = mirror.open("read_committed")
    settings = replace(opened.plan.settings, isolation="read_uncommitted")
    other = replace(opened, plan=replace(opened.plan, settings=settings))
    with Attempt(other, QUICK) as attempt:
        attempt.wait_for(lambda: bool(attempt.life.run.reason) or attempt.records > 0, "it refuses, or it writes")
        time.sleep(0.3)
        assert attempt.records == 0, "aborted records were written into a read_committed generation"
    assert ends(mirror.target, mirror.remote)[0] == 0
    carry(opened)
    mirror.assert_identical(committed)


def wait_for_ledger(attempt: Attempt, mirror: Mirror, position: int) -> LedgerEntry:
    """The lane's entry, once it says this position."""
    found: list[LedgerEntry] = []

    def is_written() -> bool:
        entry = mirror.book().latest(attempt.life.run.lane.id)
        found[:] = [entry] if entry is not None else []
        return bool(found) and found[0].source_next == position

    attempt.wait_for(is_written, f"the ledger says {position}")
    return found[0]


def test_each_attempt_on_a_compacted_source_opens_its_own_generation(mirror: Mirror) -> None:
    """P8.2: a new generation and a new epoch for every attempt; after a drain nothing is repeated."""
    mirror.make_topic(config={"cleanup.policy": "compact"})
    keyed = [Sample(b"%d" % n, b"k%d" % n) for n in range(10)]
    write(mirror.source, mirror.topic, keyed)
    opened = mirror.open()
    first = carry(opened)
    write(mirror.source, mirror.topic, keyed)
    second = carry(opened, {mirror.lane_key: 20})
    one, two = first.life.run.acked, second.life.run.acked
    assert (one.generation, two.generation) == (1, 2)
    assert one.identity.producer_epoch < two.identity.producer_epoch
    assert second.life.guard is Guard.FENCED
    mirror.assert_identical(20)


def test_on_a_compacted_source_a_zombie_is_fenced_and_leaves(mirror: Mirror) -> None:
    """P8.3, P4 E47: the successor's first append fences it; the ledger has a higher generation: it opens none of its own."""
    mirror.make_topic(config={"cleanup.policy": "compact"})
    keyed = [Sample(b"%d" % n, b"k%d" % n) for n in range(10)]
    write(mirror.source, mirror.topic, keyed)
    opened = mirror.open()
    with Attempt(opened, QUICK) as zombie:
        zombie.wait_for_records(10)
        wait_for_ledger(zombie, mirror, 10)
        with Attempt(opened, QUICK) as successor:
            successor.wait_for(lambda: successor.life.run.counts.attaches == 1, "the successor follows")
            for number in range(10):
                write(mirror.source, mirror.topic, [Sample(b"new %d" % number, b"k")])
                time.sleep(0.1)
            successor.wait_for_position(20)
            time.sleep(1.0)
            generations = mirror.book().generations(opened.entries[0].lane)
            successor.stop()
        zombie.kill()
    assert max(generations) == 2, f"the fenced attempt opened further generations: {generations}"
    # What the zombie wrote before the successor's first append fenced it may be repeated (P8.3); nothing is lost.
    found = compare_topics(mirror.source, mirror.target, {mirror.topic: mirror.remote})
    assert len(found.differences) <= 1, [str(difference) for difference in found.differences]
    assert all("repeated" in str(difference) for difference in found.differences)


def test_a_recreated_source_is_refused(mirror: Mirror) -> None:
    """P10.1, on.source.reset = fail: the attempt that runs parks, the next driver refuses, nothing is written."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(10))
    opened = mirror.open()
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_for_records(10)
        delete_topic(mirror.source, mirror.topic)
        mirror.make_topic()
        write(mirror.source, mirror.topic, samples(20, seed=2))
        attempt.wait_parked("created again")
        attempt.kill()
    again = mirror.open()
    assert "on.source.reset = fail" in again.flow.refused[mirror.lane_key]
    assert ends(mirror.target, mirror.remote)[0] == 10


def test_retention_that_overtook_the_lane_is_counted_exactly_and_the_lane_goes_on(mirror: Mirror) -> None:
    """P9, P10, on.data.loss = continue: a new generation at the log's start, the loss in numbers."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(10))
    opened = mirror.open()
    carry(opened)
    write(mirror.source, mirror.topic, samples(30, seed=2))
    delete_records(mirror.source, mirror.topic, 0, 23)
    last = carry(opened, {mirror.lane_key: 40})
    assert "13 offsets" in last.notes
    entry = mirror.book().latest(opened.entries[0].lane)
    assert entry is not None
    assert (entry.generation, entry.source_start, entry.source_next, entry.target_next) == (1, 23, 40, 27)
    assert ends(mirror.target, mirror.remote)[0] == 27
    assert len(read_batches(mirror.target, mirror.remote)) >= 2


def test_a_fenced_attempt_of_an_older_generation_joins_the_newer_one(mirror: Mirror) -> None:
    """P4, E47: read the ledger; what the older identity still had on its way does not land."""
    mirror.make_topic()
    write(mirror.source, mirror.topic, samples(10))
    opened = mirror.open()
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_for_records(10)
        entry = wait_for_ledger(attempt, mirror, 10)
        identity = with_client(mirror.target, lambda client: client.new_identity(transactional_id(mirror.flow)))
        newer = replace(entry, generation=1, identity=identity, sequence_next=0, source_start=10, target_start=10)
        mirror.write_entry(newer)
        write(mirror.source, mirror.topic, samples(5, seed=2))
        attempt.wait_for_records(15)
        other = Attempt(opened, replace(QUICK, merge_below=0))
        with other:
            other.wait_for(lambda: other.life.run.counts.attaches >= 1, "the newer generation is followed")
            write(mirror.source, mirror.topic, samples(5, seed=3))
            other.wait_for_position(20)
            other.kill()
        attempt.kill()
