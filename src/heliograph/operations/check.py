"""`heliograph check`: gather what both clusters of a flow say, and let the pure rules judge it.

`check` asks everything. `quick_check` is for a run that plans at the same time: without what costs a question per
partition or only matters to a person who asks (disks, other writers), and without what the plan asks itself (a MirrorMaker 2
that runs). A fact that cannot be had becomes a finding of its own; no check hides another. Nothing is changed on any cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from heliograph.config.flows import EngineSettings, FlowSettings, Settings
from heliograph.control.starting import live_mirrormaker, stored_progress
from heliograph.errors import BrokerRefused, ClusterUnreachable, ConnectionLost, HeliographError
from heliograph.kafka.admin import INTERNAL_REPLICATION_OPTION, ClusterAdmin
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.cluster_facts import broker_facts, clock, remote_writers, space
from heliograph.kafka.grants import CLUSTER_REFUSED
from heliograph.kafka.ledger import Ledger
from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.operations.check_topics import TopicFacts, gather_topics, literals
from heliograph.replication.findings import Finding, Level
from heliograph.replication.mm2_progress import configs_to_read, topics_to_read
from heliograph.replication.other_writers import mirror_maker_finding, writer_finding
from heliograph.replication.permissions import at_run, permission_findings
from heliograph.replication.preflight import (
    ClusterFacts,
    api_findings,
    choice_findings,
    clock_findings,
    factor_finding,
    identity_finding,
    reach_findings,
    space_finding,
    wait_findings,
)
from heliograph.replication.topic_limits import limit_findings

_DAY_MS = 86_400_000
_MISSING = {3, 100}
_NO_DESCRIBE = "DESCRIBE on the cluster is not granted"


async def check(settings: Settings, now_ms: Callable[[], int]) -> list[Finding]:
    """All findings: each cluster once, then each flow."""
    warm = Warm()
    try:
        return await _check(settings, now_ms, warm, deep=True)
    finally:
        warm.close()


async def quick_check(settings: Settings, now_ms: Callable[[], int], warm: Warm) -> list[Finding]:
    """The cheap part, over the connections of a run."""
    return await _check(settings, now_ms, warm, deep=False)


async def _check(settings: Settings, now_ms: Callable[[], int], warm: Warm, deep: bool) -> list[Finding]:
    used = dict.fromkeys(end for flow in settings.flows for end in (flow.source, flow.target))
    used |= dict.fromkeys(_keeper(settings))
    targets = {flow.target for flow in settings.flows}
    gathered = await asyncio.gather(*(_cluster_facts(warm.client(cluster), now_ms) for cluster in used))
    facts = dict(zip(used, gathered, strict=True))
    findings: list[Finding] = []
    for cluster, known in facts.items():
        findings += [*reach_findings(known), *api_findings(known, is_target=cluster in targets)]
    for keeper in _keeper(settings):
        if facts[keeper].is_open:
            own_factor = settings.engine.topics_replication_factor
            findings.append(factor_finding(keeper.alias, INTERNAL_REPLICATION_OPTION, own_factor, facts[keeper]))
    for flow in settings.flows:
        source, target, writer = (warm.client(end) for end in (flow.source, flow.target, flow.source_writer))
        ends = _Ends(flow, source, target, writer, facts[flow.source], facts[flow.target])
        findings += [finding async for finding in _flow_findings(ends, settings, deep)]
    return list(dict.fromkeys(findings))


def _keeper(settings: Settings) -> list[Cluster]:
    """The cluster that keeps what REST changes, where no flow uses it: a worker's own, for one."""
    used = {end.bootstrap for flow in settings.flows for end in (flow.source, flow.target)}
    state = settings.state
    return [state] if state is not None and state.bootstrap and state.bootstrap not in used else []


@dataclass(frozen=True)
class _Ends:
    """A flow with a client and the facts of both its clusters."""

    flow: FlowSettings
    source: ClusterClient
    target: ClusterClient
    source_writer: ClusterClient
    source_facts: ClusterFacts
    target_facts: ClusterFacts

    @property
    def name(self) -> str:
        return self.flow.flow.name

    @property
    def aliases(self) -> tuple[str, str]:
        return self.flow.flow.source, self.flow.flow.target


async def _cluster_facts(client: ClusterClient, now_ms: Callable[[], int]) -> ClusterFacts:
    cluster = client.cluster
    protocol = dict(cluster.client).get("security.protocol", "PLAINTEXT")
    facts = ClusterFacts(cluster.alias, cluster.bootstrap, protocol)
    try:
        await client.metadata([])
    except (ClusterUnreachable, ConnectionLost, TimeoutError) as error:
        return replace(facts, unreachable=str(error) or "no answer in time")
    except HeliographError as error:
        return replace(facts, refused=str(error))
    facts = replace(facts, cluster_id=client.cluster_id, brokers=await broker_facts(client))
    try:
        return replace(facts, clock=await clock(client, now_ms))
    except BrokerRefused as error:
        why = _NO_DESCRIBE if error.code == CLUSTER_REFUSED else str(error)
        return replace(facts, no_clock=why)
    except ConnectionLost:
        return replace(
            facts, no_clock="its brokers do not tell the controller's time (Kafka 3.3 and newer with KRaft do)"
        )


