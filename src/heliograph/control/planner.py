"""What a flow has to carry: topics chosen, remote topics made, lanes known.

Reads both sides, asks the pure rules, applies their actions. `discover` changes nothing; `apply` makes topics. The lanes'
generations are opened in control/opening.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from heliograph.config.flows import EngineSettings, FlowSettings
from heliograph.errors import BrokerRefused, BrokersUnsupported, ConfigError, HeliographError
from heliograph.kafka.admin import ClusterAdmin
from heliograph.kafka.memory import ReadLimits
from heliograph.kafka.slot import FlowRules
from heliograph.kafka.sockets import Buffers
from heliograph.model.lanes import Lane, LaneId
from heliograph.model.topics import Topic
from heliograph.replication.broker_versions import without_ids
from heliograph.replication.heartbeats import REPLICATION_OPTION, Pulse, make_heartbeats_topic
from heliograph.replication.mm2_progress import Progress, configs_to_read, topics_to_read
from heliograph.replication.permissions import Missing, missing_on_topic
from heliograph.replication.topic_names import HEARTBEATS, should_replicate
from heliograph.replication.topic_plan import (
    AddPartitions,
    CreateTopic,
    TopicAction,
    TopicRules,
    Unnameable,
    plan_topics,
)
from heliograph.wire.compression import NAMES as CODECS

_DAY_MS = 86_400_000
_UNLIMITED = 9_223_372_036_854_775_807
_DEFAULT_MAX_BYTES = 1_048_588
_LOOKS = 20
_LOOK_AGAIN_SECONDS = 0.5

Partition = tuple[str, int]


@dataclass(frozen=True)
class Unmade:
    """Why (all) partitions of a topic have no remote partition, and what to do. It is tried again at every look."""

    reason: str
    what_to_do: str


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
    config_topics: tuple[str, ...] = ()
    """Those that may hold the configurations of its Connect clusters."""
    progress: Progress = field(default_factory=Progress)
    """What they hold of this flow, once it was read."""
    home_ledger: str = ""
    """The topic id of the source's ledger that tells what came home, once lanes are opened; empty: nothing does."""
    unmade: Mapping[str, Unmade] = field(default_factory=dict)
    """Source topics whose remote topic could not be made, grown or seen."""
    unread: Mapping[str, Unmade] = field(default_factory=dict)
    """Source topics whose configs, or their remote topic's, may not be read: how they are to be copied is not known."""
    lookalikes: tuple[str, ...] = ()
    """Connectors on the target that may be a MirrorMaker 2 for this flow under another name."""
    only: frozenset[str] | None = None
    """The source topics that were looked at; None: all that there are."""

    @property
    def name(self) -> str:
        return self.settings.flow.name

    def within(self, topics: Iterable[str]) -> set[str]:
        """Those of these topics that were looked at."""
        return set(topics) if self.only is None else set(self.only.intersection(topics))

    def keeping(self, before: FlowPlan, hidden: Collection[str]) -> FlowPlan:
        """With these topics as an earlier plan had them."""
        if not hidden:
            return self
        return replace(
            self,
            topics={**self.topics, **{name: before.topics[name] for name in hidden}},
            remote={**self.remote, **{name: before.remote[name] for name in hidden}},
            lanes=tuple(
                sorted(
                    (*self.lanes, *(lane for lane in before.lanes if lane.id.topic in hidden)), key=lambda lane: lane.id
                )
            ),
            starts={**_of(hidden, before.starts), **self.starts},
            ends={**_of(hidden, before.ends), **self.ends},
        )


def _of(topics: Collection[str], offsets: Mapping[Partition, int]) -> dict[Partition, int]:
    return {name: offset for name, offset in offsets.items() if name[0] in topics}


