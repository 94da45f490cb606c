"""What a flow has to carry: topics chosen, remote topics made, lanes known, generations opened.

Reads both sides, asks the pure rules, applies their actions. `discover` changes nothing; `apply` makes topics; `open_lanes`
writes claims to the ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from heliograph.config.flows import EngineSettings, FlowSettings
from heliograph.control.starting import RESET, Ends, Starting, Wish
from heliograph.errors import ConfigError, HeliographError, LaneParked
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.attach import Attacher
from heliograph.kafka.claims import open_generations, transactional_id
from heliograph.kafka.client import EARLIEST, LATEST, ClusterClient
from heliograph.kafka.fetch import ReadLimits
from heliograph.kafka.ranges import Log, read_range
from heliograph.kafka.slot import FlowRules, Warm, wall_ms
from heliograph.model.lanes import Identity, Lane, LaneId, LedgerEntry, Rule
from heliograph.model.topics import Topic
from heliograph.replication.filters import NameFilter
from heliograph.replication.generations import Continue, New, Refused, Start, opening
from heliograph.replication.mm2_progress import Progress, topics_to_read
from heliograph.replication.starts import NoPlace, Place
from heliograph.replication.topic_names import ReplicationPolicy, policy_for, should_replicate
from heliograph.replication.topic_plan import (
    AddPartitions,
    CreateTopic,
    TopicAction,
    TopicRules,
    Unnameable,
    plan_topics,
)

_DAY_MS = 86_400_000
_UNLIMITED = 9_223_372_036_854_775_807
_DEFAULT_MAX_BYTES = 1_048_588

_LEDGER_LOST = (
    "the remote partition of {lane} holds records of this flow (producer {producer}) but the ledger has no entry of the "
    "lane: the ledger was lost; restore it, or delete the remote topic to copy again"
)

Partition = tuple[str, int]


@dataclass(frozen=True)
class FlowPlan:
    """A flow as both clusters show it now."""

    settings: FlowSettings
    source_cluster_id: str
    target_cluster_id: str
    topics: Mapping[str, Topic]
    remote: Mapping[str, str]
    actions: tuple[TopicAction, ...]
    expiration_ms: int
    lanes: tuple[Lane, ...] = ()
    starts: Mapping[Partition, int] = field(default_factory=dict)
    ends: Mapping[Partition, int] = field(default_factory=dict)
    bytes_by_topic: Mapping[str, int] = field(default_factory=dict)
    progress_topics: tuple[str, ...] = ()
    """The target's topics that may hold MirrorMaker 2's stored progress."""
    progress: Progress = field(default_factory=Progress)
    """What they hold of this flow, once it was read."""

    @property
    def name(self) -> str:
        return self.settings.flow.name


@dataclass(frozen=True)
class OpenedFlow:
    """The lanes that may be carried, with their entries, and those that may not, with the reason."""

    plan: FlowPlan
    entries: Mapping[str, LedgerEntry]
    refused: Mapping[str, str]
    opened: tuple[str, ...]
    """Sentences about generations that were opened."""


class FlowPlanner:
    """Plans one flow. Blocking: run it in a thread."""

    def __init__(self, settings: FlowSettings, engine: EngineSettings) -> None:
        self.settings = settings
        self._engine = engine
        self._source = ClusterAdmin(replace(settings.source, client=settings.source_client))
        self._target = ClusterAdmin(replace(settings.target, client=settings.target_client))
        self._policy: ReplicationPolicy = policy_for(
            settings.policy, settings.flow.source, settings.separator, settings.internal_separator_enabled
        )
        self._names = NameFilter(settings.topics, settings.topics_exclude)
        self._excluded_configs = NameFilter(settings.config_properties_exclude)

    def close(self) -> None:
        self._source.close()
        self._target.close()

    def discover(self) -> FlowPlan:
        """Read both sides; the plan's lanes are those whose remote partition exists already."""
        settings = self.settings
        source_id, target_id = self._source.cluster_id(), self._target.cluster_id()
        if source_id == target_id:
            fault = (
                f"flow {settings.flow.name}: {settings.flow.source} and {settings.flow.target} are the same cluster "
                f"(cluster id {source_id}): give them different bootstrap.servers, or disable the flow"
            )
            raise ConfigError([fault])
        chosen = {name for name in self._source.topics() if self._is_chosen(name)}
        topics = self._source.topics(sorted(chosen), with_configs=True) if chosen else {}
        remote = {name: self.remote_name(name) for name in topics}
        existing = self._target.topics()
        target_names = {name for name in existing if name in set(remote.values())}
        target = self._target.topics(sorted(target_names), with_configs=True) if target_names else {}
        rules = TopicRules(settings.replication_factor, self._excluded_configs.includes, settings.use_defaults_from)
        actions = plan_topics(topics, target, remote.__getitem__, rules)
        unnameable = {action.topic for action in actions if isinstance(action, Unnameable)}
        carried = {name: topic for name, topic in topics.items() if name not in unnameable}
        partitions = [(name, number) for name, topic in carried.items() for number in range(topic.partitions)]
        return FlowPlan(
            settings=settings,
            source_cluster_id=source_id,
            target_cluster_id=target_id,
            topics=carried,
            remote={name: remote[name] for name in carried},
            actions=tuple(actions),
            expiration_ms=int(self._target.broker_config("producer.id.expiration.ms") or _DAY_MS),
            lanes=self._lanes(carried, remote, target),
            starts=self._source.starts(partitions) if partitions else {},
            ends=self._source.ends(partitions, settings.isolation) if partitions else {},
            bytes_by_topic=self._source.sizes(sorted(carried)) if carried else {},
            progress_topics=self._progress_topics(existing),
        )

    def remote_name(self, topic: str) -> str:
        """A trial's remote topics have its prefix in front."""
        flow = self.settings.flow
        return flow.trial + self._policy.format_remote_topic(flow.source, topic)

    def _progress_topics(self, existing: Iterable[str]) -> tuple[str, ...]:
        flow, chosen = self.settings.flow, self.settings.mm2.topic
        names = [] if flow.trial else topics_to_read(existing, flow.source, chosen)
        found = self._target.topics(names, with_configs=True)
        return tuple(name for name, topic in found.items() if "compact" in topic.config("cleanup.policy", "delete"))

    def apply(self, plan: FlowPlan) -> FlowPlan:
        """Make what is missing on the target and look again."""
        for action in plan.actions:
            if isinstance(action, CreateTopic):
                self._target.create(action)
            elif isinstance(action, AddPartitions):
                self._target.add_partitions(action)
        self._target.ensure_internal_topics(self._engine.topics_replication_factor)
        if not plan.topics:
            return plan
        target = self._target.topics(sorted(plan.remote.values()), with_configs=True)
        return replace(plan, lanes=self._lanes(plan.topics, plan.remote, target))

    def _is_chosen(self, topic: str) -> bool:
        settings = self.settings
        if settings.flow.trial and topic.startswith(settings.flow.trial):
            return False  # a trial of the other direction made it
        return should_replicate(
            topic, self._names, self._policy, settings.flow.target, settings.heartbeats_replication_enabled
        ).replicate

    def _lanes(
        self, topics: Mapping[str, Topic], remote: Mapping[str, str], target: Mapping[str, Topic]
    ) -> tuple[Lane, ...]:
        flow = self.settings.flow
        return tuple(
            Lane(
                id=LaneId(flow.name, topic.name, number),
                source=flow.source,
                target=flow.target,
                remote_topic=there.name,
                source_topic_id=topic.topic_id,
                target_topic_id=there.topic_id,
                compacted="compact" in topic.config("cleanup.policy", "delete"),
                target_append_time=there.config("message.timestamp.type") == "LogAppendTime",
                max_batch_bytes=int(there.config("max.message.bytes") or _DEFAULT_MAX_BYTES),
                timestamp_after_max_ms=int(there.config("message.timestamp.after.max.ms") or _UNLIMITED),
                timestamp_before_max_ms=int(there.config("message.timestamp.before.max.ms") or _UNLIMITED),
                target_compacted="compact" in there.config("cleanup.policy", "delete"),
            )
            for topic in topics.values()
            if (there := target.get(remote[topic.name])) is not None
            for number in range(min(topic.partitions, there.partitions))
        )

    def target_ends(self, lanes: Iterable[Lane]) -> dict[Partition, int]:
        return self._target.ends([(lane.remote_topic, lane.id.partition) for lane in lanes], "read_uncommitted")


