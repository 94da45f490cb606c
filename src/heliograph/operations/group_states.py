"""How every group of a file's flows stands, for each partition, with the reason: the look of the job of group offsets, alone.

Reads only, and needs no running mirror. A flow that cannot be looked at says why, the others are told all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from heliograph.config.flows import EngineSettings, FlowSettings
from heliograph.control.clock import Clock
from heliograph.control.group_offsets import GroupOffsetsJob
from heliograph.control.group_positions import GroupPositions
from heliograph.control.planner import FlowPlanner
from heliograph.errors import HeliographError
from heliograph.kafka.slot import Warm
from heliograph.replication.group_offsets import GroupState


@dataclass(frozen=True)
class FlowGroups:
    """Of one flow; `troubles` are sentences about what could not be looked at."""

    flow: str
    states: Sequence[GroupState]
    troubles: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        return {"groups": [asdict(row) for row in self.states], "group_troubles": list(self.troubles)}


async def group_states(flows: Sequence[FlowSettings], engine: EngineSettings) -> dict[str, FlowGroups]:
    """By flow."""
    warm = Warm()
    try:
        found = await asyncio.gather(*(_flow(flow, engine, warm) for flow in flows))
        return {groups.flow: groups for groups in found}
    finally:
        warm.close()


async def _flow(flow: FlowSettings, engine: EngineSettings, warm: Warm) -> FlowGroups:
    name = flow.flow.name
    planner = FlowPlanner(flow, engine)
    try:
        plan = await asyncio.to_thread(planner.discover)
        clock = Clock()
        job = GroupOffsetsJob(flow, GroupPositions(flow, lambda: plan, warm, clock), warm, clock)
        found = await job.look()
    except (HeliographError, TimeoutError) as error:
        return FlowGroups(name, (), [str(error) or "a cluster did not answer in time"])
    finally:
        planner.close()
    return FlowGroups(name, job.states, found.troubles)
