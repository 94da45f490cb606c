"""Typed settings from entries that were found valid: clusters, flows, the engine, and the list that `config` shows.

Decides nothing about faults; every lookup goes through resolve.View.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from heliograph.config.flows import EngineSettings, FlowSettings, GroupSettings, JobSettings, Mm2Settings, OptionValue
from heliograph.config.option import CLUSTER, CONSUMER, CONTROL, FLOW, FLOW_ONLY, READER, WRITER, Option, is_secret
from heliograph.config.options import ADMIN_NAMES, OPTIONS, SECURITY_NAMES
from heliograph.config.plugins import Plugins
from heliograph.config.properties import Property
from heliograph.config.resolve import View
from heliograph.config.security import read_security
from heliograph.config.tables.mirror import IDENTITY_POLICY
from heliograph.config.watching import health_settings, watch_settings
from heliograph.model.clusters import Cluster, Flow
from heliograph.model.policies import Policies
from heliograph.replication.heartbeats import Emitting, Pulse, pulses
from heliograph.replication.offset_syncs import SyncSettings
from heliograph.replication.plugins import METHODS
from heliograph.replication.renames import TOPIC, Renames
from heliograph.replication.starts import StartFrom

_SYNCS_TOPIC = ("offset-syncs.topic.location", "offset-syncs.topic.replication.factor")
Entries = Mapping[str, Property]


def cluster(entries: Entries, alias: str) -> Cluster:
    """How admin connections reach a cluster; a flow's reader and writer may log in otherwise. No addresses: empty."""
    view = View(entries, cluster=alias)
    found = view.find("bootstrap.servers")
    admin = ((name.removeprefix("admin."), value) for name, value in view.keys(ADMIN_NAMES, CLUSTER))
    security, _ = read_security(_security_keys(view, CONTROL))
    addresses = view.names("bootstrap.servers") if found.entry else ()
    return Cluster(alias, addresses, tuple(sorted(admin)), security, view.number("request.timeout.ms"))


def _security_keys(view: View, forms: Sequence[str]) -> dict[str, str]:
    return dict(view.keys(SECURITY_NAMES, forms))


def security_faults(entries: Entries, flow: Flow) -> Iterator[str]:
    """What does not fit together in the keys of the connections of one flow, each fault once."""
    ends = [(flow.source, flow, READER), (flow.target, flow, WRITER)]
    if any(pulse.target == flow.source for pulse in _heartbeats(entries, flow)):
        ends.append((flow.source, Flow(flow.target, flow.source), WRITER))
    for alias, pair, form in ends:
        view = View(entries, cluster=alias, flow=pair.name)
        found = (fault for forms in (form, CONTROL) for fault in read_security(_security_keys(view, forms))[1])
        yield from (f"cluster {alias}: {fault}" for fault in dict.fromkeys(found))


def flow_settings(entries: Entries, flow: Flow, clusters: Mapping[str, Cluster]) -> FlowSettings:
    # Every `{cluster}.` form of a flow's own options is the source's; the writer alone looks at the target's.
    view = View(entries, cluster=flow.source, flow=flow.name)
    writer = View(entries, cluster=flow.target, flow=flow.name)
    return FlowSettings(
        flow=flow,
        source=replace(clusters[flow.source], security=read_security(_security_keys(view, READER))[0]),
        target=replace(clusters[flow.target], security=read_security(_security_keys(writer, WRITER))[0]),
        source_admin=clusters[flow.source],
        target_admin=clusters[flow.target],
        source_writer=_source_writer(entries, flow, clusters),
        enabled=True,
        topics=view.names("topics"),
        topics_exclude=view.names("topics.exclude"),
        policy=_policy_kind(view),
        separator=view.text("replication.policy.separator"),
        internal_separator_enabled=view.flag("replication.policy.internal.topic.separator.enabled"),
        replication_factor=view.number("replication.factor"),
        config_properties_exclude=view.names("config.properties.exclude"),
        use_defaults_from=view.text("use.defaults.from"),
        refresh_topics_enabled=view.flag("refresh.topics.enabled"),
        refresh_topics_interval_s=view.number("refresh.topics.interval.seconds"),
        heartbeats_replication_enabled=view.flag("heartbeats.replication.enabled"),
        isolation=view.text("consumer.isolation.level"),
        start=view.text("consumer.auto.offset.reset"),
        fetch_max_bytes=view.number("consumer.fetch.max.bytes"),
        fetch_max_partition_bytes=view.number("consumer.max.partition.fetch.bytes"),
        fetch_max_wait_ms=view.number("consumer.fetch.max.wait.ms"),
        fetch_min_bytes=view.number("consumer.fetch.min.bytes"),
        receive_buffer_bytes=view.number("consumer.receive.buffer.bytes"),
        send_buffer_bytes=writer.number("producer.send.buffer.bytes"),
        throttle=view.number("throttle.bytes.per.second"),
        throttle_topics=cast("tuple[tuple[str, int], ...]", view.per_topic("topic.<name>.throttle.bytes.per.second")),
        wan_cost_per_gb=cast(float, view.typed("wan.cost.per.gb")),
        codec=writer.text("producer.compression.type") if view.flag("recompress") else "",
        policies=_policies(view),
        plugins=_plugins(view),
        align=view.flag("offsets.align"),
        start_from=view.start("start.from"),
        topic_starts=cast("tuple[tuple[str, StartFrom], ...]", view.per_topic("topic.<name>.start.from")),
        mm2=_mm2_settings(writer),
        jobs=_job_settings(entries, flow, view, writer),
    )


