"""Every permission of the table asked for one flow: which resources it has now, and what brokers say of each.

Asks and changes nothing. What follows from a missing one is decided in replication/permissions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heliograph.config.flows import FlowSettings
from heliograph.errors import BrokerRefused
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.claims import transactional_id
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.dead_letter import dead_letter_wish
from heliograph.kafka.grants import (
    TOPIC_REFUSED,
    Refusal,
    TopicGrants,
    cluster_operations,
    may_commit_as_group,
    may_describe_group,
    may_use_transactional_id,
    topic_grants,
    try_create,
    visible_topics,
)
from heliograph.kafka.groups import connect_groups
from heliograph.model.clusters import Cluster
from heliograph.model.topics import ConfigValue
from heliograph.replication.canary import MakeCanaryTopic, canary_topic
from heliograph.replication.heartbeats import MakeTopic
from heliograph.replication.mm2_live import HIDDEN, is_dedicated
from heliograph.replication.mm2_progress import (
    configs_to_read,
    default_configs_topic,
    default_group,
    default_topic,
    offsets_topic,
    topics_to_read,
)
from heliograph.replication.permissions import NEEDS, Granted, Need, On
from heliograph.replication.policies import dead_letter_topic
from heliograph.replication.source_group import source_group
from heliograph.replication.starts import From
from heliograph.replication.topic_plan import CreateTopic

Grants = Mapping[str, TopicGrants]
Configs = Mapping[str, dict[str, ConfigValue]]


@dataclass(frozen=True)
class Asked:
    """What brokers said of source topics, remote topics and Heliograph's own, and of creating those that are missing."""

    source: Grants
    remote: Grants
    own: Grants
    created: Mapping[str, Refusal | None]
    growing: frozenset[str]
    """Remote topics that must grow now."""


@dataclass(frozen=True)
class _Names:
    """Resources by name: granted or not, and which of them cannot be done without."""

    by_name: Mapping[str, bool]
    urgent: frozenset[str] = frozenset()
    unseen: frozenset[str] = frozenset()


_WRITTEN_BY_JOBS = (On.SOURCE_HEARTBEATS, On.TARGET_HEARTBEATS, On.CANARY)
_Rights = dict[tuple[On, str], _Names]


async def rights(flow: FlowSettings, source: ClusterClient, target: ClusterClient, asked: Asked) -> tuple[Granted, ...]:
    """One answer for each need of the table but those of topics that jobs write."""
    known = await _clusters(source, target) | await _groups(flow, source, target)
    known |= await _mirror_maker_topics(flow, target) | await _dead_letters(flow, target, list(asked.remote))
    identity = transactional_id(flow.flow.name)
    known[On.TRANSACTIONAL_ID, "WRITE"] = _Names({identity: await may_use_transactional_id(target, identity)})

    def answer(need: Need) -> Granted:
        match need.on:
            case On.SOURCE_TOPICS:
                return Granted(need, _by_name(need, asked.source, {}))
            case On.REMOTE_TOPICS if not _is_for(flow, need):
                return Granted(need, {})
            case On.REMOTE_TOPICS:
                urgent = asked.growing if need.operation == "ALTER" else frozenset[str]()
                return Granted(need, _by_name(need, asked.remote, asked.created), urgent)
            case On.OWN_TOPICS:
                return Granted(need, _by_name(need, asked.own, asked.created))
            case other:
                names = known[other, need.operation]
                return Granted(need, names.by_name if _is_for(flow, need) else {}, names.urgent, names.unseen)

    return tuple(answer(need) for need in NEEDS if need.on not in _WRITTEN_BY_JOBS)


def _is_for(flow: FlowSettings, need: Need) -> bool:
    """What only a job needs is needed where the flow has it."""
    jobs = flow.jobs
    switches = {
        (On.REMOTE_TOPICS, "ALTER_CONFIGS"): jobs.sync_configs,
        (On.REMOTE_TOPICS, "DELETE"): jobs.sync_deletes,
        (On.TARGET_CLUSTER, "ALTER"): jobs.sync_acls and not flow.flow.trial,
    }
    return switches.get((need.on, need.operation), True)


async def writing_rights(
    flow: FlowSettings, source_writer: ClusterClient | None, target: ClusterClient
) -> tuple[Granted, ...]:
    """Of topics that jobs write, asked as they are written; nothing without a client that writes to the source."""
    if source_writer is None:
        return ()
    wishes: list[tuple[On, ClusterClient, list[CreateTopic]]] = [
        (On.SOURCE_HEARTBEATS, source_writer, _heartbeats(flow, flow.flow.source)),
        (On.TARGET_HEARTBEATS, target, _heartbeats(flow, flow.flow.target)),
        (On.CANARY, source_writer, _canary(flow)),
    ]
    known: _Rights = {}
    for on, client, topics in wishes:
        grants = await topic_grants(client, [topic.name for topic in topics]) if topics else {}
        missing = [topic for topic in topics if not grants[topic.name].exists]
        known[on, "CREATE"] = _Names(_may_create(await try_create(client, missing)))
        known[on, "WRITE"] = _Names(_may("WRITE", grants))
    return tuple(Granted(need, known[need.on, need.operation].by_name) for need in NEEDS if need.on in _WRITTEN_BY_JOBS)


def _heartbeats(flow: FlowSettings, alias: str) -> list[CreateTopic]:
    pulses = [] if flow.flow.trial else [pulse for pulse in flow.jobs.heartbeats if pulse.target == alias]
    return [MakeTopic(pulse).topic for pulse in pulses]


