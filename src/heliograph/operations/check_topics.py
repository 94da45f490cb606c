"""The topics of a flow as a check sees them: which are chosen, what may be done with them, what they take.

Unlike the planner it does not stop at the first refusal: a topic that may not be read is a fact here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from heliograph.config.flows import FlowSettings
from heliograph.errors import BrokerRefused
from heliograph.kafka.admin import ClusterAdmin, internal_topics
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.grants import TOPIC_REFUSED, Refusal, TopicGrants, topic_grants, try_create, visible_topics
from heliograph.model.clusters import Cluster
from heliograph.model.topics import ConfigValue, Topic
from heliograph.operations.check_job_rights import Doors, job_rights
from heliograph.operations.check_rights import Asked, Configs, describable, read_configs, rights
from heliograph.replication.filters import plain_names
from heliograph.replication.findings import Finding, Level
from heliograph.replication.permissions import Granted
from heliograph.replication.topic_limits import BROKER_NAMES, LimitPair, limits_of, limits_to_be
from heliograph.replication.topic_names import should_replicate
from heliograph.replication.topic_plan import AddPartitions, CreateTopic, TopicRules, Unnameable, plan_topics


@dataclass(frozen=True)
class TopicFacts:
    """What was found; `remote` are the remote names of the chosen topics."""

    visible: tuple[str, ...]
    remote: Mapping[str, str]
    granted: tuple[Granted, ...]
    refused: Mapping[str, Refusal]
    """Topics that the target would not create, for another reason than a permission."""
    unnameable: tuple[Unnameable, ...]
    limits: tuple[LimitPair, ...]
    readable_remotes: tuple[str, ...]

    @property
    def chosen(self) -> tuple[str, ...]:
        return tuple(self.remote)

    def refusals(self, flow: str) -> Iterator[Finding]:
        for name, refusal in self.refused.items():
            sentence = f"the target would not create topic {name}: {refusal.message} (error {refusal.code})"
            yield Finding(Level.FAIL, f"{flow}: remote topics", sentence, "change what the message names")
        for action in self.unnameable:
            sentence = f"{action.topic} would be left out: {action.reason}"
            yield Finding(Level.WARN, f"{flow}: remote topics", sentence, "exclude it, or name it otherwise")


async def gather_topics(
    flow: FlowSettings,
    source: ClusterClient,
    target: ClusterClient,
    own_factor: int,
    source_writer: ClusterClient | None = None,
) -> TopicFacts:
    """With `source_writer` also what jobs need."""
    visible = await visible_topics(source)
    policy = flow.naming
    names = flow.topic_names
    chosen = {
        name: grants
        for name, grants in sorted(visible.items())
        if should_replicate(name, names, policy, flow.flow.target, flow.heartbeats_replication_enabled).replicate
    }
    remote = {name: policy.format_remote_topic(flow.flow.source, name) for name in chosen}
    own = internal_topics(own_factor)
    there = await topic_grants(target, [*remote.values(), *(action.name for action in own)])
    configs = await read_configs(source.cluster, describable(chosen))
    there_configs = await read_configs(target.cluster, describable({name: there[name] for name in remote.values()}))
    topics = {name: _topic(name, grants, configs) for name, grants in chosen.items()}
    existing = {name: _topic(name, there[name], there_configs) for name in remote.values() if there[name].exists}
    rules = TopicRules(flow.replication_factor, flow.leaves_out_config, flow.use_defaults_from, flow.refusal)
    actions = plan_topics(topics, existing, remote.__getitem__, rules)
    wishes = [action for action in actions if isinstance(action, CreateTopic)]
    wishes += [action for action in own if not there[action.name].exists]
    created = await try_create(target, wishes)
    growing = frozenset(action.name for action in actions if isinstance(action, AddPartitions))
    asked = Asked(
        chosen | await _hidden(flow, source, set(visible)),
        {name: there[name] for name in remote.values()},
        {action.name: there[action.name] for action in own},
        created,
        growing,
    )
    made = {action.name: dict(action.configs) for action in wishes}
    pairs = await _limits(target.cluster, remote, (configs, there_configs), made)
    return TopicFacts(
        visible=tuple(visible),
        remote=remote,
        granted=(
            *await rights(flow, source, target, asked),
            *(await job_rights(flow, Doors(source, source_writer, target)) if source_writer is not None else ()),
        ),
        refused={name: refusal for name, refusal in created.items() if refusal and refusal.code != TOPIC_REFUSED},
        unnameable=tuple(action for action in actions if isinstance(action, Unnameable)),
        limits=pairs,
        readable_remotes=tuple(name for name in existing if "READ" in there[name].operations),
    )


async def _hidden(flow: FlowSettings, source: ClusterClient, visible: set[str]) -> dict[str, TopicGrants]:
    """Topics that the file names and the source refuses to show; one that merely does not exist is none of them."""
    unseen = [name for name in literals(flow) if name not in visible]
    found = await topic_grants(source, unseen) if unseen else {}
    return {name: grants for name, grants in found.items() if "DESCRIBE" not in grants.operations}


def literals(flow: FlowSettings) -> list[str]:
    """The entries of `topics` that are plain names."""
    return plain_names(flow.topics)


def _topic(name: str, grants: TopicGrants, configs: Configs) -> Topic:
    return Topic(name, grants.topic_id, grants.partitions, configs.get(name, {}))


async def _limits(
    target: Cluster,
    remote: Mapping[str, str],
    configs: tuple[Configs, Configs],
    made: Mapping[str, Mapping[str, str]],
) -> tuple[LimitPair, ...]:
    """Pairs whose configs are known on both sides."""
    here, there = configs
    broker: Mapping[str, str | None] = {}
    if any(remote[name] not in there and remote[name] in made for name in here):
        broker = await asyncio.to_thread(_broker_configs, target)
    pairs = []
    for name, found in here.items():
        source = limits_of(_values(found))
        if remote[name] in there:
            pairs.append(LimitPair(name, remote[name], source, limits_of(_values(there[remote[name]]))))
        elif remote[name] in made:
            pairs.append(LimitPair(name, remote[name], source, limits_to_be(made[remote[name]], broker)))
    return tuple(pairs)


def _values(configs: Mapping[str, ConfigValue]) -> dict[str, str | None]:
    return {name: config.value for name, config in configs.items()}


def _broker_configs(cluster: Cluster) -> dict[str, str | None]:
    with ClusterAdmin(cluster) as admin:
        try:
            return {name: admin.broker_config(name) for name in BROKER_NAMES.values()}
        except BrokerRefused:
            return {}  # DESCRIBE_CONFIGS on the cluster has its own line