def flow_rules(plan: FlowPlan) -> FlowRules:
    settings = plan.settings
    limits = ReadLimits(
        max_bytes=min(settings.fetch_max_bytes, 8 << 20),
        partition_bytes=settings.fetch_max_partition_bytes,
        max_wait_ms=settings.fetch_max_wait_ms,
        min_bytes=settings.fetch_min_bytes,
    )
    return FlowRules(
        flow=plan.name,
        source=settings.flow.source,
        target=settings.flow.target,
        read_committed=settings.isolation == "read_committed",
        expiration_ms=plan.expiration_ms,
        limits=limits,
    )


async def open_lanes(
    plan: FlowPlan, planner: FlowPlanner, warm: Warm, held: bool = True, wish: Wish | None = None
) -> OpenedFlow:
    """Every lane's generation: the ledger's, or one that is claimed now (P1.4), many at a time.

    `held`: no other run holds the flow; without that a lane whose rule changed is refused for now.
    """
    wish = wish or Wish()
    settings = plan.settings
    book = await warm.ledger(settings.target).refresh()
    entries: dict[str, LedgerEntry] = {}
    refused: dict[str, str] = {}
    new: list[tuple[Lane, New]] = []
    starting = Starting(settings, plan.progress, plan.expiration_ms, warm)
    ends = Ends(plan.starts, plan.ends, await asyncio.to_thread(planner.target_ends, plan.lanes))
    latest = {lane: book.latest(lane.id) for lane in plan.lanes}
    rule = Rule(settings.isolation)
    rows = [(lane, entry, opening(entry, lane, rule, plan.target_cluster_id)) for lane, entry in latest.items()]
    for lane, revised in await starting.revise(rows, ends, wish, held):
        match revised:
            case Continue(entry):
                entries[lane.id.key] = entry
            case Refused(reason):
                refused[lane.id.key] = reason
            case New(previous=previous) as found if found.needs_drain and previous is not None and not lane.compacted:
                try:
                    new.append((lane, await _exact(plan, warm, lane, found, held)))
                except HeliographError as error:
                    refused[lane.id.key] = f"the rule changed, and the exact position is not known yet: {error}"
            case New() as found:
                new.append((lane, found))
    placed = await _placed(new, starting, ends)
    refused |= {lane.id.key: where.reason for lane, where in placed.items() if isinstance(where, NoPlace)}
    ready = [
        (lane, replace(found, at=where) if where else found)
        for lane, found in new
        if not isinstance(where := placed.get(lane), NoPlace)
    ]
    if not ready:
        return OpenedFlow(plan, entries, refused, ())
    opened = await _open_new(plan, planner, warm, ready, starting)
    return replace(opened, entries={**entries, **opened.entries}, refused={**refused, **opened.refused})


