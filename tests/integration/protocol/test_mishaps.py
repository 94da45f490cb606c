"""Errors that nobody foresaw: the lane that met one parks, names it and tries again; all others continue."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from heliograph.kafka.attach import Attacher
from heliograph.kafka.lane import Failure
from heliograph.kafka.remedies import Remedies
from heliograph.model.lanes import LaneState
from heliograph.wire import records as opening
from tests.integration.protocol.harness import QUICK, Attempt, Mirror
from tests.support.topics import create_topic, ends
from tests.support.writers import Sample, write

PARTITIONS = 3


def meeting(
    faults: list[Exception], is_mine: Callable[..., bool], usual: Callable[..., Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    """As `usual`, but the lane that is meant meets one fault a call while there are any."""

    async def step(*words: Any) -> Any:
        if faults and is_mine(*words):
            raise faults.pop(0)
        return await usual(*words)

    return step


def test_an_unforeseen_error_in_one_lane_parks_that_lane_alone_and_it_is_tried_again(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    at_first: list[Exception] = [KeyError("lane"), KeyError("lane"), AssertionError()]
    monkeypatch.setattr(
        Attacher, "attach", meeting(at_first, lambda _, lane, *__: lane.id.partition == 0, Attacher.attach)
    )
    mirror.make_topic(PARTITIONS)
    write(mirror.source, mirror.topic, [Sample(b"first", partition=number) for number in range(PARTITIONS)])
    with caplog.at_level(logging.ERROR), Attempt(mirror.open(), QUICK) as attempt:
        attempt.wait_for_records(PARTITIONS)
        # And while it follows: whatever stopped it is settled by a part that breaks.
        later: list[Exception] = [MemoryError()]
        first = attempt.life.run
        monkeypatch.setattr(
            Remedies, "react", meeting(later, lambda remedies, _: remedies._run is first, Remedies.react)
        )
        attempt._call(lambda: attempt.life.run.fail(Failure(None, "a line that broke")))
        attempt.wait_for(lambda: not later, "the error is met")
        write(mirror.source, mirror.topic, [Sample(b"second", partition=number) for number in range(PARTITIONS)])
        attempt.wait_for_records(2 * PARTITIONS)
        attempt.wait_for(lambda: attempt.life.run.state is LaneState.FOLLOWING, "the lane follows again")
        attempt.stop()
    parked = [event for event in attempt.events if event.kind == "parked"]
    assert [event.subject for event in parked] == [f"{mirror.topic}-0"] * 3
    named = ["KeyError: 'lane'", "AssertionError", "MemoryError"]
    assert [event.reason for event in parked] == [f"an error that was not foreseen: {name}" for name in named]
    logged = [record for record in caplog.records if "not foreseen" in record.getMessage()]
    assert [record.exc_info is not None for record in logged] == [True] * 3, "each once, with its traceback"
    assert list(ends(mirror.target, mirror.remote).values()) == [2] * PARTITIONS
    mirror.assert_identical(2 * PARTITIONS)


def test_a_batch_that_opens_to_more_than_its_limit_parks_its_lane_alone(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes that stand for many, in a batch that must be opened: timestamps of the source's broker go into its records."""
    monkeypatch.setattr(opening, "MAX_BYTES", 100_000)
    mirror.make_topic(PARTITIONS, config={"message.timestamp.type": "LogAppendTime"})
    create_topic(mirror.target, mirror.remote, PARTITIONS, config={"message.timestamp.type": "CreateTime"})
    write(mirror.source, mirror.topic, [Sample(b"before", partition=number) for number in range(PARTITIONS)])
    with Attempt(mirror.open(), QUICK) as attempt:
        attempt.wait_for_records(PARTITIONS)
        write(mirror.source, mirror.topic, [Sample(bytes(200_000), partition=0)], "zstd")
        attempt.wait_parked("A record batch opens to more than the 100000 bytes")
        others = range(1, PARTITIONS)
        write(mirror.source, mirror.topic, [Sample(b"after", partition=number) for number in others])
        attempt.wait_for_records(2 * PARTITIONS - 1)
        attempt.wait_parked("A record batch opens to more than the 100000 bytes")
        attached = [life.run.counts.attaches for life in attempt.lives]
        assert attached[1:] == [1] * len(others), "the neighbours, which the same reader reads, never stopped"
        monkeypatch.undo()
        attempt.wait_for_records(2 * PARTITIONS)  # it is tried again, and nothing of it is lost
        attempt.stop()
    parked = [event for event in attempt.events if event.kind == "parked"]
    assert {event.subject for event in parked} == {f"{mirror.topic}-0"}
    assert list(ends(mirror.target, mirror.remote).values()) == [2] * PARTITIONS