async def _flow_findings(ends: _Ends, settings: Settings, deep: bool) -> AsyncIterator[Finding]:
    """A part that fails says so in its own line, and the next one is looked at."""
    if not (ends.source_facts.is_open and ends.target_facts.is_open):
        return
    yield identity_finding(ends.name, ends.source_facts, ends.target_facts)
    yield factor_finding(ends.name, "replication.factor", ends.flow.replication_factor, ends.target_facts)
    own_factor = settings.engine.topics_replication_factor
    yield factor_finding(ends.name, INTERNAL_REPLICATION_OPTION, own_factor, ends.target_facts)
    topics: list[TopicFacts] = []
    parts: list[tuple[str, Callable[[], Awaitable[list[Finding]]]]] = [
        ("topics", lambda: _topics(ends, own_factor, topics, deep)),
        ("clocks", lambda: _clocks(ends, settings.engine)),
    ]
    if deep:
        parts += [
            ("MirrorMaker 2", lambda: _mirror_maker(ends)),
            ("space", lambda: _space(ends, topics)),
            ("other writers", lambda: _writers(ends, topics)),
        ]
    for what, part in parts:
        try:
            for finding in await part():
                yield finding
        except (HeliographError, TimeoutError) as error:
            sentence = str(error) or "no answer in time"
            level = Level.FAIL if what == "topics" else Level.WARN
            yield Finding(level, f"{ends.name}: {what}", f"could not be checked: {sentence}", "see the lines above")


async def _topics(ends: _Ends, own_factor: int, kept: list[TopicFacts], deep: bool) -> list[Finding]:
    factor = own_factor or min(3, len(ends.target.brokers))
    facts = await gather_topics(ends.flow, ends.source, ends.target, factor, ends.source_writer if deep else None)
    kept.append(facts)
    return [
        *choice_findings(ends.name, literals(ends.flow), facts.chosen, facts.visible),
        *(permission_findings if deep else at_run)(ends.name, ends.aliases, facts.granted),
        *facts.refusals(ends.name),
        *limit_findings(ends.name, facts.limits),
    ]


async def _clocks(ends: _Ends, engine: EngineSettings) -> list[Finding]:
    """What depends on time: clocks, and how long the target remembers and waits."""
    try:
        expiration, lag = await asyncio.to_thread(_times, ends.target.cluster)
    except BrokerRefused:
        expiration, lag = None, None  # the missing permission has its own line
    lag_ms = int(lag or 0) if ends.target_facts.live_brokers > 1 else 0  # a single broker has no followers
    return [
        *clock_findings(ends.name, ends.source_facts, ends.target_facts, expiration or _DAY_MS),
        *wait_findings(ends.name, engine.takeover_wait_seconds, engine.request_timeout_ms, lag_ms),
    ]


def _times(cluster: Cluster) -> tuple[int | None, str | None]:
    with ClusterAdmin(cluster) as admin:
        return admin.least_broker_config("producer.id.expiration.ms"), admin.broker_config("replica.lag.time.max.ms")


def _broker_config(cluster: Cluster, name: str) -> str | None:
    with ClusterAdmin(cluster) as admin:
        return admin.broker_config(name)


async def _mirror_maker(ends: _Ends) -> list[Finding]:
    settings = ends.flow
    try:
        visible = await asyncio.to_thread(_partitions, settings.target_admin)
        stored = topics_to_read(visible, settings.flow.source, settings.mm2.topic)
        progress = await stored_progress(settings, stored, ends.target)
        configs = configs_to_read(visible, settings.flow.source)
        alive = await live_mirrormaker(settings, progress, configs, ends.target)
    except BrokerRefused as error:
        return [mirror_maker_finding(ends.aliases, "", why_not=str(error))]
    return [mirror_maker_finding(ends.aliases, alive.refusal, alive.lookalikes)]


def _partitions(cluster: Cluster) -> dict[str, int]:
    """All topics that may be seen, with their partitions."""
    with ClusterAdmin(cluster) as admin:
        return {name: topic.partitions for name, topic in admin.topics().items()}


async def _space(ends: _Ends, topics: list[TopicFacts]) -> list[Finding]:
    alias = ends.flow.flow.target
    if not topics:
        return []
    try:
        room = await space(ends.target)
    except BrokerRefused as error:
        why = _NO_DESCRIBE if error.code == CLUSTER_REFUSED else str(error)
        return [space_finding(ends.name, alias, 0, None, why)]
    if room is None:
        why = "its brokers do not tell (Kafka 3.3 and newer do, to who may DESCRIBE the cluster)"
        return [space_finding(ends.name, alias, 0, None, why)]
    remote = topics[0].remote
    there = await asyncio.to_thread(_sizes, ends.target.cluster, list(remote.values()))
    here = await asyncio.to_thread(_sizes, ends.source.cluster, list(remote))
    missing = sum(max(0, size - there.get(remote[name], 0)) for name, size in here.items())
    return [space_finding(ends.name, alias, missing * await _factor(ends), room)]


async def _factor(ends: _Ends) -> int:
    """Replicas that a remote topic gets; -1 in the file leaves it to the target's brokers."""
    if ends.flow.replication_factor > 0:
        return ends.flow.replication_factor
    try:
        return int(await asyncio.to_thread(_broker_config, ends.target.cluster, "default.replication.factor") or 1)
    except BrokerRefused:
        return 1  # the missing permission has its own line


def _sizes(cluster: Cluster, names: list[str]) -> Mapping[str, int]:
    with ClusterAdmin(cluster) as admin:
        return admin.sizes(names)


async def _writers(ends: _Ends, topics: list[TopicFacts]) -> list[Finding]:
    readable = topics[0].readable_remotes if topics else ()
    if not readable:
        return []
    try:
        book = await Ledger(ends.target).refresh()
    except BrokerRefused as error:
        if error.code not in _MISSING:
            return []  # READ on the ledger has its own line
        ours: frozenset[int] = frozenset()
    else:
        lanes = [lane for lane in book.lanes() if lane.flow == ends.name]
        entries = [book.winner(lane, generation) for lane in lanes for generation in book.generations(lane) or (0,)]
        ours = frozenset(entry.identity.producer_id for entry in entries if entry is not None)
    return [writer_finding(ends.name, ours, await remote_writers(ends.target, readable))]