def _canary(flow: FlowSettings) -> list[CreateTopic]:
    is_on = flow.jobs.watch.canary is not None and not flow.flow.trial
    return [MakeCanaryTopic(canary_topic(flow.flow)).topic] if is_on else []


def _by_name(need: Need, grants: Grants, created: Mapping[str, Refusal | None]) -> dict[str, bool]:
    """CREATE is needed only where a topic is missing; whether it is granted was seen by trying."""
    if need.operation == "CREATE":
        return _may_create({name: refusal for name, refusal in created.items() if name in grants})
    return _may(need.operation, grants)


def _may(operation: str, grants: Grants) -> dict[str, bool]:
    return {name: operation in found.operations for name, found in grants.items()}


def _may_create(tried: Mapping[str, Refusal | None]) -> dict[str, bool]:
    return {name: refusal is None or refusal.code != TOPIC_REFUSED for name, refusal in tried.items()}


async def _clusters(source: ClusterClient, target: ClusterClient) -> _Rights:
    sides = ((On.SOURCE_CLUSTER, source), (On.TARGET_CLUSTER, target))
    return {
        (on, operation): _Names({"": granted})
        for on, client in sides
        for operation, granted in (await cluster_operations(client)).items()
    }


async def _groups(flow: FlowSettings, source: ClusterClient, target: ClusterClient) -> _Rights:
    """The group that `start.from` names; MirrorMaker 2's own, and those of Connect clusters as far as they are listed."""
    starts = [flow.start_from, *(start for _, start in flow.topic_starts)]
    wanted = sorted({start.argument for start in starts if start is not None and start.kind is From.GROUP})
    try:
        listed = await connect_groups(target)
    except BrokerRefused:
        listed = []  # the check has a line of its own for what the groups tell
    own = flow.mm2.group or default_group(flow.flow.source)
    others = {group.name for group in listed if not is_dedicated(group.name)}
    positions = [source_group(flow.flow)] if flow.jobs.watch.source_group and not flow.flow.trial else []
    return {
        (On.SOURCE_GROUP, "READ"): _Names({name: await may_commit_as_group(source, name) for name in positions}),
        (On.START_GROUP, "DESCRIBE"): _Names({name: await may_describe_group(source, name) for name in wanted}),
        (On.MM2_GROUP, "DESCRIBE"): _Names(
            {name: await may_describe_group(target, name) for name in sorted({own, *others})},
            frozenset(group.name for group in listed if group.state == HIDDEN and group.name == own),
        ),
    }


async def _mirror_maker_topics(flow: FlowSettings, target: ClusterClient) -> _Rights:
    alias, mm2 = flow.flow.source, flow.mm2
    seen = await visible_topics(target)
    offsets = topics_to_read(seen, alias, mm2.topic) or [mm2.topic or default_topic(alias)]
    configs = configs_to_read({name: grants.partitions for name, grants in seen.items()}, alias)
    grants = await topic_grants(target, [*offsets, *(configs or [default_configs_topic(alias)])])
    others = await _not_compacted(target.cluster, {name: grants[name] for name in offsets})
    kept = {name: grants[name] for name in offsets if name not in others}
    there = {name: found for name, found in kept.items() if found.exists}
    missing = [name for name in kept if name not in there]
    unseen = frozenset(name for name, found in grants.items() if not found.exists)
    tried = await try_create(target, [offsets_topic(name, mm2.topic_partitions, 1) for name in missing])
    return {
        (On.MM2_OFFSETS, "READ"): _Names(_may("READ", kept), frozenset(there), unseen),
        (On.MM2_OFFSETS, "DESCRIBE_CONFIGS"): _Names(_may("DESCRIBE_CONFIGS", there)),
        (On.MM2_OFFSETS, "CREATE"): _Names(_may_create(tried)),
        (On.MM2_OFFSETS, "WRITE"): _Names(_may("WRITE", kept)),
        (On.MM2_CONFIGS, "READ"): _Names(
            _may("READ", {name: found for name, found in grants.items() if name not in offsets}), unseen=unseen
        ),
    }


async def _not_compacted(cluster: Cluster, grants: Grants) -> set[str]:
    """Topics that are known to hold no progress, whatever they are called."""
    configs = await read_configs(cluster, describable(grants))
    return {name for name, found in configs.items() if "compact" not in (found["cleanup.policy"].value or "")}


async def _dead_letters(flow: FlowSettings, target: ClusterClient, remote: Sequence[str]) -> _Rights:
    wanted = remote if flow.policies.bad_record == "dead-letter" else []
    names = [letters for name in wanted if (letters := dead_letter_topic(name))]
    grants = await topic_grants(target, names) if names else {}
    wishes = [dead_letter_wish(name, 1) for name, found in grants.items() if not found.exists]
    return {
        (On.DEAD_LETTERS, "CREATE"): _Names(_may_create(await try_create(target, wishes))),
        (On.DEAD_LETTERS, "WRITE"): _Names(_may("WRITE", grants)),
    }


def describable(grants: Grants) -> list[str]:
    return [name for name, found in grants.items() if found.exists and "DESCRIBE_CONFIGS" in found.operations]


async def read_configs(cluster: Cluster, names: Sequence[str]) -> Configs:
    return await asyncio.to_thread(_read_configs, cluster, names) if names else {}


def _read_configs(cluster: Cluster, names: Sequence[str]) -> Configs:
    with ClusterAdmin(cluster) as admin:
        return admin.topic_configs(names)