async def _placed(new: list[tuple[Lane, New]], starting: Starting, ends: Ends) -> dict[Lane, Place | NoPlace]:
    """Where the lanes begin that begin by option."""
    lanes = [lane for lane, found in new if found.start is Start.BY_OPTION]
    return await starting.by_option(lanes, ends) if lanes else {}


async def _open_new(
    plan: FlowPlan, planner: FlowPlanner, warm: Warm, new: list[tuple[Lane, New]], starting: Starting
) -> OpenedFlow:
    """Claim these generations (P1.4), after a look whether the ledger was lost (P1.6)."""
    ledger = warm.ledger(plan.settings.target)
    entries: dict[str, LedgerEntry] = {}
    refused: dict[str, str] = {}
    identity = await warm.client(plan.settings.target).new_identity(transactional_id(plan.name))
    fresh = [lane for lane, found in new if found.generation == 0 and found.reason != RESET]
    written = await _written_by(warm, plan, identity.producer_id, fresh)
    # Read again: another driver may have claimed, and written, since the first look.
    book = await ledger.refresh() if written else ledger.book
    for lane_id in written:
        known = book.latest(lane_id)
        if known is None:
            refused[lane_id.key] = _LEDGER_LOST.format(lane=lane_id.key, producer=identity.producer_id)
        else:
            entries[lane_id.key] = known
    new = [(lane, found) for lane, found in new if lane.id not in written]
    ends = await asyncio.to_thread(planner.target_ends, [lane for lane, _ in new]) if new else {}
    wanted = [
        replace(_claim(plan, lane, found, identity, ends), mm2_offset=_or_none(starting.stored(lane)))
        for lane, found in new
    ]
    won = await open_generations(ledger, wanted, wall_ms())
    entries |= {lane_id.key: entry for lane_id, entry in won.items()}
    return OpenedFlow(plan, entries, refused, tuple(_sentence(lane, found) for lane, found in new if _is_news(found)))


