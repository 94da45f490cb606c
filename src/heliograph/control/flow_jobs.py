"""The jobs of one flow: which there are, and what each needs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from heliograph.config.flows import FlowSettings
from heliograph.control.acl_sync import AclSyncJob
from heliograph.control.canary import CanaryJob
from heliograph.control.checkpoints import CheckpointJob
from heliograph.control.clock import Clock
from heliograph.control.config_sync import ConfigSyncJob
from heliograph.control.group_offsets import GroupOffsetsJob
from heliograph.control.group_positions import GroupPositions
from heliograph.control.heartbeats import HeartbeatJob, Place
from heliograph.control.jobs import Job
from heliograph.control.lag_watch import LagWatch
from heliograph.control.offset_syncs import OffsetSyncJob, SyncsPlace
from heliograph.control.planner import FlowPlan, FlowPlanner
from heliograph.control.source_group import SourceGroupJob
from heliograph.control.topic_deletes import TopicDeletesJob
from heliograph.kafka.client import Partition
from heliograph.kafka.slot import Warm
from heliograph.model.events import Event
from heliograph.replication.heartbeats import Pulse


@dataclass(frozen=True)
class Ground:
    """What jobs stand on: a flow, and its plan as it is now. `look_again` has the flow planned anew soon, `topic_made` every
    flow out of the cluster where a job made a topic.
    """

    settings: FlowSettings
    plan: Callable[[], FlowPlan | None]
    planner: FlowPlanner
    warm: Warm
    clock: Clock
    look_again: Callable[[], None]
    topic_made: Callable[[str], None]
    tell: Callable[[Event], None]
    rows: Callable[[], Iterable[Mapping[str, Any]]] = tuple
    """The flow's lanes as their tasks last told of them."""
    positions: Callable[[], Mapping[Partition, int]] = dict
    """What the target has acknowledged, by source partition."""
    before: Callable[[str], Job[Any] | None] = lambda _: None
    """A job as it was before settings changed, by its name."""


def repeated_jobs(ground: Ground) -> list[Job[Any]]:
    """Those that bring something in step: also a run that ends by itself does them, once."""
    return [*_config_jobs(ground), *_acl_jobs(ground)]


def _config_jobs(ground: Ground) -> list[Job[Any]]:
    if not ground.settings.jobs.sync_configs:
        return []
    ledger = ground.warm.ledger(ground.settings.target)
    return [ConfigSyncJob(ground.settings, ground.plan, ledger, ground.clock, ground.look_again)]


def _acl_jobs(ground: Ground) -> list[Job[Any]]:
    if not ground.settings.jobs.sync_acls or ground.settings.flow.trial:
        return []  # who may read a mirror need not read its trial
    return [AclSyncJob(ground.settings, ground.plan, ground.planner, ground.warm, ground.clock)]


def lasting_jobs(ground: Ground) -> list[Job[Any]]:
    """Those that only make sense while a run goes on, and those that tell how far it came."""
    return [*_heartbeat_jobs(ground), *_delete_jobs(ground), *closing_jobs(ground), *_watching_jobs(ground)]


def closing_jobs(ground: Ground) -> list[Job[Any]]:
    """Those that tell how far records are copied: a run that ends by itself does them once, when all is copied."""
    return [*_offset_sync_jobs(ground), *_group_jobs(ground)]


def companions(jobs: Iterable[Job[Any]]) -> Iterator[Coroutine[Any, Any, None]]:
    """What runs beside the turns of a job."""
    return (job.read() for job in jobs if isinstance(job, CanaryJob))


def parting_jobs(ground: Ground) -> list[Job[Any]]:
    """Those that have a last turn when nothing of the flow is carried any more."""
    wanted = ground.settings.jobs.watch.source_group and not ground.settings.flow.trial
    return [_source_group(ground)] if wanted else []


def _source_group(ground: Ground) -> SourceGroupJob:
    settings = ground.settings
    return SourceGroupJob(settings, ground.positions, ground.warm.client(settings.source), ground.clock)


def _watching_jobs(ground: Ground) -> Iterator[Job[Any]]:
    settings, watch = ground.settings, ground.settings.jobs.watch
    if settings.flow.trial:
        return  # it runs beside a mirror that is watched already
    if watch.source_group or watch.source_readonly:
        yield _source_group(ground)
    if watch.lag_limit_s:
        yield LagWatch(settings, ground.rows, ground.clock, ground.tell)
    if watch.canary is not None:
        canary = CanaryJob(settings, ground.rows, ground.warm, ground.clock, ground.look_again, ground.tell)
        canary.succeed(ground.before(canary.name))
        yield canary


def _group_jobs(ground: Ground) -> list[Job[Any]]:
    settings = ground.settings
    if settings.flow.trial:
        return []  # it runs beside a mirror that looks after groups already
    positions = GroupPositions(settings, ground.plan, ground.warm, ground.clock)
    jobs: list[Job[Any]] = []
    if settings.jobs.groups.checkpoints:
        jobs.append(CheckpointJob(settings, positions, ground.warm, ground.clock, ground.tell))
    if settings.jobs.groups.sync:
        jobs.append(GroupOffsetsJob(settings, positions, ground.warm, ground.clock))
    return jobs


def _delete_jobs(ground: Ground) -> list[Job[Any]]:
    if not ground.settings.jobs.sync_deletes:
        return []
    return [TopicDeletesJob(ground.settings, ground.plan, ground.warm, ground.clock, ground.tell)]


def _offset_sync_jobs(ground: Ground) -> list[Job[Any]]:
    settings, wanted = ground.settings, ground.settings.jobs.offset_syncs
    if wanted is None or settings.flow.trial:
        return []  # a trial runs beside a mirror that writes them already
    flow = settings.flow
    if wanted.on_source:
        client, admin, other = ground.warm.client(settings.source_writer), settings.source_admin, flow.target
    else:
        client, admin, other = ground.warm.client(settings.target), settings.target_admin, flow.source
    place = SyncsPlace(settings.naming.offset_syncs_topic(other), client, admin)
    return [OffsetSyncJob(wanted, place, ground.plan, ground.warm.ledger(settings.target), ground.clock)]


def _heartbeat_jobs(ground: Ground) -> list[Job[Any]]:
    if ground.settings.flow.trial:
        return []  # it runs beside a mirror that writes heartbeats already
    return [_heartbeats(ground, pulse) for pulse in ground.settings.jobs.heartbeats]


def _heartbeats(ground: Ground, pulse: Pulse) -> HeartbeatJob:
    settings = ground.settings
    on_source = pulse.target == settings.flow.source
    writer, admin = (
        (settings.source_writer, settings.source_admin) if on_source else (settings.target, settings.target_admin)
    )
    place = Place(ground.warm.client(writer), admin)
    return HeartbeatJob(pulse, place, ground.clock, lambda: ground.topic_made(pulse.target))
