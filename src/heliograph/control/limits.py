"""The byte limits of a run: known by key, shared out among its tasks once a second, changed while it runs.

A limit holds for all tasks together. Each begins with an equal part; what one does not need goes to those that were held back
(replication/throttle.py decides). Knows the file only as settings that were read again; knows no brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from heliograph.config.flows import FlowSettings
from heliograph.control.conductor import TaskEnd
from heliograph.replication.throttle import Use, belongs, shares, topic_key
from heliograph.spark import line as words


class Limits:
    """What every task may read. `take` hears reports, `tell` gives out the shares."""

    def __init__(self, flows: Sequence[FlowSettings], slots: int) -> None:
        self._slots = slots
        self._limits = _limits(flows)
        self._uses: dict[str, dict[str, Use]] = {}
        self._told = bool(self._limits)

    def beginning(self, flow: str) -> tuple[tuple[str, float], ...]:
        """What a slot may read of a flow before it hears from the driver."""
        mine = {key: limit for key, limit in self._limits.items() if belongs(f"{key}/", flow)}
        return tuple((key, limit / self._slots) for key, limit in mine.items())

    def take(self, attempt: str, slot: Mapping[str, Any]) -> None:
        """A task's report, about once a second: what it spent since the last one, and what held it back."""
        about = slot.get("throttle", {"spent": {}, "held": []})
        keys = {*about["spent"], *about["held"]}
        self._uses[attempt] = {key: Use(about["spent"].get(key, 0), key in about["held"]) for key in keys}

    def tell(self, tasks: Iterable[TaskEnd]) -> None:
        """Every task its share of every limit that concerns it; once more without any when the last one is gone."""
        if not self._limits and not self._told:
            return
        # One that has not said yet which lanes it has would be told that nothing limits it; it has its part from its order.
        tasks = [task for task in tasks if task.ready]
        self._told = bool(self._limits)
        self._uses = {task.attempt: self._uses[task.attempt] for task in tasks if task.attempt in self._uses}
        rates: dict[str, dict[str, float]] = {task.attempt: {} for task in tasks}
        for key, limit in self._limits.items():
            for attempt, share in shares(limit, self._users(key, tasks)).items():
                rates[attempt][key] = share
        for task in tasks:
            task.line.send(words.throttle(rates[task.attempt]))

    def _users(self, key: str, tasks: Sequence[TaskEnd]) -> dict[str, Use]:
        """A task that has not reported yet may want everything."""
        idle = Use(0, False)
        return {
            task.attempt: self._uses[task.attempt].get(key, idle) if task.attempt in self._uses else Use(0, True)
            for task in tasks
            if any(belongs(lane, key) for lane in task.lanes)
        }

    def change(self, flows: Sequence[FlowSettings]) -> None:
        """The file was read again."""
        now = _limits(flows)
        self._told = self._told or now != self._limits
        self._limits = now


def _limits(flows: Iterable[FlowSettings]) -> dict[str, int]:
    found: dict[str, int] = {}
    for flow in flows:
        if flow.throttle:
            found[flow.flow.name] = flow.throttle
        found |= {topic_key(flow.flow.name, topic): limit for topic, limit in flow.throttle_topics if limit}
    return found


def socket_sentence(name: str, asked: int, granted: int) -> str:
    """What the system made of a socket buffer; Linux cuts it in silence at net.core.rmem_max and wmem_max."""
    wish = "the system's choice" if asked < 0 else f"{asked:,} bytes"
    less = "; net.core.rmem_max or wmem_max of this system cuts it" if 0 <= granted < asked else ""
    return f"{name}: socket buffer of {wish} asked, {granted:,} bytes granted{less}"
