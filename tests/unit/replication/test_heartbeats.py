"""Which heartbeats a run writes: mm2.md 2.6 and 4.11, with one writer for each pair of clusters."""

from __future__ import annotations

import pytest

from heliograph.model.clusters import Flow
from heliograph.replication.heartbeats import Beat, Emitting, Pulse, heartbeat_actions, pulses
from heliograph.replication.make_topic import MakeTopic

FLOW = Flow("A", "B")
ON, OFF = Emitting(), Emitting(enabled=False)
THERE, BACK = Pulse("A", "B", 1, 3), Pulse("B", "A", 1, 3)


@pytest.mark.parametrize(
    ("there", "back", "readonly", "expected"),
    [
        (ON, ON, False, (THERE, BACK)),
        (ON, OFF, False, (THERE,)),
        (OFF, ON, False, (BACK,)),
        (OFF, OFF, False, ()),
        (ON, None, False, (THERE,)),
        (ON, ON, True, (THERE,)),
    ],
    ids=["both", "not back", "only back", "neither", "the way back is a flow", "source is read only"],
)
def test_a_run_writes_both_ways_unless_another_does_or_nobody_may(
    there: Emitting, back: Emitting | None, readonly: bool, expected: tuple[Pulse, ...]
) -> None:
    assert pulses(FLOW, there, back, readonly) == expected


def test_each_way_has_the_options_of_its_own_pair() -> None:
    assert pulses(FLOW, Emitting(True, 5, 1), Emitting(True, 7, -1), False) == (
        Pulse("A", "B", 5, 1),
        Pulse("B", "A", 7, -1),
    )


def test_a_missing_topic_is_made_as_mirrormaker_2_makes_it() -> None:
    make, beat = heartbeat_actions(BACK, topic_exists=False)
    assert isinstance(make, MakeTopic) and beat == Beat(BACK)
    topic = make.topic
    assert (topic.name, topic.partitions, topic.replication_factor) == ("heartbeats", 1, 3)
    assert topic.configs == {"cleanup.policy": "compact"}
    assert (make.what, make.subject, make.why) == (
        "create",
        "topic heartbeats on A",
        "emit.heartbeats.enabled of B->A",
    )
    assert not make.routine


def test_once_it_is_there_only_heartbeats_are_written_and_nothing_is_pending() -> None:
    [beat] = heartbeat_actions(THERE, topic_exists=True)
    assert beat.routine
    assert (beat.what, beat.subject, beat.why) == ("write to", "topic heartbeats on B", "every 1 s")
