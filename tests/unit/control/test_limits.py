"""Limits of a run: begun in equal parts, moved to where they are wanted, changed when the file is saved."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

from heliograph.config.flows import Settings
from heliograph.config.load import load
from heliograph.control.conductor import TaskEnd
from heliograph.control.limits import FileChanges, Limits, socket_sentence
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
        self.end = TaskEnd(cast(Line, self.line), 1, 0, attempt, 1, set(lanes))

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


def test_a_task_that_is_gone_leaves_its_part_to_the_others() -> None:
    one, other = Task("one", "A->B/orders/0"), Task("other", "A->B/orders/1")
    keeper = limits("throttle.bytes.per.second = 1000")
    keeper.take("one", report({"A->B": 500}, "A->B"))
    keeper.take("other", report({"A->B": 500}, "A->B"))
    keeper.tell([one.end, other.end])
    assert one.told() == {"A->B": 500}
    keeper.tell([one.end])
    assert one.told() == {"A->B": 1000}


def test_a_changed_file_changes_limits_and_nothing_else() -> None:
    task = Task("one", "A->B/orders/0")
    keeper = limits("throttle.bytes.per.second = 1000")
    assert keeper.change(
        settings("throttle.bytes.per.second = 2000000", "A->B.topic.orders.throttle.bytes.per.second = 7")
    ) == [
        "the limit of A->B is 2,000,000 bytes per second, it was 1,000 bytes per second",
        "the limit of A->B/orders is 7 bytes per second, it was none",
    ]
    keeper.tell([task.end])
    assert task.told() == {"A->B": 2_000_000, "A->B/orders": 7}
    assert keeper.change(settings("A->B.topics = orders")) == [
        "the limit of A->B is none, it was 2,000,000 bytes per second",
        "the limit of A->B/orders is none, it was 7 bytes per second",
        "other options of A->B changed too: they count from the next start",
    ]
    keeper.tell([task.end])
    assert task.told() == {}
    said = len(task.line.sent)
    keeper.tell([task.end])
    assert len(task.line.sent) == said


def test_a_limit_that_was_not_there_at_the_start_reaches_the_tasks() -> None:
    task = Task("one", "A->B/orders/0")
    keeper = limits()
    assert keeper.change(settings()) == []
    keeper.change(settings("throttle.bytes.per.second = 9"))
    keeper.tell([task.end])
    assert task.told() == {"A->B": 9}


def test_a_file_is_noticed_once_for_each_time_it_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text("a")
    changes = FileChanges(str(path))
    assert not changes.noticed()
    os.utime(path, ns=(1, 1))
    assert changes.noticed()
    assert not changes.noticed()
    path.unlink()
    assert not changes.noticed()
    path.write_text("b")
    os.utime(path, ns=(2, 2))
    assert changes.noticed()
    assert not FileChanges(str(tmp_path / "nothing")).noticed()


def test_socket_buffers_are_told_as_asked_and_as_granted() -> None:
    assert socket_sentence("reading for A->B", 65_536, 65_536) == (
        "reading for A->B: socket buffer of 65,536 bytes asked, 65,536 bytes granted"
    )
    assert "cuts it" in socket_sentence("writing to B", 4_194_304, 212_992)
    assert socket_sentence("writing to B", -1, 87_040) == (
        "writing to B: socket buffer of the system's choice asked, 87,040 bytes granted"
    )
