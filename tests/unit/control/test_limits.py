"""Limits of a run: begun in equal parts, moved to where they are wanted, changed when the file is saved."""

from __future__ import annotations

from typing import Any, cast

from heliograph.config.flows import Settings
from heliograph.config.load import load
from heliograph.control.conductor import TaskEnd
from heliograph.control.limits import Limits, socket_sentence
from heliograph.spark.line import Line
from tests.unit.control.fakes import FakeLine

BASE = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"


def settings(*lines: str) -> Settings:
    return load(BASE + "\n".join(lines), "mm2.properties")


def limits(*lines: str, slots: int = 2) -> Limits:
    return Limits(settings(*lines).flows, slots)


class Task:
    def __init__(self, attempt: str, *lanes: str) -> None:
        self.line = FakeLine()
        self.end = TaskEnd(cast(Line, self.line), 1, 0, attempt, 1, set(lanes), ready=True)

    def told(self) -> Any:
        return self.line.said("throttle")[-1]["rates"]


def report(spent: dict[str, int], *held: str) -> dict[str, Any]:
    return {"throttle": {"spent": spent, "held": list(held)}}


def test_without_limits_nobody_is_told_anything() -> None:
    task = Task("one", "A->B/orders/0")
    keeper = limits()
    keeper.take("one", {})
    keeper.tell([task.end])
    assert task.line.sent == []
    assert keeper.beginning("A->B") == ()


def test_every_slot_begins_with_an_equal_part() -> None:
    keeper = limits("A->B.throttle.bytes.per.second = 100", "A->B.topic.orders.throttle.bytes.per.second = 10", slots=4)
    assert dict(keeper.beginning("A->B")) == {"A->B": 25, "A->B/orders": 2.5}
    assert keeper.beginning("A->Bc") == ()


def test_a_limit_moves_to_the_task_that_is_held_back() -> None:
    one, other = Task("one", "A->B/orders/0"), Task("other", "A->B/orders/1", "A->B/payments/0")
    keeper = limits("throttle.bytes.per.second = 1000", "A->B.topic.payments.throttle.bytes.per.second = 30")
    keeper.tell([one.end, other.end])
    assert (one.told(), other.told()) == ({"A->B": 500}, {"A->B": 500, "A->B/payments": 30})
    keeper.take("one", report({"A->B": 500}, "A->B"))
    keeper.take("other", report({}))
    keeper.tell([one.end, other.end])
    assert one.told() == {"A->B": 950}
    assert other.told() == {"A->B": 50, "A->B/payments": 30}


def test_a_task_that_has_not_named_its_lanes_keeps_what_it_began_with() -> None:
    """It was told of no limit then, and copied without any until the next second."""
    one, early = Task("one", "A->B/orders/0"), Task("early")
    early.end.ready = False
    limits("throttle.bytes.per.second = 1000").tell([one.end, early.end])
    assert one.told() == {"A->B": 1000}
    assert early.line.sent == []


def test_a_task_that_is_gone_leaves_its_part_to_the_others() -> None:
    one, other = Task("one", "A->B/orders/0"), Task("other", "A->B/orders/1")
    keeper = limits("throttle.bytes.per.second = 1000")
    keeper.take("one", report({"A->B": 500}, "A->B"))
    keeper.take("other", report({"A->B": 500}, "A->B"))
    keeper.tell([one.end, other.end])
    assert one.told() == {"A->B": 500}
    keeper.tell([one.end])
    assert one.told() == {"A->B": 1000}


def test_limits_that_change_reach_the_tasks_and_so_does_their_end() -> None:
    task = Task("one", "A->B/orders/0")
    keeper = limits("throttle.bytes.per.second = 1000")
    lines = ("throttle.bytes.per.second = 2000000", "A->B.topic.orders.throttle.bytes.per.second = 7")
    keeper.change(settings(*lines).flows)
    keeper.tell([task.end])
    assert task.told() == {"A->B": 2_000_000, "A->B/orders": 7}
    keeper.change(settings().flows)
    keeper.tell([task.end])
    assert task.told() == {}
    said = len(task.line.sent)
    keeper.tell([task.end])
    assert len(task.line.sent) == said


def test_a_limit_that_was_not_there_at_the_start_reaches_the_tasks() -> None:
    task = Task("one", "A->B/orders/0")
    keeper = limits()
    keeper.change(settings().flows)
    keeper.change(settings("throttle.bytes.per.second = 9").flows)
    keeper.tell([task.end])
    assert task.told() == {"A->B": 9}


def test_socket_buffers_are_told_as_asked_and_as_granted() -> None:
    assert socket_sentence("reading for A->B", 65_536, 65_536) == (
        "reading for A->B: socket buffer of 65,536 bytes asked, 65,536 bytes granted"
    )
    assert "cuts it" in socket_sentence("writing to B", 4_194_304, 212_992)
    assert socket_sentence("writing to B", -1, 87_040) == (
        "writing to B: socket buffer of the system's choice asked, 87,040 bytes granted"
    )
