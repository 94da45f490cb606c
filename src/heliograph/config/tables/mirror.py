"""MirrorMaker 2's own options: the driver, the three connectors, their filters and policies."""

from __future__ import annotations

from heliograph.config.kinds import (
    Aliases,
    Beginning,
    Choice,
    ClassName,
    Flag,
    Kind,
    Names,
    Plugin,
    Regexes,
    Separator,
    Servers,
    Text,
    Whole,
)
from heliograph.config.option import BOOTSTRAP, CONSUMER, FLOW, FLOW_ONLY, TOP, Option
from heliograph.config.tables.engine import OURS

_PACKAGE = "org.apache.kafka.connect.mirror"
DEFAULT_POLICY = f"{_PACKAGE}.DefaultReplicationPolicy"
IDENTITY_POLICY = f"{_PACKAGE}.IdentityReplicationPolicy"
_SECONDS = Whole(1, unit="seconds")
_FACTOR = Whole(1, special=-1)
_CONFIGS_NOT_COPIED = (
    r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas, "
    r"message\.timestamp\.difference\.max\.ms, log\.message\.timestamp\.before\.max\.ms, "
    r"log\.message\.timestamp\.after\.max\.ms, message\.timestamp\.type, "
    r"unclean\.leader\.election\.enable, min\.insync\.replicas"
)


def _served(name: str, kind: Kind, default: str, doc: str, since: str = "2.4.0") -> Option:
    return Option(name, kind, default, doc, FLOW, since=since)


def _known(name: str, kind: Kind, default: str | None, doc: str, instead: str, since: str = "2.4.0") -> Option:
    return Option(name, kind, default, doc, FLOW, served=False, instead=instead, since=since)


SERVED = (
    Option("clusters", Aliases(), None, "The aliases of all clusters in this file.", TOP),
    Option("bootstrap.servers", Servers(), None, "Where a cluster is first reached.", BOOTSTRAP),
    _served("enabled", Flag(), "false", "Whether records go from the flow's source to its target."),
    _served(
        "topics", Regexes(), ".*", "Topics to mirror: names or Java regular expressions that match the whole name."
    ),
    _served(
        "topics.exclude",
        Regexes(),
        r"mm2.*\.internal, .*\.replica, __.*",
        "Topics not to mirror; wins over topics.",
        "2.7.0",
    ),
    _served(
        "topic.filter.class",
        Plugin((f"{_PACKAGE}.DefaultTopicFilter",)),
        f"{_PACKAGE}.DefaultTopicFilter",
        "How topics are chosen: by topics and topics.exclude, or by a class of your own.",
    ),
    _served(
        "replication.policy.class",
        Plugin((DEFAULT_POLICY, IDENTITY_POLICY)),
        DEFAULT_POLICY,
        "How remote topics are called: alias, separator, name; with IdentityReplicationPolicy as on the source; or as a class of "
        "your own says.",
    ),
    _served("replication.policy.separator", Separator(), ".", "Stands between alias and topic in a remote name."),
    _served(
        "replication.policy.internal.topic.separator.enabled",
        Flag(),
        "true",
        "Whether the separator also stands in the names of internal topics; false: they have a dot.",
        "3.5.2",
    ),
    _served("replication.factor", _FACTOR, "2", "Replication factor of new remote topics; -1: the broker's default."),
    _served(
        "config.properties.exclude",
        Regexes(),
        _CONFIGS_NOT_COPIED,
        "Topic configs that a remote topic does not take from its source.",
        "2.7.0",
    ),
    _served(
        "config.property.filter.class",
        Plugin((f"{_PACKAGE}.DefaultConfigPropertyFilter",)),
        f"{_PACKAGE}.DefaultConfigPropertyFilter",
        "How topic configs are chosen: all but config.properties.exclude, or by a class of your own.",
    ),
    Option(
        "use.defaults.from",
        Choice(("source", "target")),
        "target",
        "Whose defaults a remote topic has for configs that the source topic does not set.",
        FLOW_ONLY,
        since="3.5.0",
    ),
    _served("refresh.topics.enabled", Flag(), "true", "Whether new topics and partitions are looked for."),
    _served("refresh.topics.interval.seconds", _SECONDS, "600", "How often new topics and partitions are looked for."),
    _served(
        "heartbeats.replication.enabled",
        Flag(),
        "true",
        "Whether heartbeats topics are mirrored even if topics does not name them.",
        "4.0.0",
    ),
    Option(
        "offsets.align",
        Flag(),
        "false",
        "Whether records of a new lane get the same offsets on the target as on the source, until a gap in the source.",
        FLOW,
        since=OURS,
    ),
    Option(
        "source.readonly",
        Flag(),
        "false",
        "Whether nothing may be written to the flow's source: true leaves out the heartbeats that would be written there, and "
        "moves offset syncs to the target.",
        FLOW,
        since=OURS,
    ),
    Option(
        "consumer.isolation.level",
        Choice(("read_committed", "read_uncommitted"), any_case=True),
        "read_committed",
        "Whether records of aborted and open transactions are left out. MirrorMaker 2's default is read_uncommitted.",
        CONSUMER,
    ),
    Option(
        "consumer.auto.offset.reset",
        Choice(("earliest", "latest"), any_case=True),
        "earliest",
        "Where a lane begins that was never copied.",
        CONSUMER,
    ),
    Option(
        "start.from",
        Beginning(),
        "",
        "Where a lane begins that was never copied; empty: as consumer.auto.offset.reset says. Progress that is stored, ours "
        "or MirrorMaker 2's, wins unless the run has --reset.",
        FLOW,
        since=OURS,
    ),
    Option(
        "topic.<name>.start.from",
        Beginning(),
        "",
        "The same for one topic: A->B.topic.orders.start.from = latest.",
        FLOW_ONLY,
        since=OURS,
    ),
    Option(
        "consumer.fetch.max.bytes",
        Whole(1024),
        "8388608",
        "Bytes that one fetch may bring, within slot.memory.bytes. MirrorMaker 2's default is 52428800.",
        CONSUMER,
    ),
    Option(
        "consumer.max.partition.fetch.bytes",
        Whole(1024),
        "1048576",
        "Bytes that one fetch may bring of one partition; a larger batch still comes.",
        CONSUMER,
    ),
    Option(
        "consumer.fetch.max.wait.ms",
        Whole(0, unit="ms"),
        "500",
        "How long a fetch waits at the end of the log.",
        CONSUMER,
    ),
    Option("consumer.fetch.min.bytes", Whole(1), "1", "Bytes for which a fetch waits.", CONSUMER),
    Option(
        "consumer.receive.buffer.bytes",
        Whole(-1),
        "4194304",
        "Socket buffer of connections that read; -1: the system's. The log says how much the system granted.",
        CONSUMER,
    ),
)