def _or_none(offset: int | None) -> int:
    return -1 if offset is None else offset


def _is_news(found: New) -> bool:
    return found.generation > 0 or found.start is Start.TAKE_OVER


def _sentence(lane: Lane, found: New) -> str:
    where = f" at {found.at.offset}: {found.at.reason}" if found.at is not None else ""
    return f"{lane.id.key}: generation {found.generation} ({found.reason}){where}"


async def _exact(plan: FlowPlan, warm: Warm, lane: Lane, found: New, held: bool) -> New:
    """P7: a new rule begins exactly where the old one ended, so the old one is attached first, with nobody writing by it."""
    if not held:
        raise LaneParked("another run may still write by the old rule")
    assert found.previous is not None  # noqa: S101  the caller looked
    previous = found.previous
    attacher = Attacher(warm.client(plan.settings.source), warm.client(plan.settings.target), plan.expiration_ms)
    start = await attacher.attach(lane, previous, previous.rule.isolation == "read_committed", wall_ms())
    return replace(found, previous=replace(previous, source_next=start.source_next))


def _claim(plan: FlowPlan, lane: Lane, found: New, identity: Identity, ends: Mapping[Partition, int]) -> LedgerEntry:
    start = _start(plan, lane, found)
    target_next = ends.get((lane.remote_topic, lane.id.partition), 0)
    return LedgerEntry(
        lane=lane.id,
        generation=found.generation,
        identity=identity,
        rule=Rule(plan.settings.isolation),
        target_cluster_id=plan.target_cluster_id,
        source_topic_id=lane.source_topic_id,
        target_topic_id=lane.target_topic_id,
        source_start=start,
        target_start=target_next,
        source_next=start,
        source_epoch=found.at.leader_epoch if found.at is not None else -1,
        target_next=target_next,
        sequence_next=0,
        time_ms=wall_ms(),
    )


async def _written_by(warm: Warm, plan: FlowPlan, producer_id: int, lanes: list[Lane]) -> set[LaneId]:
    """P1.6: lanes without an entry whose remote partition remembers the flow's producer id."""
    client = warm.client(plan.settings.target)
    views = await client.metadata({lane.remote_topic for lane in lanes}) if lanes else {}
    by_node: dict[int, list[Lane]] = {}
    for lane in lanes:
        leader = views[lane.remote_topic].leaders.get(lane.id.partition)
        if leader is not None and leader.node >= 0:
            by_node.setdefault(leader.node, []).append(lane)
    found: set[LaneId] = set()
    for node, here in by_node.items():
        states = await client.producers(node, [(lane.remote_topic, lane.id.partition) for lane in here])
        for lane in here:
            state = states.get((lane.remote_topic, lane.id.partition))
            remembered = isinstance(state, Mapping) and producer_id in state
            if remembered or await _ends_with(client, node, lane, producer_id):
                found.add(lane.id)
    return found


async def _ends_with(client: ClusterClient, node: int, lane: Lane, producer_id: int) -> bool:
    """The remote partition's last batch is of this producer, whom its leader may have forgotten."""
    name = (lane.remote_topic, lane.id.partition)
    start = (await client.offsets(node, [name], EARLIEST)).get(name, 0)
    end = (await client.offsets(node, [name], LATEST)).get(name, 0)
    if end <= start:
        return False
    log = Log(lane.remote_topic, lane.target_topic_id, lane.id.partition, node)
    async for seen in read_range(client, log, end - 1, end, committed=False):
        if seen.header.producer_id == producer_id:
            return True
    return False


def _start(plan: FlowPlan, lane: Lane, found: New) -> int:
    if found.at is not None:
        return found.at.offset
    if found.start is Start.POSITION and found.previous is not None:
        return found.previous.source_next
    return plan.starts.get((lane.id.topic, lane.id.partition), 0)
