"""A lane's row of `status`: its numbers are of one moment. Whether a flow runs: unknown is not "not running".

What clusters answer: tests/integration/test_what_it_says.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

import pytest

from heliograph.config.load import load
from heliograph.control.status import FlowStatus, LaneStatus, _Ends, _is_running, _lane, _unheard, flow_status
from heliograph.kafka.client import Leader, TopicView
from heliograph.kafka.ledger import TELEMETRY_TOPIC
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.replication.generations import Holder, LedgerBook, encode_entry, encode_holder
from heliograph.replication.ledger_keys import EntryKey, HolderKey
from tests.support.entries import FRESH
from tests.unit.control.fakes import report_row

TOLD = 1_700_000_000_000
KEY = "A->B/orders/0"
FILE = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
(FLOW,) = load(FILE, "mm2.properties").flows
ENTRY = replace(FRESH, source_next=90, target_next=80)


def lane(told_ms: int, source_end: int, remote_end: int, **changes: object) -> LaneStatus:
    ends = _Ends(FLOW, {("orders", 0): source_end}, {("A.orders", 0): remote_end})
    row = report_row(KEY, source_end=100, position=100, target_next=90, told_ms=TOLD, **changes)
    return _lane(KEY, ENTRY, row, ends, told_ms)


def numbers(found: LaneStatus) -> tuple[int, int, int, int, int]:
    assert found.lag == found.source_end - found.position
    return found.source_end, found.position, found.remote_end, found.lag, found.delta


def test_a_healthy_lane_under_load_is_not_behind_because_the_logs_are_newer_than_its_report() -> None:
    assert numbers(lane(TOLD + 900, 170, 155)) == (100, 100, 90, 0, -10)


@pytest.mark.parametrize("state", ["paused", "parked", "waiting"])
def test_what_waits_for_a_lane_that_nobody_reads_is_counted_to_the_sources_end_of_now(state: str) -> None:
    assert numbers(lane(TOLD + 900, 170, 90, state=state)) == (170, 100, 90, 70, -10)


def test_a_lane_whose_task_is_silent_is_behind_unless_its_copy_has_moved_since() -> None:
    assert numbers(lane(TOLD + 60_000, 170, 90)) == (170, 100, 90, 70, -10)
    assert numbers(lane(TOLD + 60_000, 101, 91)) == (100, 100, 90, 0, -10), "it was at rest, and a record came just now"


def test_while_nothing_runs_the_ledger_is_held_against_both_logs() -> None:
    found = lane(0, 170, 85)
    assert (found.source_end, found.position, found.remote_end, found.lag) == (170, 90, 85, 80)
    assert (found.state, found.target_lag, found.read_position) == ("stopped", 75, -1)


@pytest.mark.parametrize("row", [None, report_row(KEY, source_end=-1, position=-1, target_next=-1, told_ms=TOLD)])
def test_the_delta_of_a_lane_that_no_task_reported_is_the_ledgers_and_not_that_of_a_newer_log(row: object) -> None:
    ends = _Ends(FLOW, {("orders", 0): 10}, {("A.orders", 0): 10})
    found = _lane(KEY, FRESH, row, ends, TOLD)  # type: ignore[arg-type]
    assert (found.position, found.remote_end, found.delta) == (0, 10, 0)


# -- whether it runs ----------------------------------------------------------------------------------------------------

HELD = Holder("A->B", "north", 42, "r", TOLD - 600_000, TOLD, released=False, held=True, machine="elsewhere")
LEFT = replace(HELD, released=True)
WAIT_S, HOLD_MS = 90.0, 25_000
UNKNOWN_TOPIC, NOT_ALLOWED, NO_LEADER = 3, 29, 5


class Shut:
    """Two clusters that have a ledger, and answer a question for any other topic with an error."""

    def __init__(self, holder: Holder, telemetry: TopicView) -> None:
        self.cluster = Cluster("B", ("b:1",))
        self._telemetry = telemetry
        self._book = LedgerBook()
        for said in (HELD, holder):
            self._book.apply(str(HolderKey(said.flow, said.run)), encode_holder(said), 0)
        self._book.apply(str(EntryKey(ENTRY.lane, ENTRY.generation)), encode_entry(ENTRY), 1)

    def client(self, _: Cluster) -> Shut:
        return self

    def ledger(self, _: Cluster) -> Shut:
        return self

    async def refresh(self) -> LedgerBook:
        return self._book

    async def metadata(self, topics: Iterable[str]) -> dict[str, TopicView]:
        missing = TopicView("", {}, UNKNOWN_TOPIC)
        return {topic: self._telemetry if topic == TELEMETRY_TOPIC else missing for topic in topics}


def seen(holder: Holder, telemetry: TopicView, now_ms: int = TOLD) -> FlowStatus:
    return asyncio.run(flow_status(FLOW, cast(Warm, Shut(holder, telemetry)), WAIT_S, now_ms))


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (TopicView("", {}, NOT_ALLOWED), "this needs DESCRIBE on the topic __heliograph-telemetry"),
        (TopicView("", {}, NO_LEADER), "topic __heliograph-telemetry: error 5"),
        (TopicView("id", {1: Leader(1, 0)}), "topic __heliograph-telemetry: error 5"),
    ],
    ids=["not allowed", "refused", "without a leader"],
)
def test_telemetry_that_cannot_be_read_leaves_the_state_unknown_and_shows_the_ledger(
    view: TopicView, words: str
) -> None:
    found = seen(LEFT, view)
    assert found.as_json()["running"] is None
    assert words in found.trouble
    [row] = found.lanes
    assert (row.state, row.position) == ("unknown", 90), "that it stopped is not known"


@pytest.mark.parametrize("code", [UNKNOWN_TOPIC, 100])
def test_a_flow_that_was_left_and_has_no_telemetry_topic_does_not_run(code: int) -> None:
    found = seen(LEFT, TopicView("", {}, code))
    assert (found.running, found.trouble, found.host) == (False, "", "north")
    assert [row.state for row in found.lanes] == ["stopped"]


TELEMETRY = {"run": "r", "time_ms": TOLD}


def unheard(now_ms: int, holder: Holder | None = HELD, run: str = "r", gone: bool = False) -> str:
    telemetry = TELEMETRY | {"run": run}
    return _unheard(telemetry, holder, WAIT_S, now_ms, lambda machine, process: gone and machine == "elsewhere")


def test_a_flow_that_is_held_by_a_run_that_is_not_heard_is_unknown_until_the_hold_has_run_out() -> None:
    assert unheard(TOLD + 7_999) == "", "its telemetry is fresh"
    assert unheard(TOLD + 8_000) == "north, process 42, holds the flow and was not heard for 8 s"
    assert unheard(TOLD + HOLD_MS - 1) == "north, process 42, holds the flow and was not heard for 24 s"
    assert unheard(TOLD + HOLD_MS) == "", "after a kill -9 it is not running"
    assert not _is_running(TELEMETRY, HELD, TOLD + HOLD_MS)


def test_a_holder_that_was_never_heard_is_silent_since_it_began_whatever_another_run_said() -> None:
    begun = replace(HELD, since_ms=TOLD + 9_000, renewed_ms=TOLD + 11_000)
    just_now = "north, process 42, has just begun to hold the flow and has not reported yet"
    assert unheard(TOLD + 12_000, begun, "another") == unheard(TOLD + 16_999, begun, "another") == just_now
    assert unheard(TOLD + 17_000, begun, "another") == "north, process 42, holds the flow and was not heard for 8 s"


def test_a_holder_that_left_or_has_ended_on_this_machine_is_not_waited_for() -> None:
    assert unheard(TOLD + 9_000, LEFT) == unheard(TOLD + 9_000, None) == unheard(TOLD + 9_000, gone=True) == ""


def test_a_holder_without_telemetry_is_said_to_be_unknown_and_then_not_running() -> None:
    missing = TopicView("", {}, UNKNOWN_TOPIC)
    found = seen(HELD, missing, TOLD + HOLD_MS - 1)
    assert (found.as_json()["running"], found.host, found.process) == (None, "north", 42)
    assert found.trouble == "north, process 42, holds the flow and was not heard for 624 s"
    assert [row.state for row in found.lanes] == ["unknown"]
    over = seen(HELD, missing, TOLD + HOLD_MS)
    assert (over.running, over.trouble, [row.state for row in over.lanes]) == (False, "", ["stopped"])
