"""The settings of a run: frozen, typed, already valid. Made by load.py, handed down as values.

Nothing here knows the file they came from, but for the texts that `heliograph config` shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from heliograph.config.listeners import Listener
from heliograph.config.option import Option
from heliograph.config.plugins import Plugins
from heliograph.config.watching import HealthSettings, WatchSettings
from heliograph.model.clusters import Cluster, Flow
from heliograph.model.policies import Policies
from heliograph.replication.canary import WithCanary, canary_topic
from heliograph.replication.filters import NameFilter
from heliograph.replication.heartbeats import Pulse
from heliograph.replication.naming import RenamingPolicy, Route
from heliograph.replication.offset_syncs import SyncSettings
from heliograph.replication.source_group import OwnGroupsAside
from heliograph.replication.starts import From, StartFrom
from heliograph.replication.topic_names import Names, ReplicationPolicy, policy_for

ClientKeys = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FlowSettings:
    """One enabled flow."""

    flow: Flow
    source: Cluster
    """as what reads it is connected"""
    target: Cluster
    """as what writes to it is connected"""
    source_admin: Cluster
    """the same clusters, as admin connections reach them"""
    target_admin: Cluster
    source_writer: Cluster
    """the source, as heartbeats are written to it"""
    enabled: bool
    topics: tuple[str, ...]
    topics_exclude: tuple[str, ...]
    policy: str
    """`default` or `identity`"""
    separator: str
    internal_separator_enabled: bool
    replication_factor: int
    """-1: the broker's default"""
    config_properties_exclude: tuple[str, ...]
    use_defaults_from: str
    """`source` or `target`"""
    refresh_topics_enabled: bool
    refresh_topics_interval_s: int
    heartbeats_replication_enabled: bool
    isolation: str
    """`read_committed` or `read_uncommitted`"""
    start: str
    """`earliest` or `latest`: where a lane begins that was never copied"""
    fetch_max_bytes: int
    fetch_max_partition_bytes: int
    fetch_max_wait_ms: int
    fetch_min_bytes: int
    receive_buffer_bytes: int
    """Of sockets that read; -1: the system's"""
    send_buffer_bytes: int
    """Of sockets that write; -1: the system's"""
    throttle: int
    """Bytes per second of the whole flow; 0: no limit"""
    throttle_topics: tuple[tuple[str, int], ...]
    """The same by source topic, sorted; only those with a limit."""
    codec: str
    """Copies get this codec; empty: batches keep theirs"""
    wan_cost_per_gb: float = 0.0
    """0: not known"""
    policies: Policies = field(default_factory=Policies)
    align: bool = False
    """Remote partitions of new lanes are filled up to where their sources begin"""
    start_from: StartFrom | None = None
    """None: as `start` says"""
    topic_starts: tuple[tuple[str, StartFrom], ...] = ()
    """Topics with a start of their own, sorted."""
    mm2: Mm2Settings = field(default_factory=lambda: Mm2Settings())
    jobs: JobSettings = field(default_factory=lambda: JobSettings())
    plugins: Plugins = field(default_factory=Plugins)
    """Classes of the user's own, in place of policy and filters."""
    home: str = ""
    """The flow in the other direction, where it keeps names: what it wrote to the source is not copied back. Empty: none."""
    routes: tuple[Route, ...] = ()
    """All flows of the file that have names of their own (topic.rename.*): a name must be known on its whole way."""

    @cached_property
    def naming(self) -> ReplicationPolicy:
        """How this flow calls its remote topics."""
        base = self.plugins.policy(self.separator, self.internal_separator_enabled) or policy_for(
            self.policy, self.flow.source, self.separator, self.internal_separator_enabled
        )
        return RenamingPolicy(base, self.flow, self.routes) if self.routes else base

    @cached_property
    def topic_names(self) -> Names:
        """Which topics the flow takes, internal ones and cycles aside."""
        names = self.plugins.names("topic.filter.class", NameFilter(self.topics, self.topics_exclude))
        return names if self.jobs.watch.canary is None else WithCanary(names, canary_topic(self.flow))

    @cached_property
    def group_names(self) -> Names:
        """Which consumer groups the flow looks after."""
        groups = self.jobs.groups
        return OwnGroupsAside(self.plugins.names("group.filter.class", NameFilter(groups.include, groups.exclude)))

    @cached_property
    def _config_names(self) -> Names:
        return self.plugins.names("config.property.filter.class", NameFilter((".*",), self.config_properties_exclude))

    def leaves_out_config(self, name: str) -> bool:
        """Whether a remote topic does not take this config from its source."""
        return not self._config_names.accepts(name)

    def remote_name(self, topic: str) -> str:
        """A source topic's name on the target. A trial's remote topics have its prefix in front."""
        return self.flow.trial + self.naming.format_remote_topic(self.flow.source, topic)

    def refusal(self, topic: str) -> str:
        """Why a source topic cannot be copied under its remote name; empty if it can."""
        return self.naming.refusal(self.flow.source, topic)

    def start_of(self, topic: str) -> StartFrom:
        return dict(self.topic_starts).get(topic) or self.start_from or StartFrom(From(self.start))


