"""Kafka Connect's options, which a MirrorMaker 2 file may hold: few are served, there is no Connect worker here."""

from __future__ import annotations

from heliograph.config.kinds import Choice, ClassName, Flag, Kind, Names, Text, Whole
from heliograph.config.option import CLUSTER, FLOW, STORAGE, Option
from heliograph.config.tables.engine import OURS

_MS = Whole(0, unit="ms")
_FACTOR = Whole(1, special=-1)
_COUNT = Whole(1, special=-1)
_NO_REST = "listeners and rest.* say how REST is served"
_NO_GROUP = "there is no group of Connect workers"
_NO_TOPICS = "Heliograph keeps its state in its own topics on the target"
_AS_IS = "records are copied byte for byte"
_REFUSED = "records are copied byte for byte, so a flow with it is refused unless transforms.ignore = true"
_CONVERTER = "records are copied byte for byte, so another one than ByteArrayConverter is refused unless transforms.ignore = true"
_NO_PLUGINS = "Java plugins are not loaded"
_LANES = "a lane that fails is parked with its reason and tried again"
_ALWAYS_ONCE = "every lane is exactly once, without transactions"


def _connector(
    name: str, kind: Kind, default: str | None, instead: str, doc: str = "Connect, per connector."
) -> Option:
    return Option(name, kind, default, doc, FLOW, served=False, instead=instead)


def _worker(name: str, kind: Kind, default: str | None, instead: str, doc: str = "Connect, per worker.") -> Option:
    return Option(name, kind, default, doc, CLUSTER, served=False, instead=instead)


CONNECTOR = (
    *(_connector(f"{part}.converter", ClassName(), None, _CONVERTER) for part in ("key", "value", "header")),
    *(_connector(f"{part}.converter.*", Text(), None, _AS_IS) for part in ("key", "value", "header")),
    _connector("transforms", Names(), "", _REFUSED, "Single message transforms."),
    Option(
        "transforms.ignore",
        Flag(),
        "false",
        "Whether records may be copied untransformed where MirrorMaker 2 would apply transforms or converters; false: such a "
        "flow is refused.",
        FLOW,
        since=OURS,
    ),
    _connector("transforms.*", Text(), None, _AS_IS, "Settings of transforms."),
    _connector("predicates", Names(), "", _AS_IS, "Conditions of transforms."),
    _connector("predicates.*", Text(), None, _AS_IS, "Settings of predicates."),
    _connector("errors.tolerance", Choice(("none", "all")), "none", _LANES),
    _connector("errors.retry.timeout", Whole(-1, unit="ms"), "0", _LANES),
    _connector("errors.retry.delay.max.ms", Whole(-1, unit="ms"), "60000", _LANES),
    _connector("errors.log.enable", Flag(), "false", _LANES),
    _connector("errors.log.include.messages", Flag(), "false", _LANES),
    _connector(
        "config.action.reload",
        Choice(("none", "restart")),
        "restart",
        "the file is read again every reload.interval.seconds, and no lane restarts",
    ),
    _connector("exactly.once.support", Choice(("requested", "required"), any_case=True), "requested", _ALWAYS_ONCE),
    _connector("transaction.boundary", Choice(("poll", "interval", "connector"), any_case=True), "poll", _ALWAYS_ONCE),
    _connector("transaction.boundary.interval.ms", _MS, None, _ALWAYS_ONCE),
    _connector("offsets.storage.topic", Text(), None, _NO_TOPICS),
    _connector("topic.creation.*", Text(), None, "replication.factor and the source topic say how topics are created"),
)

DRIVER = (
    _worker("dedicated.mode.enable.internal.rest", Flag(), "false", _NO_REST, "REST between MirrorMaker 2's nodes."),
    _worker("listeners.https.*", Text(), None, _NO_REST),
    _worker("admin.listeners", Names(), None, _NO_REST),
    _worker("rest.advertised.host.name", Text(), None, _NO_REST),
    _worker("rest.advertised.port", Whole(0, 65535), None, _NO_REST),
    _worker("rest.advertised.listener", Text(), None, _NO_REST),
    _worker("rest.extension.classes", Names(), "", _NO_REST),
    _worker("access.control.allow.origin", Text(), "", _NO_REST),
    _worker("access.control.allow.methods", Text(), "", _NO_REST),
    _worker("response.http.headers.config", Text(), "", _NO_REST),
    _worker("ssl.client.auth", Choice(("required", "requested", "none")), "none", _NO_REST),
)