def _job_settings(entries: Entries, flow: Flow, view: View, writer: View) -> JobSettings:
    return JobSettings(
        heartbeats=_heartbeats(entries, flow),
        offset_syncs=_offset_syncs(view, writer),
        sync_configs=view.flag("sync.topic.configs.enabled"),
        sync_configs_interval_s=view.number("sync.topic.configs.interval.seconds"),
        sync_acls=view.flag("sync.topic.acls.enabled"),
        sync_acls_interval_s=view.number("sync.topic.acls.interval.seconds"),
        sync_acls_scope=view.text("sync.topic.acls.scope"),
        sync_deletes=view.flag("sync.topic.deletes.enabled"),
        deletes_grace_s=view.number("sync.topic.deletes.grace.seconds"),
        groups=_groups(view),
        watch=watch_settings(view),
    )


def _policy_kind(view: View) -> str:
    """A format that keeps names is what the other policy does."""
    keeps_names = view.text("replication.policy.class") == IDENTITY_POLICY or view.text("topic.rename.format") == TOPIC
    return "identity" if keeps_names else "default"


def routes(entries: Entries, flows: Sequence[FlowSettings]) -> tuple[FlowSettings, ...]:
    """The flows, each with the names that all of them give."""
    renames = [(settings.flow, _renames(View(entries, flow=settings.flow.name))) for settings in flows]
    found = tuple(route for route in renames if route[1])
    return tuple(replace(settings, routes=found) for settings in flows)


def _renames(view: View) -> Renames:
    form = view.text("topic.rename.format")
    return Renames(view.pairs("topic.rename.pairs"), view.rewrite("topic.rename.regex"), "" if form == TOPIC else form)


def is_enabled(entries: Entries, flow: Flow) -> bool:
    """As in MirrorMaker 2, a top level `enabled` counts for the flows that emit heartbeats, a flow's own always."""
    view = View(entries, cluster=flow.source, flow=flow.name)
    is_own = view.set_form("enabled", FLOW_ONLY) is not None
    return view.flag("enabled") and (is_own or view.flag("emit.heartbeats.enabled"))


def _source_writer(entries: Entries, flow: Flow, clusters: Mapping[str, Cluster]) -> Cluster:
    """As a flow back would write to it."""
    writer = View(entries, cluster=flow.source, flow=Flow(flow.target, flow.source).name)
    return replace(clusters[flow.source], security=read_security(_security_keys(writer, WRITER))[0])


def _heartbeats(entries: Entries, flow: Flow) -> tuple[Pulse, ...]:
    back = Flow(flow.target, flow.source)
    readonly = View(entries, flow=flow.name).flag("source.readonly")
    emitting_back = None if is_enabled(entries, back) else _emitting(entries, back)
    return pulses(flow, _emitting(entries, flow), emitting_back, readonly)


def _emitting(entries: Entries, pair: Flow) -> Emitting:
    view = View(entries, flow=pair.name)
    return Emitting(
        view.flag("emit.heartbeats.enabled"),
        view.number("emit.heartbeats.interval.seconds"),
        view.number("heartbeats.topic.replication.factor"),
    )


def _offset_syncs(view: View, writer: View) -> SyncSettings | None:
    """A source that must not be written to has no offset-syncs topic: it is the target's, unless the file says otherwise."""
    if not view.flag("emit.offset-syncs.enabled"):
        return None
    return SyncSettings(
        on_source=view.text("offset-syncs.topic.location") == "source" and not view.flag("source.readonly"),
        lag_max=view.number("offset.lag.max"),
        flush_ms=writer.number("offset.flush.interval.ms"),
        replication_factor=view.number("offset-syncs.topic.replication.factor"),
    )


def offset_sync_faults(entries: Entries, flow: Flow) -> Iterator[str]:
    """What does not fit together in the options of offset syncs of one flow."""
    view = View(entries, flow=flow.name)
    location = view.find("offset-syncs.topic.location")
    if location.entry is not None and location.text == "source" and view.flag("source.readonly"):
        yield (
            f"{flow.name}: {location.entry.name} = source does not go with source.readonly = true: offset syncs would be "
            "written to the source; write target, or leave it out"
        )
    if not view.flag("emit.offset-syncs.enabled"):
        named = (view.find(name).entry for name in _SYNCS_TOPIC)
        for entry in (entry for entry in named if entry is not None):
            yield f"{flow.name}: {entry.name} does not go with emit.offset-syncs.enabled = false: leave one of them out"


