"""When offset syncs are written: mm2.md 4.7 with its golden vectors, and what is due between looks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heliograph.model.lanes import Lane, LaneId
from heliograph.replication.offset_syncs import Copied, Emission, Syncs, Why, copied_of, make_syncs_topic
from tests.support.entries import FRESH

LANE = LaneId("A->B", "orders", 0)


def at(offset: int, delta: int = 0, number: int | None = None, generation: int = 0) -> Copied:
    return Copied(offset, offset + delta, offset + 1 if number is None else number, generation)


def test_looked_at_after_every_record_the_decisions_are_mirrormaker_2s() -> None:
    golden = [
        (0, 100, True),
        (2, 102, True),
        (3, 152, False),
        (4, 153, True),
        (5, 154, False),
        (6, 203, False),
        (7, 204, True),
        (2, 206, True),
        (3, 207, False),
        (4, 3, True),
        (5, 4, False),
        (7, 6, True),
    ]
    lane = Emission(50)
    seen = []
    for number, (upstream, downstream, _) in enumerate(golden):
        record = Copied(upstream, downstream, number)
        due = lane.look(record) is not None
        if due:
            lane.wrote(record)
        seen.append((upstream, downstream, due))
    assert seen == golden


def test_with_no_lag_allowed_every_record_is_due_and_none_twice() -> None:
    lane = Emission(0)
    for record in (at(0), at(1), at(2)):
        assert lane.look(record) is not None
        lane.wrote(record)
        assert lane.look(record) is None


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (at(10), None),
        (at(109), None),
        (at(110), Why.BEHIND),
        (at(20, number=20), Why.PASSED_OVER),
        (at(20, generation=1), Why.PASSED_OVER),
        (Copied(20, 5, 21), Why.WENT_BACK),
    ],
    ids=["one more", "99 behind", "100 behind", "a marker between", "another generation", "target went back"],
)
def test_between_two_looks_the_last_record_counts_and_how_many_there_were(now: Copied, why: Why | None) -> None:
    lane = Emission(100)
    assert lane.look(at(9)) is Why.FIRST
    lane.wrote(at(9))
    assert lane.look(now) is why


def test_numbers_wrap_as_kafka_wraps_them() -> None:
    lane = Emission(100)
    last = Copied(9, 9, 0x7FFFFFFF)
    lane.look(last)
    lane.wrote(last)
    assert lane.look(Copied(11, 11, 1)) is None
    assert lane.look(Copied(12, 12, 1)) is Why.PASSED_OVER


def test_what_is_due_stays_due_until_it_was_written() -> None:
    lane = Emission(100)
    assert lane.look(at(9)) is Why.FIRST
    assert lane.look(at(10)) is Why.FIRST
    lane.wrote(at(10))
    assert lane.look(at(10)) is None


def test_a_flush_writes_what_moved_and_nothing_else() -> None:
    lane = Emission(100)
    lane.look(at(9))
    lane.wrote(at(9))
    assert lane.look(at(9), flush=True) is None
    assert lane.look(at(12), flush=True) is Why.FLUSH


def test_lanes_are_judged_each_by_its_own_history() -> None:
    other = LaneId("A->B", "orders", 1)
    syncs = Syncs(100)
    [first] = syncs.due([(LANE, at(9))], flush=False)
    syncs.wrote([first])
    [second] = syncs.due([(LANE, at(10)), (other, at(3))], flush=False)
    assert (second.lane, second.copied, second.why) == (other, at(3), Why.FIRST)
    assert second.routine
    assert (second.subject, second.what) == ("orders-1", "write offset sync 3 -> 3 of")


def test_a_missing_topic_is_made_as_mirrormaker_2_makes_it() -> None:
    make = make_syncs_topic("mm2-offset-syncs.B.internal", "A", 2)
    topic = make.topic
    assert (topic.name, topic.partitions, topic.replication_factor) == ("mm2-offset-syncs.B.internal", 1, 2)
    assert topic.configs == {"cleanup.policy": "compact"}
    assert not make.routine
    assert (make.subject, make.what, make.why) == (
        "topic mm2-offset-syncs.B.internal on A",
        "create",
        "emit.offset-syncs.enabled",
    )


def test_the_last_copied_record_of_the_ledger_is_what_a_sync_names() -> None:
    lane = Lane(LANE, "A", "B", "A.orders", "s", "t")
    entry = replace(FRESH, last=(10, 7), sequence_next=8, generation=2, source_next=14, target_next=8)
    assert copied_of(entry, lane) == Copied(10, 7, 8, 2)
    assert copied_of(None, lane) is None
    assert copied_of(FRESH, lane) is None
    assert copied_of(replace(entry, source_topic_id="another"), lane) is None
    assert copied_of(replace(entry, target_topic_id="another"), lane) is None
