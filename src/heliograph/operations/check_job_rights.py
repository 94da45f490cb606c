"""What only jobs need, asked for one flow: heartbeats, offset syncs, checkpoints, groups, the canary, each where it is on.

Asks and changes nothing; the rest of the table is asked in check_rights.
"""

from __future__ import annotations

from dataclasses import dataclass

from heliograph.config.flows import FlowSettings
from heliograph.control.checkpoints import checkpoints_topic
from heliograph.control.group_positions import is_chosen
from heliograph.errors import BrokerRefused
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.consumer_groups import list_groups
from heliograph.kafka.grants import may_describe_groups, may_read_groups, topic_grants, try_create
from heliograph.operations.check_rights import OF_JOBS, Names, Rights, may, may_create
from heliograph.replication.canary import canary_topic, make_canary_topic
from heliograph.replication.checkpoints import make_checkpoints_topic
from heliograph.replication.filters import plain_names
from heliograph.replication.heartbeats import make_heartbeats_topic
from heliograph.replication.offset_syncs import make_syncs_topic
from heliograph.replication.permissions import NEEDS, Granted, On
from heliograph.replication.source_group import source_group
from heliograph.replication.topic_plan import CreateTopic


@dataclass(frozen=True)
class Doors:
    """The clusters of a flow as its jobs reach them."""

    source: ClusterClient
    source_writer: ClusterClient
    target: ClusterClient


async def job_rights(flow: FlowSettings, doors: Doors) -> tuple[Granted, ...]:
    """One answer for each need on what is only a job's; a trial has none of these jobs."""
    known: Rights = {}
    if not flow.flow.trial:
        known = await _heartbeats(flow, doors) | await _offset_syncs(flow, doors)
        known |= await _checkpoints(flow, doors.target) | await _groups(flow, doors)
        known |= await _watching(flow, doors)
    nothing = Names({})
    return tuple(
        Granted(need, known.get((need.on, need.operation), nothing).by_name) for need in NEEDS if need.on in OF_JOBS
    )


async def _heartbeats(flow: FlowSettings, doors: Doors) -> Rights:
    known: Rights = {}
    for on, client in ((On.SOURCE_HEARTBEATS, doors.source_writer), (On.TARGET_HEARTBEATS, doors.target)):
        for pulse in flow.jobs.heartbeats:
            if pulse.target == client.cluster.alias:
                known |= await _written(on, client, make_heartbeats_topic(pulse).topic)
    return known


async def _offset_syncs(flow: FlowSettings, doors: Doors) -> Rights:
    wanted = flow.jobs.offset_syncs
    if wanted is None:
        return {}
    on, client, other = On.SOURCE_SYNCS, doors.source_writer, flow.flow.target
    if not wanted.on_source:
        on, client, other = On.TARGET_SYNCS, doors.target, flow.flow.source
    name = flow.naming.offset_syncs_topic(other)
    return await _written(on, client, make_syncs_topic(name, client.cluster.alias, wanted.replication_factor).topic)


async def _checkpoints(flow: FlowSettings, target: ClusterClient) -> Rights:
    rules = flow.jobs.groups
    if not rules.checkpoints:
        return {}
    topic = make_checkpoints_topic(checkpoints_topic(flow), rules.checkpoints_replication_factor).topic
    return await _written(On.CHECKPOINTS, target, topic)


async def _watching(flow: FlowSettings, doors: Doors) -> Rights:
    watch = flow.jobs.watch
    group = [source_group(flow.flow)] if watch.source_group else []
    known: Rights = {(On.SOURCE_GROUP, "READ"): Names(await may_read_groups(doors.source, group))}
    if watch.canary is not None:
        known |= await _written(On.CANARY, doors.source_writer, make_canary_topic(canary_topic(flow.flow)).topic)
    return known


async def _written(on: On, client: ClusterClient, topic: CreateTopic) -> Rights:
    """Of a topic that a job makes where it is missing, reads and writes."""
    grants = await topic_grants(client, [topic.name])
    wishes = [] if grants[topic.name].exists else [topic]
    return {
        (on, "CREATE"): Names(may_create(await try_create(client, wishes))),
        (on, "WRITE"): Names(may("WRITE", grants)),
        (on, "READ"): Names(may("READ", grants)),
    }


async def _groups(flow: FlowSettings, doors: Doors) -> Rights:
    rules = flow.jobs.groups
    if not (rules.checkpoints or rules.sync):
        return {}
    names = await _chosen_groups(flow, doors.source)
    return {
        (On.SOURCE_GROUPS, "DESCRIBE"): Names(await may_describe_groups(doors.source, names)),
        (On.TARGET_GROUPS, "READ"): Names(await may_read_groups(doors.target, names if rules.sync else ())),
    }


async def _chosen_groups(flow: FlowSettings, source: ClusterClient) -> set[str]:
    """Those that brokers list, and those that the file names: brokers hide a group for which nothing is granted."""
    try:
        listed = {group.name for group in await list_groups(source) if is_chosen(flow, group)}
    except BrokerRefused:
        listed = set()  # a broker that is not ready: the job waits for it, a check asks for what the file names
    return listed | {name for name in plain_names(flow.jobs.groups.include) if flow.group_names.accepts(name)}
