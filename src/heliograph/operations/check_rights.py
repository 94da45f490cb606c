"""Every permission of the table asked for one flow: which resources it has now, and what brokers say of each.

Asks and changes nothing. What follows from a missing one is decided in replication/permissions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heliograph.config.flows import FlowSettings
from heliograph.errors import BrokerRefused
from heliograph.kafka.admin import ClusterAdmin, internal_topics
from heliograph.kafka.claims import transactional_id
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.dead_letter import dead_letter_wish
from heliograph.kafka.grants import (
    TOPIC_REFUSED,
    Refusal,
    TopicGrants,
    cluster_operations,
    may_describe_groups,
    may_use_transactional_id,
    topic_grants,
    try_create,
    visible_topics,
)
from heliograph.kafka.groups import connect_groups
from heliograph.kafka.ledger import LEDGER_TOPIC
from heliograph.model.clusters import Cluster
from heliograph.model.topics import ConfigValue
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
from heliograph.replication.starts import From

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
class Names:
    """Resources by name: granted or not, and which of them cannot be done without."""

    by_name: Mapping[str, bool]
    urgent: frozenset[str] = frozenset()
    unseen: frozenset[str] = frozenset()


OF_JOBS = frozenset(
    {
        On.SOURCE_HEARTBEATS,
        On.TARGET_HEARTBEATS,
        On.SOURCE_SYNCS,
        On.TARGET_SYNCS,
        On.SOURCE_GROUPS,
        On.SOURCE_GROUP,
        On.CANARY,
        On.CHECKPOINTS,
        On.TARGET_GROUPS,
    }
)
"""What nobody but a job needs: asked in check_job_rights."""
Rights = dict[tuple[On, str], Names]


async def rights(flow: FlowSettings, source: ClusterClient, target: ClusterClient, asked: Asked) -> tuple[Granted, ...]:
    """One answer for each need of the table but those on what is only a job's."""
    known = await _clusters(source, target) | await _groups(flow, source, target)
    known |= await _mirror_maker_topics(flow, target) | await _dead_letters(flow, target, list(asked.remote))
    known |= await _home_ledger(flow, source)
    identity = transactional_id(flow.flow.name)
    known[On.TRANSACTIONAL_ID, "WRITE"] = Names({identity: await may_use_transactional_id(target, identity)})

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

    return tuple(answer(need) for need in NEEDS if need.on not in OF_JOBS)


def _is_for(flow: FlowSettings, need: Need) -> bool:
    """What only a job needs is needed where the flow has it."""
    jobs = flow.jobs
    switches = {
        (On.REMOTE_TOPICS, "ALTER_CONFIGS"): jobs.sync_configs,
        (On.REMOTE_TOPICS, "DELETE"): jobs.sync_deletes,
        (On.TARGET_CLUSTER, "ALTER"): jobs.sync_acls and not flow.flow.trial,
    }
    return switches.get((need.on, need.operation), True)


def _by_name(need: Need, grants: Grants, created: Mapping[str, Refusal | None]) -> dict[str, bool]:
    """CREATE is needed only where a topic is missing; whether it is granted was seen by trying."""
    if need.operation == "CREATE":
        return may_create({name: refusal for name, refusal in created.items() if name in grants})
    return may(need.operation, grants)


def may(operation: str, grants: Grants) -> dict[str, bool]:
    return {name: operation in found.operations for name, found in grants.items()}


def may_create(tried: Mapping[str, Refusal | None]) -> dict[str, bool]:
    return {name: refusal is None or refusal.code != TOPIC_REFUSED for name, refusal in tried.items()}


async def _clusters(source: ClusterClient, target: ClusterClient) -> Rights:
    sides = ((On.SOURCE_CLUSTER, source), (On.TARGET_CLUSTER, target))
    return {
        (on, operation): Names({"": granted})
        for on, client in sides
        for operation, granted in (await cluster_operations(client)).items()
    }


async def _groups(flow: FlowSettings, source: ClusterClient, target: ClusterClient) -> Rights:
    """The group that `start.from` names; MirrorMaker 2's own, and those of Connect clusters as far as they are listed."""
    starts = [flow.start_from, *(start for _, start in flow.topic_starts)]
    wanted = sorted({start.argument for start in starts if start is not None and start.kind is From.GROUP})
    try:
        listed = await connect_groups(target)
    except BrokerRefused:
        listed = []  # the check has a line of its own for what the groups tell
    own = flow.mm2.group or default_group(flow.flow.source)
    others = {group.name for group in listed if not is_dedicated(group.name)}
    return {
        (On.START_GROUP, "DESCRIBE"): Names(await may_describe_groups(source, wanted)),
        (On.MM2_GROUP, "DESCRIBE"): Names(
            await may_describe_groups(target, {own, *others}),
            frozenset(group.name for group in listed if group.state == HIDDEN and group.name == own),
        ),
    }


async def _home_ledger(flow: FlowSettings, source: ClusterClient) -> Rights:
    """The ledger of the flow in the other direction, where that one keeps names."""
    grants = await topic_grants(source, [LEDGER_TOPIC]) if flow.home else {}
    missing = {name for name, found in grants.items() if not found.exists}
    wishes = [action for action in internal_topics(1) if action.name in missing]
    return {
        (On.HOME_LEDGER, "CREATE"): Names(may_create(await try_create(source, wishes))),
        (On.HOME_LEDGER, "READ"): Names(may("READ", grants)),
    }


async def _mirror_maker_topics(flow: FlowSettings, target: ClusterClient) -> Rights:
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
        (On.MM2_OFFSETS, "READ"): Names(may("READ", kept), frozenset(there), unseen),
        (On.MM2_OFFSETS, "DESCRIBE_CONFIGS"): Names(may("DESCRIBE_CONFIGS", there)),
        (On.MM2_OFFSETS, "CREATE"): Names(may_create(tried)),
        (On.MM2_OFFSETS, "WRITE"): Names(may("WRITE", kept)),
        (On.MM2_CONFIGS, "READ"): Names(
            may("READ", {name: found for name, found in grants.items() if name not in offsets}), unseen=unseen
        ),
    }


async def _not_compacted(cluster: Cluster, grants: Grants) -> set[str]:
    """Topics that are known to hold no progress, whatever they are called."""
    configs = await read_configs(cluster, describable(grants))
    return {name for name, found in configs.items() if "compact" not in (found["cleanup.policy"].value or "")}


async def _dead_letters(flow: FlowSettings, target: ClusterClient, remote: Sequence[str]) -> Rights:
    wanted = remote if flow.policies.bad_record == "dead-letter" else []
    names = [letters for name in wanted if (letters := dead_letter_topic(name))]
    grants = await topic_grants(target, names) if names else {}
    wishes = [dead_letter_wish(name, 1) for name, found in grants.items() if not found.exists]
    return {
        (On.DEAD_LETTERS, "CREATE"): Names(may_create(await try_create(target, wishes))),
        (On.DEAD_LETTERS, "WRITE"): Names(may("WRITE", grants)),
    }


def describable(grants: Grants) -> list[str]:
    return [name for name, found in grants.items() if found.exists and "DESCRIBE_CONFIGS" in found.operations]


async def read_configs(cluster: Cluster, names: Sequence[str]) -> Configs:
    return await asyncio.to_thread(_read_configs, cluster, names) if names else {}


def _read_configs(cluster: Cluster, names: Sequence[str]) -> Configs:
    with ClusterAdmin(cluster) as admin:
        return admin.topic_configs(names)