CONNECTORS = (
    _served(
        "name",
        Text(),
        "",
        "The source connector whose stored progress is taken over and handed back; empty: whichever stored some for this "
        "source, and MirrorSourceConnector where there is none.",
    ),
    _known("connector.class", Text(), None, "A connector's class.", "a flow is one engine, not three connectors"),
    _known("connector.plugin.version", Text(), None, "Connect's plugin version.", "there are no plugins", "4.1.0"),
    _known("tasks.max", Whole(1), "1", "Tasks of a connector.", "slots says how many tasks carry all flows"),
    _known("tasks.max.enforce", Flag(), "true", "Whether tasks.max is a hard limit.", "slots is always one", "3.8.0"),
    _known("source.cluster.alias", Text(), None, "The source's alias.", "the flow's name A->B says it"),
    _known("target.cluster.alias", Text(), "target", "The target's alias.", "the flow's name A->B says it"),
    _known(
        "admin.timeout.ms", Whole(0, unit="ms"), "60000", "Limit of an admin job.", "request.timeout.ms limits each"
    ),
    _known(
        "forwarding.admin.class",
        ClassName(),
        "org.apache.kafka.clients.admin.ForwardingAdmin",
        "Java class through which topics are changed.",
        "topics are created and grown directly",
        "3.4.0",
    ),
    _known(
        "metric.reporters",
        Names(),
        "org.apache.kafka.common.metrics.JmxReporter",
        "Java classes that report metrics.",
        "no Java class is loaded; metrics are at /metrics",
    ),
    _known(
        "consumer.poll.timeout.ms", Whole(0, unit="ms"), "1000", "Longest poll.", "consumer.fetch.max.wait.ms rules"
    ),
    _served(
        "sync.topic.configs.enabled",
        Flag(),
        "true",
        "Whether configs of remote topics are kept as their sources set them. An override that only a remote topic has stays.",
    ),
    _served("sync.topic.configs.interval.seconds", _SECONDS, "600", "How often topic configs are compared."),
    Option(
        "sync.topic.deletes.enabled",
        Flag(),
        "false",
        "Whether a remote topic is deleted once its source topic did not exist for sync.topic.deletes.grace.seconds.",
        FLOW,
        since=OURS,
    ),
    Option(
        "sync.topic.deletes.grace.seconds",
        _SECONDS,
        "86400",
        "How long the source must say, at every look, that a topic does not exist before its copy is deleted.",
        FLOW,
        since=OURS,
    ),
    _served(
        "sync.topic.acls.enabled",
        Flag(),
        "true",
        "Whether ACLs of source topics are added to their remote topics: all but ALLOW WRITE, and READ for ALLOW ALL.",
    ),
    _served("sync.topic.acls.interval.seconds", _SECONDS, "600", "How often ACLs are compared."),
    Option(
        "sync.topic.acls.scope",
        Choice(("mirrormaker", "full")),
        "mirrormaker",
        "mirrormaker: ACLs of literal topic names, and none is ever removed. full: prefixes, the wildcard and groups too, and what "
        "was copied is removed again when the source no longer has it.",
        FLOW,
        since=OURS,
    ),
    _served(
        "offset-syncs.topic.replication.factor",
        _FACTOR,
        "3",
        "Replication factor of a new offset-syncs topic; -1: the broker's default.",
    ),
    _served(
        "offset-syncs.topic.location",
        Choice(("source", "target")),
        "source",
        "The cluster that has the offset-syncs topic. With source.readonly = true it is the target if nothing is said.",
        "3.0.0",
    ),
    _served(
        "offset.lag.max",
        Whole(0),
        "100",
        "A lane's next offset sync is written as soon as its last one is so many target offsets behind; looks are every second.",
    ),
    _served(
        "emit.offset-syncs.enabled",
        Flag(),
        "true",
        "Whether offset syncs are written for MirrorMaker 2's tools.",
        "3.9.0",
    ),
    _known(
        "metric.names.formats",
        Names(("legacy", "new")),
        "legacy",
        "Names of metrics.",
        "there is no JMX; /metrics has MirrorMaker 2's names and others",
        "4.3.0",
    ),
    _known("task.assigned.partitions", Names(), None, "Set by MirrorMaker 2 for its tasks.", "lanes are assigned anew"),
    _known("task.assigned.groups", Names(), None, "Set by MirrorMaker 2 for its tasks.", "groups are not assigned"),
    _known("task.index", Whole(0), None, "Set by MirrorMaker 2 for its tasks.", "lanes are assigned anew", "3.5.0"),
    _served(
        "groups",
        Regexes(),
        ".*",
        "Consumer groups of the source to look after: names or Java regular expressions that match the whole name.",
    ),
    _served(
        "groups.exclude",
        Regexes(),
        "console-consumer-.*, connect-.*, __.*",
        "Groups not to look after; wins over groups.",
        "2.7.0",
    ),
    _served(
        "group.filter.class",
        Plugin((f"{_PACKAGE}.DefaultGroupFilter",)),
        f"{_PACKAGE}.DefaultGroupFilter",
        "How groups are chosen: by groups and groups.exclude, or by a class of your own.",
    ),
    _served("refresh.groups.enabled", Flag(), "true", "Whether new groups are looked for."),
    _served("refresh.groups.interval.seconds", _SECONDS, "600", "How often new groups are looked for."),
    _served(
        "emit.checkpoints.enabled",
        Flag(),
        "true",
        "Whether checkpoints are written: where the source's groups go on, on the target.",
    ),
    _served("emit.checkpoints.interval.seconds", _SECONDS, "60", "How often checkpoints are written."),
    _served(
        "sync.group.offsets.enabled",
        Flag(),
        "false",
        "Whether offsets of the source's groups are set on the target, exactly. Never for a group with members there; back only "
        "with the group, and only what was set so.",
        "2.7.0",
    ),
    _served("sync.group.offsets.interval.seconds", _SECONDS, "60", "How often they are set.", "2.7.0"),
    _served(
        "checkpoints.topic.replication.factor",
        _FACTOR,
        "3",
        "Replication factor of a new checkpoints topic; -1: the broker's default.",
    ),
    _served(
        "emit.heartbeats.enabled",
        Flag(),
        "true",
        "Whether heartbeats of the pair are written to its target. A run of A->B writes those of B->A too, which A.heartbeats "
        "on B shows, unless B->A is a flow of its own.",
    ),
    _served("emit.heartbeats.interval.seconds", _SECONDS, "1", "How often heartbeats are written."),
    _served(
        "heartbeats.topic.replication.factor",
        _FACTOR,
        "3",
        "Replication factor of a new heartbeats topic; -1: the broker's default.",
    ),
)

REMOVED = (
    _known(
        "use.incremental.alter.configs",
        Choice(("requested", "required", "never")),
        None,
        "How configs are changed.",
        "MirrorMaker 2 removed it in 4.0; configs are always changed incrementally",
        "3.5.0",
    ),
    _known(
        "add.source.alias.to.metrics",
        Flag(),
        None,
        "Tag metrics with the source.",
        "MirrorMaker 2 removed it in 4.0; every lane names its source",
        "3.5.0",
    ),
    _known(
        "auto.include.jmx.reporter", Flag(), None, "Report by JMX.", "MirrorMaker 2 removed it in 4.0; there is no JMX"
    ),
)

ROWS = (*SERVED, *CONNECTORS, *REMOVED)
