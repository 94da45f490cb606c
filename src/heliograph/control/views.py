"""What the REST server is shown of a run, once a second: what changed since it was last shown, and nothing else.

Everything is a plain JSON value. The server merges the parts (rest/scene.py); this side never waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from heliograph.control.board import Board
from heliograph.control.flow_watch import FlowWatch
from heliograph.control.opening import OpenedFlow
from heliograph.control.telemetry import row_of

Part = Callable[[], Mapping[str, Any]]


class Views:
    """`parts` are further things to show, by name; each is asked every second and sent when it is another."""

    def __init__(self, board: Board, held: Callable[[str], Mapping[str, Any]]) -> None:
        self._board = board
        self._held = held
        self.parts: dict[str, Part] = {}
        self._shown: dict[str, Any] = {}
        self._flows: dict[str, Any] = {}
        self._opened: dict[str, OpenedFlow] = {}
        self._remote: dict[str, str] = {}
        """The remote topic of every planned lane."""
        self._lanes: set[str] = set()
        self._holds: object = None
        self._stopping: set[str] = set()
        """Lanes that are drained and not at rest yet: what is said of them may change without a report."""
        self._events = 0

    def begin_again(self) -> None:
        """Somebody new looks: the next view is whole."""
        self._shown, self._flows, self._opened = {}, {}, {}
        self._lanes, self._events = set(), 0

    def news(self, watches: list[FlowWatch], holds: object, events: list[tuple[int, Any]]) -> dict[str, Any]:
        """What changed: parts, flows, lanes, lanes that are gone, events."""
        anew = self._planned_anew(watches)
        if holds != self._holds:
            self._holds = holds
            anew |= self._remote.keys()
        changed = (self._board.changed & self._remote.keys()) | anew | (self._stopping & self._remote.keys())
        self._board.changed = set()
        gone = self._lanes - self._remote.keys()
        self._lanes = set(self._remote)
        found = {
            "parts": self._changed_parts(),
            "flows": self._changed_flows(watches),
            "lanes": [self._row(key) for key in sorted(changed)],
            "gone": sorted(gone),
            "events": [event.as_fields() for number, event in events if number > self._events],
        }
        self._events = events[-1][0] if events else 0
        return {name: value for name, value in found.items() if value}

    def _planned_anew(self, watches: list[FlowWatch]) -> set[str]:
        """The lanes of flows that were opened since the last look."""
        opened = {watch.name: watch.opened for watch in watches if watch.opened is not None}
        fresh = {name: one for name, one in opened.items() if self._opened.get(name) is not one}
        if fresh or opened.keys() != self._opened.keys():
            self._remote = {lane.id.key: lane.remote_topic for one in opened.values() for lane in one.plan.lanes}
        self._opened = opened
        return {lane.id.key for one in fresh.values() for lane in one.plan.lanes}

    def _changed_parts(self) -> dict[str, Any]:
        now = {name: dict(part()) for name, part in self.parts.items()}
        changed = {name: part for name, part in now.items() if self._shown.get(name) != part}
        self._shown = now
        return changed

    def _changed_flows(self, watches: list[FlowWatch]) -> dict[str, Any]:
        """None for those that are gone."""
        now = {watch.name: self._flow(watch) for watch in watches}
        changed: dict[str, Any] = {name: flow for name, flow in now.items() if self._flows.get(name) != flow}
        gone = dict.fromkeys(self._flows.keys() - now.keys())
        self._flows = now
        return changed | gone

    def _flow(self, watch: FlowWatch) -> dict[str, Any]:
        settings = watch.settings
        return {
            "flow": watch.name,
            "source": settings.flow.source,
            "target": settings.flow.target,
            "bootstrap": {one.alias: ",".join(one.bootstrap) for one in (settings.source, settings.target)},
            "opened": watch.opened is not None,
            "held": watch.turns.is_mine,
            **watch.turns.view(),
            "trouble": watch.trouble,
            "trouble_since_ms": watch.trouble_since_ms,
            "topics": dict(watch.opened.plan.remote) if watch.opened is not None else {},
            "throttle": settings.throttle,
            "wan_cost_per_gb": settings.wan_cost_per_gb,
            "throttle_topics": dict(settings.throttle_topics),
            "jobs": watch.jobs.standing(),
            "latency_ms": {
                "p50": self._board.latency(0.5, watch.name),
                "p99": self._board.latency(0.99, watch.name),
            },
        }

    def _row(self, key: str) -> dict[str, Any]:
        flow, topic, partition = key.rsplit("/", 2)
        place = {"topic": topic, "partition": int(partition), "flow": flow, "remote_topic": self._remote[key]}
        view, held = self._board.lanes.get(key), self._held(key)
        (self._stopping.add if held.get("state") == "draining" else self._stopping.discard)(key)
        opened = self._opened[flow]
        if view is not None:
            return {**row_of(view), **self._known(key, opened, view.row), **place, **held}
        why = opened.refused.get(key, "")
        said = {"lane": key, "state": "parked" if why else "waiting", "reason": why}
        return {**said, **self._known(key, opened, {}), **place, **held}

    def _known(self, key: str, opened: OpenedFlow, reported: Mapping[str, Any]) -> dict[str, Any]:
        """Where a lane is that no task has attached yet: by the ledger, and by where its source ends. Else it would not be behind."""
        entry = opened.entries.get(key)
        if entry is None or reported.get("position", -1) >= 0:
            return {}
        end, since_ms = self._board.ends.get(
            key, (opened.plan.ends.get((entry.lane.topic, entry.lane.partition), -1), 0)
        )
        behind = end > entry.source_next
        return {
            "position": entry.source_next,
            "source_end": max(end, entry.source_next),
            "target_next": entry.target_next,
            "waiting_since_ms": since_ms if behind else 0,
        }
