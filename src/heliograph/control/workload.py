"""What is to be carried now: the lanes of all flows, less those that are done, refused or stopped by somebody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from heliograph.control.board import Board
from heliograph.control.epochs import Work, way_to
from heliograph.control.flow_watch import FlowWatch
from heliograph.control.limits import Limits
from heliograph.control.outcome import Outcome
from heliograph.control.planner import flow_rules
from heliograph.control.steering import Steering
from heliograph.model.clusters import Cluster
from heliograph.model.lanes import Lane, LaneId


class Workload:
    """Asked before each epoch, and whenever the lanes may have changed."""

    def __init__(
        self, watches: Sequence[FlowWatch], outcome: Outcome, steering: Steering, limits: Limits, board: Board
    ) -> None:
        self._watches = watches
        self._outcome = outcome
        self._steering = steering
        self._limits = limits
        self._board = board
        self.until_caught_up = False

    def now(self) -> Work:
        lanes: list[Lane] = []
        until: dict[str, int] = {}
        planned = set(self._outcome.planned())
        flows = {}
        clusters: dict[Cluster, str] = {}
        for watch in self._watches:
            if watch.opened is None:
                continue
            plan = watch.opened.plan
            source, target = (way_to(cluster, clusters) for cluster in (watch.settings.source, watch.settings.target))
            rules = flow_rules(plan, self._limits.beginning(plan.name))
            flows[plan.name] = replace(rules, source=source, target=target)
            for lane in plan.lanes:
                key = lane.id.key
                if key in watch.opened.refused or key in self._outcome.done or key not in watch.opened.entries:
                    continue
                if self._steering.is_stopped(lane.id, self._row(key)):
                    continue
                if (hold := self._steering.hold_on(lane.id)) is not None:
                    until[key] = hold.end_of(lane.id)
                if self.until_caught_up:
                    if watch.first is None or key not in planned:
                        continue  # made since; what was planned and refused at first is carried once it may be
                    until[key] = watch.first.plan.ends[lane.id.topic, lane.id.partition]
                lanes.append(lane)
        return Work(tuple(lanes), until, {name: cluster for cluster, name in clusters.items()}, flows)

    def held(self, key: str, is_carried: bool) -> dict[str, Any]:
        """What is to be said of a lane that somebody stopped; nothing of others."""
        if not self._steering.amended.holds:
            return {}
        flow, topic, partition = key.rsplit("/", 2)
        lane = LaneId(flow, topic, int(partition))
        hold = self._steering.hold_on(lane)
        if hold is None:
            return {}
        # Between two tasks nobody carries a lane that is to be drained: it is not there yet. One that is to be paused is
        # carried for a moment longer, until what was read of it is sent.
        is_there = not is_carried and self._steering.is_stopped(lane, self._row(key))
        return {"state": "paused" if is_there else "draining", "reason": hold.why, "since_ms": hold.since_ms}

    def _row(self, key: str) -> dict[str, Any]:
        view = self._board.lanes.get(key)
        return view.row if view is not None else {}
