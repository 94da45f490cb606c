"""What a run of a file would change on its clusters besides copying records: asked of both sides, and nothing done.

The same looks as a run's, without their second half. A flow that cannot be looked at says why, the others are told all the same.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from heliograph.config.flows import EngineSettings, FlowSettings, Settings
from heliograph.control.clock import Clock
from heliograph.control.flow_jobs import Ground, lasting_jobs, repeated_jobs
from heliograph.control.jobs import Job
from heliograph.control.planner import FlowPlanner
from heliograph.errors import HeliographError
from heliograph.kafka.slot import Warm
from heliograph.replication.topic_plan import AddPartitions, CreateTopic, Unnameable


@dataclass(frozen=True)
class Pending:
    """One change: by which job, of what, and why."""

    job: str
    subject: str
    what: str
    why: str


@dataclass
class FlowPending:
    """The changes of one flow; `troubles` are sentences about what could not be looked at."""

    flow: str
    actions: list[Pending] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Topics that cannot be copied: nothing that a run could change."""
    troubles: list[str] = field(default_factory=list)
    unseen: bool = False
    """Not even its topics could be looked at."""


async def pending(settings: Settings) -> list[FlowPending]:
    """For every enabled flow of the file."""
    warm = Warm()
    try:
        return list(await asyncio.gather(*(_flow(flow, settings.engine, warm) for flow in settings.flows)))
    finally:
        warm.close()


async def _flow(flow: FlowSettings, engine: EngineSettings, warm: Warm) -> FlowPending:
    found = FlowPending(flow.flow.name)
    planner = FlowPlanner(flow, engine)
    try:
        plan = await asyncio.to_thread(planner.discover)
        own = await asyncio.to_thread(planner.missing_own_topics)
    except (HeliographError, TimeoutError) as error:
        found.troubles.append(str(error) or "a cluster did not answer in time")
        found.unseen = True
        return found
    finally:
        planner.close()
    for action in (*own, *plan.actions):
        if isinstance(action, Unnameable):
            found.left_out.append(f"topic {action.topic}: {action.reason}")
        else:
            found.actions.append(_topic(action))
    found.troubles += [f"topic {topic}: {unread.reason}" for topic, unread in plan.unread.items()]
    ground = Ground(flow, lambda: plan, planner, warm, Clock(), lambda: None, lambda _: None, lambda _: None)
    for job in (*repeated_jobs(ground), *lasting_jobs(ground)):
        await _look(job, found)
    return found


async def _look(job: Job[Any], into: FlowPending) -> None:
    try:
        found = await job.look()
    except (HeliographError, TimeoutError) as error:
        into.troubles.append(f"{job.name}: {str(error) or 'a cluster did not answer in time'}")
        return
    into.troubles += [f"{job.name}: {trouble}" for trouble in found.troubles]
    into.actions += [Pending(job.name, each.subject, each.what, each.why) for each in found.actions if not each.routine]


def _topic(action: CreateTopic | AddPartitions) -> Pending:
    match action:
        case CreateTopic():
            plural = "" if action.partitions == 1 else "s"
            what = f"create with {action.partitions} partition{plural}"
        case AddPartitions():
            what = f"grow from {action.have} to {action.want} partitions"
    return Pending("topics", f"topic {action.name}", what, action.reason)