WORKER = (
    Option(
        "group.id",
        Text(),
        "",
        "Connect's group, on the flow's target: a flow does not start while one of its members copies it. Empty: "
        "{source}-mm2.",
        CLUSTER,
    ),
    _worker("client.id", Text(), None, "connections are called heliograph"),
    _worker("client.dns.lookup", Text(), "use_all_dns_ips", "the system's resolver decides"),
    *(
        _worker(f"{topic}.storage.topic", Text(), None, _NO_TOPICS, "Name of a Connect topic.")
        for topic in ("config", "status")
    ),
    Option(
        "offset.storage.topic",
        Text(),
        "",
        "The topic on the target with MirrorMaker 2's stored progress. Empty: mm2-offsets.{source}.internal, or else any "
        "compacted topic whose name ends with -offsets.",
        STORAGE,
    ),
    Option(
        "offset.storage.replication.factor", _FACTOR, "3", "Of that topic, where a hand-back must create it.", STORAGE
    ),
    Option("offset.storage.partitions", _COUNT, "25", "Of that topic, where a hand-back must create it.", STORAGE),
    *(_worker(f"{topic}.storage.replication.factor", _FACTOR, "3", _NO_TOPICS) for topic in ("config", "status")),
    _worker("status.storage.partitions", _COUNT, "5", _NO_TOPICS),
    *(
        _worker(f"{topic}.storage.*", Text(), None, _NO_TOPICS, "Configs of a Connect topic.")
        for topic in ("offset", "config", "status")
    ),
    Option(
        "offset.flush.interval.ms",
        _MS,
        "60000",
        "On the flow's target: how often offset syncs are written that offset.lag.max does not call for. Positions are "
        "written every ledger.interval.ms.",
        CLUSTER,
    ),
    _worker("offset.flush.timeout.ms", _MS, "5000", "ledger.interval.ms says how often positions are written"),
    _worker(
        "exactly.once.source.support",
        Choice(("disabled", "preparing", "enabled"), any_case=True),
        "disabled",
        _ALWAYS_ONCE,
        "Connect's transactions.",
    ),
    _worker("scheduled.rebalance.max.delay.ms", _MS, "300000", _NO_GROUP),
    _worker("session.timeout.ms", _MS, "10000", _NO_GROUP),
    _worker("rebalance.timeout.ms", _MS, "60000", _NO_GROUP),
    _worker("heartbeat.interval.ms", _MS, "3000", _NO_GROUP),
    _worker("worker.sync.timeout.ms", _MS, "3000", _NO_GROUP),
    _worker("worker.unsync.backoff.ms", _MS, "300000", _NO_GROUP),
    _worker("task.shutdown.graceful.timeout.ms", _MS, "5000", "a stop drains every lane first"),
    _worker("connect.protocol", Choice(("eager", "compatible", "sessioned")), "sessioned", _NO_GROUP),
    _worker("inter.worker.*", Text(), None, _NO_GROUP, "Keys with which workers sign requests."),
    _worker("connector.client.config.override.policy", Text(), "All", _NO_PLUGINS),
    _worker("plugin.path", Names(), None, _NO_PLUGINS),
    _worker(
        "plugin.discovery",
        Choice(("only_scan", "service_load", "hybrid_warn", "hybrid_fail"), any_case=True),
        "hybrid_warn",
        _NO_PLUGINS,
    ),
    _worker("topic.creation.enable", Flag(), "true", "the engine creates remote topics itself"),
    _worker("topic.tracking.enable", Flag(), "true", "status shows every topic"),
    _worker("topic.tracking.allow.reset", Flag(), "true", "status shows every topic"),
    *(
        _worker(name, _MS, default, "the engine has its own timeouts (request.timeout.ms, lane.retry.backoff.ms)")
        for name, default in (
            ("connections.max.idle.ms", "540000"),
            ("metadata.max.age.ms", "300000"),
            ("metadata.recovery.rebootstrap.trigger.ms", "300000"),
            ("reconnect.backoff.ms", "50"),
            ("reconnect.backoff.max.ms", "1000"),
            ("retry.backoff.ms", "100"),
            ("retry.backoff.max.ms", "1000"),
            ("socket.connection.setup.timeout.ms", "10000"),
            ("socket.connection.setup.timeout.max.ms", "30000"),
        )
    ),
    _worker("metadata.recovery.strategy", Text(), "rebootstrap", "brokers are always looked up again"),
    _worker("metrics.num.samples", Whole(1), "2", "there is no JMX; metrics are at /metrics"),
    _worker("metrics.sample.window.ms", _MS, "30000", "there is no JMX; metrics are at /metrics"),
    _worker("metrics.context.*", Text(), None, "there is no JMX; metrics are at /metrics"),
    _worker("receive.buffer.bytes", Whole(-1), "32768", "the engine sizes its sockets itself"),
    _worker("send.buffer.bytes", Whole(-1), "131072", "the engine sizes its sockets itself"),
)

ROWS = (*CONNECTOR, *DRIVER, *WORKER)