def _groups(view: View) -> GroupSettings:
    return GroupSettings(
        include=view.names("groups"),
        exclude=view.names("groups.exclude"),
        refresh=view.flag("refresh.groups.enabled"),
        refresh_interval_s=view.number("refresh.groups.interval.seconds"),
        checkpoints=view.flag("emit.checkpoints.enabled"),
        checkpoints_interval_s=view.number("emit.checkpoints.interval.seconds"),
        checkpoints_replication_factor=view.number("checkpoints.topic.replication.factor"),
        sync=view.flag("sync.group.offsets.enabled"),
        sync_interval_s=view.number("sync.group.offsets.interval.seconds"),
    )


def _mm2_settings(view: View) -> Mm2Settings:
    return Mm2Settings(
        connector=view.text("name"),
        group=view.text("group.id"),
        topic=view.text("offset.storage.topic"),
        topic_partitions=view.number("offset.storage.partitions"),
        topic_replication_factor=view.number("offset.storage.replication.factor"),
    )


def _policies(view: View) -> Policies:
    return Policies(
        source_reset=view.text("on.source.reset"),
        data_loss=view.text("on.data.loss"),
        target_loss=view.text("on.target.loss"),
        foreign_writer=view.text("on.foreign.writer"),
        bad_record=view.text("on.bad.record"),
    )


def _plugins(view: View) -> Plugins:
    """Classes that are not built in, and the options of the flow that they are made with."""
    named = ((option, view.text(option)) for option in METHODS)
    classes = tuple((option, name) for option, name in named if ":" in name)
    if not classes:
        return Plugins()
    flows = (option for option in OPTIONS if option.scope in (FLOW, FLOW_ONLY) and not option.is_family)
    known = {option.name: view.find(option.name).text for option in flows if not option.is_per_topic}
    own = {name: entry.value for name, entry in view.own("plugin.*")}
    source, _, target = view.flow.partition("->")
    aliases = {"source.cluster.alias": source, "target.cluster.alias": target}
    return Plugins(classes, tuple(sorted({**known, **aliases, **own}.items())))


def engine_settings(entries: Entries) -> EngineSettings:
    view = View(entries)
    return EngineSettings(
        epoch_seconds=view.number("epoch.seconds"),
        slots=view.number("slots"),
        slot_memory_bytes=view.number("slot.memory.bytes"),
        master=view.text("master"),
        takeover_wait_seconds=view.number("takeover.wait.seconds"),
        ledger_interval_ms=view.number("ledger.interval.ms"),
        topics_replication_factor=view.number("heliograph.topics.replication.factor"),
        request_timeout_ms=view.number("request.timeout.ms"),
        lane_retry_backoff_ms=view.number("lane.retry.backoff.ms"),
        lane_retry_backoff_max_ms=view.number("lane.retry.backoff.max.ms"),
        merge_below_bytes=view.number("merge.below.bytes"),
        merge_target_bytes=view.number("merge.target.bytes"),
        in_flight_batches=view.number("in.flight.batches"),
        telemetry_interval_ms=view.number("telemetry.interval.ms"),
        reload_interval_s=view.number("reload.interval.seconds"),
        spark=tuple(sorted((name, entry.value) for name, entry in entries.items() if name.startswith("spark."))),
        health=health_settings(view),
    )


def option_values(
    entries: Entries, known: Sequence[tuple[Property, Option]], flows: Sequence[Flow]
) -> Iterator[OptionValue]:
    """Every option of the table: for each flow where it is a flow's, else as often as it is set, else its default."""
    written: dict[str, list[Property]] = {}
    for entry, meaning in known:
        written.setdefault(meaning.name, []).append(entry)
    for option in OPTIONS:
        is_one = not option.is_family and not option.is_per_topic
        if option.served and is_one and option.scope in (FLOW, FLOW_ONLY, CONSUMER):
            yield from (_of_flow(entries, option, flow) for flow in flows)
            continue
        mine = written.get(option.name, [])
        yield from (OptionValue(entry.name, _visible(entry), entry.origin, option) for entry in mine)
        if not mine:
            yield OptionValue(option.name, option.default or "", "default", option)


def _visible(entry: Property) -> str:
    """A value as it may be shown: settings travel, and are printed when something fails."""
    return "***" if entry.value and is_secret(entry.name) else entry.shown


def _of_flow(entries: Entries, option: Option, flow: Flow) -> OptionValue:
    found = View(entries, cluster=flow.source, flow=flow.name).find(option.name)
    shown = found.text if found.entry is None else _visible(found.entry)
    return OptionValue(f"{flow.name}.{option.name}", shown, found.origin, option)