@dataclass(frozen=True)
class Mm2Settings:
    """Where MirrorMaker 2 keeps its progress of a flow; empty: where it does by default."""

    connector: str = ""
    group: str = ""
    topic: str = ""
    topic_partitions: int = 25
    topic_replication_factor: int = 3


@dataclass(frozen=True)
class GroupSettings:
    """Which consumer groups of the source are looked at, and what is made of their offsets."""

    include: tuple[str, ...] = (".*",)
    exclude: tuple[str, ...] = ()
    refresh: bool = True
    refresh_interval_s: int = 600
    checkpoints: bool = True
    checkpoints_interval_s: int = 60
    checkpoints_replication_factor: int = 3
    """-1: the broker's default"""
    sync: bool = False
    sync_interval_s: int = 60


@dataclass(frozen=True)
class JobSettings:
    """What is done around the records, and how often."""

    heartbeats: tuple[Pulse, ...] = ()
    offset_syncs: SyncSettings | None = field(default_factory=SyncSettings)
    sync_configs: bool = True
    sync_configs_interval_s: int = 600
    sync_acls: bool = True
    sync_acls_interval_s: int = 600
    sync_acls_scope: str = "mirrormaker"
    """`mirrormaker` or `full`"""
    sync_deletes: bool = False
    deletes_grace_s: int = 86_400
    groups: GroupSettings = field(default_factory=lambda: GroupSettings())
    watch: WatchSettings = field(default_factory=WatchSettings)


@dataclass(frozen=True)
class EngineSettings:
    """Heliograph's own options."""

    epoch_seconds: int
    slots: int
    """0: as many as there are CPUs"""
    slot_memory_bytes: int
    master: str
    """empty: local"""
    takeover_wait_seconds: int
    ledger_interval_ms: int
    topics_replication_factor: int
    """0: as many as there are brokers, at most 3"""
    request_timeout_ms: int
    lane_retry_backoff_ms: int
    lane_retry_backoff_max_ms: int
    merge_below_bytes: int
    merge_target_bytes: int
    in_flight_batches: int
    telemetry_interval_ms: int
    reload_interval_s: int
    """0: the file is read again only when somebody asks"""
    spark: ClientKeys
    """`spark.*`, sorted, for Spark's configuration."""
    health: HealthSettings = field(default_factory=HealthSettings)


@dataclass(frozen=True)
class ServerSettings:
    """How a run is seen and steered over HTTP."""

    listeners: tuple[Listener, ...] = ()
    """Empty: not at all"""
    tokens_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    body_max_bytes: int = 1_048_576
    requests_per_second: int = 200
    """Of one address; 0: no limit"""
    metrics_lanes: int = 20
    """Lanes of a flow that have series of their own; -1: all"""


@dataclass(frozen=True)
class OptionValue:
    """One line of `heliograph config FILE`: `origin` is `line 12`, `REST` or `default`."""

    name: str
    value: str
    origin: str
    option: Option

    @property
    def meaning(self) -> str:
        option = self.option
        return option.doc if option.served else f"{option.doc} Not served in this version: {option.instead}."

    def as_json(self) -> dict[str, str | bool | None]:
        """As `/api/v1/settings` shows it."""
        option = self.option
        return {
            "name": self.name, "value": self.value, "origin": self.origin, "doc": self.meaning, "default": option.default, "served": option.served,
        }  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """All that a file says."""

    path: str
    clusters: Mapping[str, Cluster]
    flows: tuple[FlowSettings, ...]
    """The enabled ones, in the order of `clusters`."""
    engine: EngineSettings
    warnings: tuple[str, ...]
    values: tuple[OptionValue, ...]
    server: ServerSettings = field(default_factory=ServerSettings)
    state: Cluster | None = None
    """The cluster that keeps what REST changed."""
    unfit: Mapping[str, str] = field(default_factory=dict)
    """Connectors that came by REST and do not fit the file, with the reason: they are not run."""
