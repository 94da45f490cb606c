"""The ledger while lanes are open: written every second, and told when it cannot be."""

from __future__ import annotations

import pytest

from heliograph.kafka import bookkeeping
from heliograph.kafka.ledger import LEDGER_TOPIC
from tests.integration.protocol.harness import QUICK, Attempt, Mirror
from tests.support.topics import set_configs
from tests.support.writers import Sample, write

USUAL_BYTES = "1048588"


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
