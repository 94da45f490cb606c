"""The job of lag.limit.seconds, with rows as tasks report them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from heliograph.config.load import load
from heliograph.control.clock import Clock
from heliograph.control.jobs import JobRunner
from heliograph.control.lag_watch import LagWatch
from heliograph.model.events import Event, EventKind
from tests.unit.control.fakes import FakeClock, report_row

FLOW = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\nlag.limit.seconds = 5\n"


def test_a_lane_behind_for_too_long_is_an_event_and_its_end_another() -> None:
    clock, told = FakeClock(), list[Event]()
    waits = report_row("A->B/orders/0", waiting_since_ms=clock.now_ms())
    rows: list[dict[str, Any]] = [waits, report_row("A->B/orders/1", waiting_since_ms=0)]
    watch = LagWatch(load(FLOW, "f").flows[0], lambda: rows, cast(Clock, clock), told.append)
    runner = JobRunner("A->B", lambda: True, told.append, cast(Clock, clock))

    def pass_by(seconds: int) -> None:
        for _ in range(seconds):
            assert asyncio.run(runner.once(watch))
            clock.now += 1

    pass_by(6)
    assert told == []
    pass_by(3)
    assert [(event.flow, event.subject, event.kind) for event in told] == [("A->B", "lag", EventKind.LAG)]
    assert told[0].reason == "orders-0: a record waits for 6 s; lag.limit.seconds is 5"
    (standing,) = runner.standing()
    assert (standing["summary"], standing["detail"]) == ("a record waits for 8 s at the most", {"lag_ms": 8_000})
    rows[0] = report_row("A->B/orders/0", waiting_since_ms=0)
    pass_by(11)
    assert [event.kind for event in told] == [EventKind.LAG, EventKind.RECOVERED]