class FlowPlanner:
    """Plans one flow. Blocking: run it in a thread."""

    def __init__(
        self, settings: FlowSettings, engine: EngineSettings, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._engine = engine
        self._pause = pause
        self._source = ClusterAdmin(settings.source_admin)
        self._target = ClusterAdmin(settings.target_admin)
        self.adopt(settings)

    def adopt(self, settings: FlowSettings) -> None:
        """Other settings, of which what is LIVE (config/changes.py) may differ; a look that is under way may mix both."""
        self.settings = settings

    def close(self) -> None:
        self._source.close()
        self._target.close()

    def discover(self) -> FlowPlan:
        """Read both sides; the plan's lanes are those whose remote partition exists already."""
        existing = self._target.topics()
        return replace(
            self._looked(self._source.topics(), existing),
            progress_topics=self._progress_topics(existing),
            config_topics=tuple(
                configs_to_read({name: topic.partitions for name, topic in existing.items()}, self.settings.flow.source)
            ),
        )

    def discover_topics(self, topics: frozenset[str], before: FlowPlan) -> FlowPlan:
        """The same of these topics alone, so that it costs the same however many there are beside them."""
        return replace(
            self._looked(topics, None),
            settings=before.settings,
            progress_topics=before.progress_topics,
            config_topics=before.config_topics,
            only=topics,
        )

    def _looked(self, names: Iterable[str], existing: Collection[str] | None) -> FlowPlan:
        """These source topics; `existing` is what the target has, None if it must be asked by name."""
        settings = self.settings
        source_id, target_id = self._source.cluster_id(), self._target.cluster_id()
        if source_id == target_id:
            fault = (
                f"flow {settings.flow.name}: {settings.flow.source} and {settings.flow.target} are the same cluster "
                f"(cluster id {source_id}): give them different bootstrap.servers, or disable the flow"
            )
            raise ConfigError([fault])
        unread: dict[str, str] = {}
        topics = self._source.topics(filter(self.is_chosen, names), True, hidden=set(), unread=unread)
        nameless = without_ids(settings.flow.source, topics)
        if nameless is not None:
            raise BrokersUnsupported(nameless)
        remote = {name: self.remote_name(name) for name in topics}
        unread_there: dict[str, str] = {}
        there = [name for name in remote.values() if existing is None or name in existing]
        target = self._target.topics(there, True, hidden=set(), unread=unread_there)
        rules = TopicRules(
            settings.replication_factor, settings.leaves_out_config, settings.use_defaults_from, settings.refusal
        )
        readable = {name: topic for name, topic in topics.items() if name not in unread}
        actions = plan_topics(readable, target, remote.__getitem__, rules)
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
            expiration_ms=self._target.least_broker_config("producer.id.expiration.ms") or _DAY_MS,
            lanes=self._lanes(_without(carried, unread), remote, _without(target, unread_there)),
            unread=self._all_unread(carried, remote, unread, unread_there),
            starts=self._source.starts(partitions) if partitions else {},
            ends=self._source.ends(partitions, settings.isolation) if partitions else {},
            bytes_by_topic=self._source.sizes(sorted(carried)) if carried else {},
        )

    def remote_name(self, topic: str) -> str:
        """A trial's remote topics have its prefix in front."""
        return self.settings.remote_name(topic)

    def remote_prefix(self, prefix: str) -> str | None:
        """What remote names of all topics with this prefix begin with; None if they have no beginning in common."""
        flow = self.settings.flow
        there = self.settings.naming.format_remote_prefix(flow.source, prefix)
        return None if there is None else flow.trial + there

    def source_name(self, remote: str) -> str | None:
        """The topic of the flow whose copy has this name; None if no copy is called so."""
        flow = self.settings.flow
        name = remote.removeprefix(flow.trial)
        if self.settings.naming.is_internal(name):
            return None  # checkpoints lie beside the copies, under a name that begins as theirs do
        upstream = (
            self.settings.naming.upstream_topic(name)
            if self.settings.naming.topic_source(name) == flow.source
            else None
        )
        is_copy = upstream is not None and self.is_chosen(upstream) and self.remote_name(upstream) == remote
        return upstream if is_copy else None

    def _progress_topics(self, existing: Iterable[str]) -> tuple[str, ...]:
        flow, chosen = self.settings.flow, self.settings.mm2.topic
        names = [] if flow.trial else topics_to_read(existing, flow.source, chosen)
        found = self._target.topics(names, with_configs=True)
        return tuple(name for name, topic in found.items() if "compact" in topic.config("cleanup.policy", "delete"))

    def with_heartbeats(self, plan: FlowPlan, pulses: Iterable[Pulse]) -> FlowPlan:
        """The plan with the topic that this run's heartbeats will need on the source, made if it is missing.

        Their job would make it a second after the start, and its lane would end the first epoch in the middle of a copy.
        """
        flow = self.settings.flow
        ours = next((pulse for pulse in pulses if pulse.target == flow.source), None)
        if ours is None or flow.trial or HEARTBEATS in plan.topics or not self.is_chosen(HEARTBEATS):
            return plan
        try:
            self._source.create(make_heartbeats_topic(ours).topic, REPLICATION_OPTION)
        except HeliographError:
            return plan  # the job meets the same, and tells it
        return replace(self.discover(), progress=plan.progress, lookalikes=plan.lookalikes)

    def missing_own_topics(self) -> list[CreateTopic]:
        """Heliograph's own topics that `apply` would make."""
        return self._target.missing_internal_topics(self._target.topics(), self._engine.topics_replication_factor)

    def apply(self, plan: FlowPlan) -> FlowPlan:
        """Make what is missing on the target and look again. What is refused is noted, and the rest goes on."""
        self._target.ensure_internal_topics(self._engine.topics_replication_factor)
        if self.settings.home:
            # The ledger of the flow in the other direction: until it is there nobody can say what that flow wrote.
            self._source.ensure_ledger(self._engine.topics_replication_factor)
        refused = self._make(plan.actions)
        if not plan.topics:
            return plan
        wanted = {topic: name for topic, name in plan.remote.items() if topic not in plan.unread}
        unread: dict[str, str] = {}
        target, hidden = self._made(plan, refused.keys(), unread)
        lost = wanted.values() - target.keys() - hidden
        alias = self.settings.flow.target
        refused = (
            {name: _gone(name) for name in lost}
            | {name: self._unseen(name) for name in hidden}
            | {name: _unread(name, why, alias) for name, why in unread.items()}
            | refused
        )
        unmade = {topic: refused[name] for topic, name in wanted.items() if name in refused}
        lanes = self._lanes(_without(plan.topics, plan.unread), plan.remote, _without(target, unread))
        unmade |= {topic: why for topic, why in plan.unread.items() if topic in plan.topics}
        return replace(plan, lanes=lanes, unmade=unmade)

    def _make(self, actions: Sequence[TopicAction]) -> dict[str, Unmade]:
        """By remote topic, what the target refused."""
        created = self._target.create_all([action for action in actions if isinstance(action, CreateTopic)])
        refused = {name: self._unmade("made", error, "CREATE", name) for name, error in created.items()}
        for action in actions:
            if isinstance(action, AddPartitions):
                try:
                    self._target.add_partitions(action)
                except BrokerRefused as error:
                    refused[action.name] = self._unmade("grown", error, "ALTER", action.name)
        return refused

    def _made(
        self, plan: FlowPlan, refused: Collection[str], unread: dict[str, str]
    ) -> tuple[Mapping[str, Topic], set[str]]:
        """The remote topics as the target shows them, and those that it does not let us see.

        Those whose configs may not be read go to `unread`.

        One that was made just now is waited for: of several brokers the one that is asked may not know of it yet.
        """
        made = {action.name for action in plan.actions if isinstance(action, CreateTopic)} - set(refused)
        for looks_left in reversed(range(_LOOKS)):
            hidden: set[str] = set()
            target = self._target.topics(sorted(plan.remote.values()), True, hidden, unread)
            if not looks_left or made <= target.keys() | hidden:
                break
            self._pause(_LOOK_AGAIN_SECONDS)
        return target, hidden

    def _unmade(self, what: str, refusal: BrokerRefused, operation: str, name: str) -> Unmade:
        missing = missing_on_topic(refusal.code, operation, name, self.settings.flow.target)
        advice = missing.advice if missing else "change what the message names, or exclude the topic (topics.exclude)"
        return Unmade(f"the remote topic {name} cannot be {what}: {refusal}", advice)

    def _unseen(self, name: str) -> Unmade:
        missing = Missing("READ and WRITE", f"the topic {name}", self.settings.flow.target)
        return Unmade(f"the remote topic {name} may not be seen (this needs {missing})", missing.advice)

    def _all_unread(
        self, topics: Collection[str], remote: Mapping[str, str], here: Mapping[str, str], there: Mapping[str, str]
    ) -> dict[str, Unmade]:
        flow = self.settings.flow
        found = {topic: _unread(topic, here[topic], flow.source) for topic in topics if topic in here}
        return found | {
            topic: _unread(remote[topic], there[remote[topic]], flow.target)
            for topic in topics
            if remote[topic] in there
        }

    def is_chosen(self, topic: str) -> bool:
        """Whether a source topic of this name is the flow's."""
        settings = self.settings
        if settings.flow.trial and topic.startswith(settings.flow.trial):
            return False  # a trial of the other direction made it
        return should_replicate(
            topic, settings.topic_names, settings.naming, settings.flow.target, settings.heartbeats_replication_enabled
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


def _without(topics: Mapping[str, Topic], left_out: Collection[str]) -> dict[str, Topic]:
    return {name: topic for name, topic in topics.items() if name not in left_out}


def _unread(name: str, why: str, alias: str) -> Unmade:
    """Without its configs nobody knows whether it is compacted, or what it takes."""
    return Unmade(why, Missing("DESCRIBE_CONFIGS", f"the topic {name}", alias).advice)


def _gone(name: str) -> Unmade:
    """Neither refused nor there. Without a word the run would go on without its lanes, and a copy would end too soon."""
    return Unmade(f"the remote topic {name} was made and is not to be seen", "see who deletes it; it is made again")


def flow_rules(plan: FlowPlan, throttle: tuple[tuple[str, float], ...] = ()) -> FlowRules:
    """What a task must know of the flow; `throttle` is what a slot may read before the driver tells it more."""
    settings = plan.settings
    limits = ReadLimits(
        max_bytes=settings.fetch_max_bytes,
        partition_bytes=settings.fetch_max_partition_bytes,
        max_wait_ms=settings.fetch_max_wait_ms,
        min_bytes=settings.fetch_min_bytes,
        buffers=Buffers(receive=settings.receive_buffer_bytes),
    )
    return FlowRules(
        flow=plan.name,
        source=settings.flow.source,
        target=settings.flow.target,
        read_committed=settings.isolation == "read_committed",
        expiration_ms=plan.expiration_ms,
        limits=limits,
        policies=settings.policies,
        align=settings.align,
        send_buffer_bytes=settings.send_buffer_bytes,
        codec=CODECS.index(settings.codec) if settings.codec else None,
        throttle=throttle,
        home=settings.home,
        home_ledger=plan.home_ledger,
    )
