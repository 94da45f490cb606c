"""The ledger while lanes are open: written every second, and told when it cannot be."""

from __future__ import annotations

import pytest

from heliograph.kafka import bookkeeping
from heliograph.kafka.ledger import LEDGER_TOPIC
from heliograph.kafka.topic_writer import TopicWriter, wall_ms
from tests.integration.protocol.harness import QUICK, Attempt, Mirror
from tests.support.compaction import NEVER_CLEANED
from tests.support.topics import ends, set_configs
from tests.support.writers import Sample, write

USUAL_BYTES = "1048588"
DAY_MS = 86_400_000


def test_a_ledger_that_cannot_be_written_is_told_and_so_is_its_end(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookkeeping, "TELL_SECONDS", 0.5)
    mirror.make_topic()
    write(mirror.source, mirror.topic, [Sample(b"before")])
    opened = mirror.open()
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_for_records(1)
        set_configs(mirror.target, LEDGER_TOPIC, {"max.message.bytes": "10"})
        try:
            write(mirror.source, mirror.topic, [Sample(b"meanwhile")])
            attempt.wait_for_records(2)  # records go on
            attempt.wait_for(lambda: any(event.kind == "ledger" for event in attempt.events), "it is told")
        finally:
            set_configs(mirror.target, LEDGER_TOPIC, {"max.message.bytes": USUAL_BYTES})
        attempt.wait_for(lambda: any(event.kind == "recovered" for event in attempt.events), "its end is told")
        told = [event for event in attempt.events if event.kind in ("ledger", "recovered")]
        assert [event.subject for event in told] == [mirror.flow, mirror.flow]
        assert LEDGER_TOPIC in told[0].reason and "MESSAGE_TOO_LARGE" in told[0].reason
        lane = opened.plan.lanes[0].id

        def is_written() -> bool:
            entry = mirror.book().latest(lane)
            return entry is not None and entry.source_next == 2

        attempt.wait_for(is_written, "the position is in the ledger")
        attempt.stop()
    mirror.assert_identical(2)


def test_a_compacted_lane_waits_for_a_ledger_that_cannot_be_written(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed now it would repeat what it copied since the last entry: that must not grow for as long as the outage lasts."""
    monkeypatch.setattr(bookkeeping, "TELL_SECONDS", 0.5)
    mirror.make_topic(config=NEVER_CLEANED)
    write(mirror.source, mirror.topic, [Sample(b"before", b"1")])
    with Attempt(mirror.open(), QUICK) as attempt:
        attempt.wait_for_records(1)
        set_configs(mirror.target, LEDGER_TOPIC, {"max.message.bytes": "10"})
        try:
            write(mirror.source, mirror.topic, [Sample(b"meanwhile", b"2")])
            attempt.wait_for_records(2)
            attempt.wait_for(
                lambda: attempt.life.run.reason.startswith("the ledger on"), "the lane waits for the ledger"
            )
            write(mirror.source, mirror.topic, [Sample(b"too much", b"3")])
            followed, run = attempt.life.run.counts.attaches, attempt.life.run
            for _ in range(3):
                since_ms = run.since_ms
                attempt.wait_for(lambda last=since_ms: run.since_ms > last, "it tries again")
                attempt.wait_reason("the ledger on")
            assert run.counts.attaches == followed, "it does not follow meanwhile"
            assert ends(mirror.target, mirror.remote) == {0: 2}
        finally:
            set_configs(mirror.target, LEDGER_TOPIC, {"max.message.bytes": USUAL_BYTES})
        attempt.wait_for_records(3)
        attempt.stop()
    told = [event.what_to_do for event in attempt.events if event.kind == "ledger"]
    assert told == [bookkeeping.WAITING_FOR_LEDGER]
    mirror.assert_identical(3)


def test_a_position_that_the_ledger_has_is_not_written_again_by_the_next_attempt(mirror: Mirror) -> None:
    mirror.make_topic()
    write(mirror.source, mirror.topic, [Sample(b"one")])
    opened = mirror.open()
    lane = opened.plan.lanes[0].id
    with Attempt(opened, QUICK) as first:
        first.wait_for_records(1)
        first.stop()
    before = mirror.book().latest(lane)
    assert before is not None and before.source_next == 1
    with Attempt(opened, QUICK) as idle:
        idle.wait_for_position(1)
        idle.stop()
    assert mirror.book().latest(lane) == before, "not even its time"
    with Attempt(opened, QUICK) as busy:
        write(mirror.source, mirror.topic, [Sample(b"two")])
        busy.wait_for_position(2)
        busy.stop()
    after = mirror.book().latest(lane)
    assert after is not None and after.source_next == 2
    mirror.assert_identical(2)


def test_a_clock_that_is_hours_behind_the_brokers_is_told_and_their_memory_is_trusted_for_less(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_ms = 2 * 3_600_000
    monkeypatch.setattr(TopicWriter.__init__, "__defaults__", (lambda: wall_ms() - late_ms,))
    mirror.make_topic()
    write(mirror.source, mirror.topic, [Sample(b"one")])
    opened = mirror.open()
    with Attempt(opened, QUICK) as attempt:
        attempt.wait_for(lambda: any("behind" in event.reason for event in attempt.events), "it is told")
        slot = attempt.slot
        assert slot is not None
        trusted_ms = slot._expiration_ms(attempt.life.rules)  # as the next epoch's lanes have it
        attempt.stop()
    [told] = [event for event in attempt.events if "behind" in event.reason]
    assert (told.kind, told.subject) == ("trouble", mirror.flow)
    assert f"minutes behind that of the brokers of {mirror.topic}t" in told.reason
    assert 0 <= trusted_ms - (DAY_MS - late_ms) < 60_000, "answers take a moment: what is measured is the least"
