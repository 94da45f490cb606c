"""Events on their way: told once an hour, queued within bounds, counted when they do not fit."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from heliograph.control.events import EventLog, EventQueue
from heliograph.errors import ClusterUnreachable
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.model.events import Deed, Event, EventKind, decode_event

EVENT = Event(1_000, "A->B", "orders-3", EventKind.DATA_LOSS, "13 offsets were lost")
TARGET = Cluster("B", ("b:9092",))


def numbered(count: int) -> list[Event]:
    return [replace(EVENT, reason=f"{number} offsets were lost") for number in range(count)]


def test_a_queue_keeps_the_newest_and_counts_the_rest() -> None:
    queue = EventQueue(limit=3)
    for event in numbered(5):
        queue.put(event)
    assert (len(queue), queue.dropped) == (3, 2)
    batch = queue.next_batch(7)
    assert batch[0].kind == EventKind.EVENTS_DROPPED and "2 events" in batch[0].reason
    assert [event.reason[0] for event in batch[1:]] == ["2", "3", "4"]


def test_what_is_written_leaves_the_queue_and_what_came_meanwhile_stays() -> None:
    queue = EventQueue(limit=3)
    for event in numbered(4):
        queue.put(event)
    dropped, batch = queue.dropped, queue.next_batch(7)
    queue.put(replace(EVENT, reason="late"))
    queue.written(batch, dropped)
    assert [event.reason for event in queue.next_batch(8)] == [batch[0].reason, "late"], (
        "one more did not fit meanwhile"
    )
    assert (len(queue), queue.dropped, queue.lost) == (1, 1, 2)


class Topic:
    """The events topic of a target, up or down."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.down = False

    async def append(self, records: Any, now_ms: int) -> None:
        if self.down:
            raise ClusterUnreachable("B is unreachable")
        self.events += [event for _, value in records[0] if (event := decode_event(value)) is not None]
        assert all(key == b"A->B" for key, _ in records[0])


def event_log(topic: Topic) -> EventLog:
    log = EventLog(Warm(), {"A->B": TARGET}, lambda: 5_000)
    log._writers[TARGET] = topic  # type: ignore[assignment]  # a writer that has no broker
    return log


def test_an_event_is_logged_at_once_and_told_once_within_the_hour(caplog: pytest.LogCaptureFixture) -> None:
    topic = Topic()

    async def tell() -> None:
        log = event_log(topic)
        for time_ms in (1_000, 2_000, 3_000_000, 3_700_000):
            log.tell(replace(EVENT, time_ms=time_ms))
        log.tell(replace(EVENT, flow="X->Y"))
        await log.flush(1)

    with caplog.at_level(logging.WARNING, logger="heliograph"):
        asyncio.run(tell())
    assert [event.time_ms for event in topic.events] == [1_000, 3_700_000]
    assert [record.message for record in caplog.records] == [
        "A->B: orders-3: 13 offsets were lost",
        "A->B: orders-3: 13 offsets were lost",
        "X->Y: orders-3: 13 offsets were lost",
    ]


def test_whoever_does_the_same_twice_has_done_it_twice() -> None:
    topic = Topic()

    async def tell() -> None:
        log = event_log(topic)
        for time_ms in (1_000, 2_000):
            log.tell(Deed("A->B", "paused", "ann").event(time_ms))
        await log.flush(1)

    asyncio.run(tell())
    assert [(event.time_ms, event.reason) for event in topic.events] == [
        (1_000, "paused by ann"),
        (2_000, "paused by ann"),
    ]


def test_a_target_out_of_reach_holds_nobody_up_and_gets_its_events_later() -> None:
    topic = Topic()

    async def tell() -> None:
        log = event_log(topic)
        topic.down = True
        writing = asyncio.create_task(log.write_forever())
        for event in numbered(1_200):
            log.tell(event)
        await asyncio.sleep(0)
        await log.flush(0.1)
        assert (topic.events, log.dropped) == ([], 200)
        topic.down = False
        await log.flush(1)
        assert log.dropped == 200, "that they are lost does not pass"
        writing.cancel()

    asyncio.run(tell())
    assert topic.events[0].kind == EventKind.EVENTS_DROPPED and "200 events" in topic.events[0].reason
    assert len(topic.events) == 1_001
