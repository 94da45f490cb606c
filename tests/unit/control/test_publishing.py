"""What a run tells of its flows, and when the rows of many lanes are told: every few seconds, and at once when asked for."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from heliograph.control.board import Board
from heliograph.control.events import EventLog
from heliograph.control.flow_watch import FlowWatch, Runner
from heliograph.control.meters import Meters
from heliograph.control.publishing import Publisher
from heliograph.control.telemetry import LANES_IN_A_RECORD, TelemetryWriter, newest
from heliograph.kafka.slot import Warm

MANY = LANES_IN_A_RECORD * 20


class Written(TelemetryWriter):
    """A topic in memory; `open` lets records in."""

    def __init__(self) -> None:
        super().__init__(Warm())
        self.records: list[dict[str, Any]] = []
        self.open = asyncio.Event()
        self.open.set()

    async def write(self, target: object, flow: str, record: str, now_ms: int) -> None:
        del target, flow, now_ms
        await self.open.wait()
        self.records.append(json.loads(record))


class Stage:
    """A run of one flow with many lanes that no task has had yet."""

    def __init__(self) -> None:
        lanes = tuple(SimpleNamespace(id=SimpleNamespace(key=f"A->B/t/{number}")) for number in range(MANY))
        opened = SimpleNamespace(plan=SimpleNamespace(lanes=lanes), refused={})
        self.watch = cast(
            FlowWatch,
            SimpleNamespace(
                name="A->B",
                trouble="",
                trouble_since_ms=0,
                opened=opened,
                standing_by=False,
                jobs=SimpleNamespace(standing=list),
                settings=SimpleNamespace(target=None),
            ),
        )
        warm = Warm()
        events = EventLog(warm, {}, lambda: 0)
        self.publisher = Publisher(Runner("here", 1, "run", 0), Board(), Meters(), events, warm)
        self.topic = self.publisher._telemetry = Written()
        self.state = "draining"
        self.publisher.held = lambda _: {"state": self.state}

    async def publish(self) -> None:
        await self.publisher.publish([self.watch], 1)

    async def publish_at_once(self) -> None:
        await self.publisher.publish_at_once([self.watch], 1)

    def seen(self) -> set[str]:
        rows = newest(self.topic.records)["lanes"]
        assert len(rows) == MANY
        return {row["state"] for row in rows}


def test_rows_of_many_lanes_wait_for_their_time_unless_somebody_changed_something() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.publish()
        stage.state = "paused"
        await stage.publish()
        assert stage.seen() == {"draining"}, "20 seconds are not over"
        await stage.publish_at_once()
        assert stage.seen() == {"paused"}

    asyncio.run(scenario())


def test_what_was_gathered_before_a_change_is_not_written_after_it() -> None:
    async def scenario() -> None:
        stage = Stage()
        stage.topic.open.clear()
        regular = asyncio.create_task(stage.publish())
        await asyncio.sleep(0)
        stage.state = "paused"
        at_once = asyncio.create_task(stage.publish_at_once())
        await asyncio.sleep(0)
        stage.topic.open.set()
        await asyncio.gather(regular, at_once)
        assert stage.seen() == {"paused"}

    asyncio.run(scenario())


def test_a_target_that_does_not_take_it_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.control.publishing._AT_ONCE_SECONDS", 0.01)

    async def scenario() -> None:
        stage = Stage()
        stage.topic.open.clear()
        await stage.publish_at_once()
        assert stage.topic.records == []

    asyncio.run(scenario())
