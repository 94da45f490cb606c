"""Which permissions a flow needs, as one table, and what follows from those that are missing.

docs/footprint.md shows the same table. Must not know how a broker is asked: `kafka.grants` does that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from heliograph.replication.findings import Finding, Level, named


class On(StrEnum):
    """Which resource a permission is for, in the words of the document."""

    SOURCE_TOPICS = "each source topic"
    SOURCE_CLUSTER = "the source cluster"
    SOURCE_HEARTBEATS = "the source's topic `heartbeats`"
    SOURCE_SYNCS = "the source's topic `mm2-offset-syncs.<target>.internal`"
    SOURCE_GROUPS = "each group of the source"
    SOURCE_GROUP = "group `heliograph-<source>-<target>`"
    CANARY = "topic `heliograph-canary-<source>-<target>`"
    HOME_LEDGER = "the source's topic `__heliograph-ledger`"
    REMOTE_TOPICS = "each remote topic"
    OWN_TOPICS = "topics `__heliograph-*`"
    TRANSACTIONAL_ID = "transactional id `heliograph.<flow>`"
    MM2_GROUP = "group `<source>-mm2`, each Connect group"
    TARGET_CLUSTER = "the target cluster"
    TARGET_HEARTBEATS = "the target's topic `heartbeats`"
    TARGET_SYNCS = "the target's topic `mm2-offset-syncs.<source>.internal`"
    CHECKPOINTS = "topic `<source>.checkpoints.internal`"
    TARGET_GROUPS = "each of these groups on the target"
    START_GROUP = "the group of `start.from = group:NAME`"
    DEAD_LETTERS = "topics `__heliograph-dead-letter.*`"
    MM2_OFFSETS = "topic `mm2-offsets.<source>.internal`"
    MM2_CONFIGS = "topic `mm2-configs.<source>.internal`"


class Occasion(StrEnum):
    """What a permission is for; `run` is every run."""

    RUN = "run"
    JOBS = "jobs"
    """What a run does around the records: a job that lacks it says so itself."""
    BOTH_WAYS = "both ways"
    """A run whose flow meets records on its source that the flow in the other direction wrote under the same names."""
    TAKE_OVER = "take-over"
    HAND_BACK = "hand-back"
    FORGET = "forget"

    @property
    def is_at_run(self) -> bool:
        return self in (Occasion.RUN, Occasion.BOTH_WAYS, Occasion.TAKE_OVER)


@dataclass(frozen=True)
class Need:
    """One permission. `level` is what a check says when it is missing: FAIL if records cannot be copied without it."""

    on: On
    operation: str
    level: Level
    why: str
    when: Occasion = Occasion.RUN

    @property
    def is_on_source(self) -> bool:
        return self.on in _ON_SOURCE


_ON_SOURCE = frozenset(
    {
        On.SOURCE_TOPICS,
        On.SOURCE_CLUSTER,
        On.SOURCE_HEARTBEATS,
        On.SOURCE_SYNCS,
        On.SOURCE_GROUPS,
        On.SOURCE_GROUP,
        On.CANARY,
        On.START_GROUP,
        On.HOME_LEDGER,
    }
)
_FAIL, _WARN = Level.FAIL, Level.WARN
_SYNCS = "offset syncs are written there; without it they are not"

NEEDS: tuple[Need, ...] = (
    Need(On.SOURCE_TOPICS, "READ", _FAIL, "records are read"),
    Need(
        On.SOURCE_TOPICS, "DESCRIBE_CONFIGS", _FAIL, "cleanup.policy says how a lane counts; new remote topics copy it"
    ),
    Need(On.SOURCE_CLUSTER, "DESCRIBE", _WARN, "sizes, the clock and ACLs are read; without it they are not known"),
    Need(On.START_GROUP, "DESCRIBE", _FAIL, "lanes begin at the offsets that it committed"),
    Need(On.REMOTE_TOPICS, "CREATE", _FAIL, "missing remote topics are made"),
    Need(On.REMOTE_TOPICS, "WRITE", _FAIL, "records are written"),
    Need(On.REMOTE_TOPICS, "READ", _FAIL, "attach asks what the target has and proves its position"),
    Need(On.REMOTE_TOPICS, "DESCRIBE_CONFIGS", _FAIL, "batches are cut to the remote topic's limits"),
    Need(On.REMOTE_TOPICS, "ALTER", _WARN, "remote topics grow with their sources; without it new partitions wait"),
    Need(On.OWN_TOPICS, "CREATE", _FAIL, "ledger, telemetry and events are made by the first run"),
    Need(On.OWN_TOPICS, "WRITE", _FAIL, "positions, telemetry and events are written"),
    Need(On.OWN_TOPICS, "READ", _FAIL, "positions are read; status and events read the rest"),
    Need(
        On.OWN_TOPICS, "DESCRIBE_CONFIGS", _FAIL, "a ledger that is not compacted would lose positions, and is refused"
    ),
    Need(On.TRANSACTIONAL_ID, "WRITE", _FAIL, "the flow's identity is given out by the coordinator"),
    Need(
        On.TARGET_CLUSTER, "DESCRIBE_CONFIGS", _FAIL, "producer.id.expiration.ms says how long the target guards a lane"
    ),
    Need(
        On.TARGET_CLUSTER,
        "DESCRIBE",
        _WARN,
        "space, clock, ACLs and Connect groups are read; without it they are not known",
    ),
    Need(On.MM2_GROUP, "DESCRIBE", _WARN, "a MirrorMaker 2 that still runs is noticed"),
    Need(On.DEAD_LETTERS, "CREATE", _WARN, "with on.bad.record = dead-letter they are made for the first bad record"),
    Need(On.DEAD_LETTERS, "WRITE", _WARN, "with on.bad.record = dead-letter bad records are kept there"),
    Need(On.SOURCE_HEARTBEATS, "CREATE", _WARN, "heartbeats are written there; without it they are not", Occasion.JOBS),
    Need(On.SOURCE_HEARTBEATS, "WRITE", _WARN, "heartbeats are written there; without it they are not", Occasion.JOBS),
    Need(
        On.SOURCE_GROUP, "READ", _WARN, "positions are committed as this group; without it they are not", Occasion.JOBS
    ),
    Need(On.CANARY, "CREATE", _WARN, "with canary.enabled it is made", Occasion.JOBS),
    Need(On.CANARY, "WRITE", _WARN, "with canary.enabled events are sent through it", Occasion.JOBS),
    Need(On.TARGET_HEARTBEATS, "CREATE", _WARN, "heartbeats are written there; without it they are not", Occasion.JOBS),
    Need(On.TARGET_HEARTBEATS, "WRITE", _WARN, "heartbeats are written there; without it they are not", Occasion.JOBS),
    Need(
        On.REMOTE_TOPICS,
        "ALTER_CONFIGS",
        _WARN,
        "configs follow those of the source topics; without it they stay as they are",
        Occasion.JOBS,
    ),
    Need(
        On.REMOTE_TOPICS,
        "DELETE",
        _WARN,
        "with sync.topic.deletes.enabled they follow deleted source topics; without it they stay",
        Occasion.JOBS,
    ),
    Need(
        On.TARGET_CLUSTER, "ALTER", _WARN, "ACLs follow those of the source; without it none are written", Occasion.JOBS
    ),
    Need(On.SOURCE_SYNCS, "CREATE", _WARN, _SYNCS, Occasion.JOBS),
    Need(On.SOURCE_SYNCS, "WRITE", _WARN, _SYNCS, Occasion.JOBS),
    Need(On.TARGET_SYNCS, "CREATE", _WARN, _SYNCS, Occasion.JOBS),
    Need(On.TARGET_SYNCS, "WRITE", _WARN, _SYNCS, Occasion.JOBS),
    Need(
        On.SOURCE_GROUPS,
        "DESCRIBE",
        _WARN,
        "checkpoints and group offsets are made of what they committed; without it they have none",
        Occasion.JOBS,
    ),
    Need(On.CHECKPOINTS, "CREATE", _WARN, "it is made for the first checkpoint", Occasion.JOBS),
    Need(On.CHECKPOINTS, "WRITE", _WARN, "checkpoints are written there; without it there are none", Occasion.JOBS),
    Need(On.CHECKPOINTS, "READ", _WARN, "what it holds is read first, so that no checkpoint goes back", Occasion.JOBS),
    Need(
        On.TARGET_GROUPS,
        "READ",
        _WARN,
        "with sync.group.offsets.enabled their offsets are set; without it they stay",
        Occasion.JOBS,
    ),
    Need(On.HOME_LEDGER, "CREATE", _FAIL, "without it nobody can tell what came home", Occasion.BOTH_WAYS),
    Need(On.HOME_LEDGER, "READ", _FAIL, "it names the producer ids of what came home", Occasion.BOTH_WAYS),
    Need(On.MM2_OFFSETS, "READ", _WARN, "MirrorMaker 2's stored progress is read", Occasion.TAKE_OVER),
    Need(
        On.MM2_OFFSETS,
        "DESCRIBE_CONFIGS",
        _FAIL,
        "progress is kept in compacted topics, others are passed over",
        Occasion.TAKE_OVER,
    ),
    Need(
        On.MM2_CONFIGS,
        "READ",
        _WARN,
        "tells which connectors copy the flow, and which are switched off",
        Occasion.TAKE_OVER,
    ),
    Need(On.MM2_OFFSETS, "CREATE", _WARN, "a hand-back makes it if it is missing", Occasion.HAND_BACK),
    Need(On.MM2_OFFSETS, "WRITE", _WARN, "a hand-back writes our positions into it", Occasion.HAND_BACK),
    Need(On.OWN_TOPICS, "DELETE", _WARN, "forgetting a flow cuts off or deletes what is of it", Occasion.FORGET),
)


@dataclass(frozen=True)
class Granted:
    """A need's resources by name: is it granted? Resources for which it is not needed now are left out."""

    need: Need
    by_name: Mapping[str, bool]
    urgent: frozenset[str] = frozenset()
    """Names where a missing permission that would be a WARN is a FAIL: a remote topic that must grow now, stored progress
    that is there."""
    unseen: frozenset[str] = frozenset()
    """Names that brokers do not show: of no such topic, or of one that may not be seen."""

    @property
    def missing(self) -> frozenset[str]:
        return frozenset(name for name, is_granted in self.by_name.items() if not is_granted)


def permission_findings(flow: str, aliases: tuple[str, str], granted: Sequence[Granted]) -> Iterator[Finding]:
    """One line for each need that has a resource now; `aliases` are source and target."""
    for answer in granted:
        if answer.by_name:
            yield _finding(flow, aliases[0 if answer.need.is_on_source else 1], answer)


def at_run(flow: str, aliases: tuple[str, str], granted: Sequence[Granted]) -> Iterator[Finding]:
    """The same for a run: only what it needs itself.

    Progress of a MirrorMaker 2 that is not seen is most often not there; where it is, lanes that need it are refused and say so.
    """
    told = [answer for answer in granted if answer.need.when.is_at_run]
    doubts = [answer for answer in told if answer.missing and answer.missing <= answer.unseen]
    yield from permission_findings(flow, aliases, [answer for answer in told if answer not in doubts])
    names = {name for answer in doubts for name in answer.missing}
    if names:
        sentence = f"READ on {_resource(On.MM2_OFFSETS, sorted(names))} of cluster {aliases[1]} is not granted"
        why = "this only matters if a MirrorMaker 2 copied the flow before"
        yield Finding(Level.NOTE, f"{flow}: permission READ", f"{sentence}: {why}")


def _finding(flow: str, alias: str, answer: Granted) -> Finding:
    need = answer.need
    missing = [name for name in answer.by_name if name in answer.missing]
    subject = f"{flow}: permission {need.operation}"
    if not missing:
        return Finding(Level.PASS, subject, f"granted on {_resource(need.on, answer.by_name)} of cluster {alias}")
    level = Level.FAIL if answer.urgent & set(missing) else need.level
    what = _resource(need.on, missing)
    return Finding(
        level,
        subject,
        f"{need.operation} on {what} of cluster {alias} is missing: {need.why}",
        f"grant {need.operation} on {what} to Heliograph's principal on cluster {alias}",
    )


_KIND = {
    On.SOURCE_TOPICS: "topic",
    On.SOURCE_HEARTBEATS: "topic",
    On.SOURCE_GROUP: "group",
    On.CANARY: "topic",
    On.TARGET_HEARTBEATS: "topic",
    On.SOURCE_SYNCS: "topic",
    On.TARGET_SYNCS: "topic",
    On.CHECKPOINTS: "topic",
    On.SOURCE_GROUPS: "group",
    On.TARGET_GROUPS: "group",
    On.HOME_LEDGER: "topic",
    On.REMOTE_TOPICS: "topic",
    On.OWN_TOPICS: "topic",
    On.TRANSACTIONAL_ID: "transactional id",
    On.MM2_GROUP: "group",
    On.START_GROUP: "group",
    On.DEAD_LETTERS: "topic",
    On.MM2_OFFSETS: "topic",
    On.MM2_CONFIGS: "topic",
}


def _resource(on: On, names: Mapping[str, bool] | Sequence[str]) -> str:
    """`topics a, b`, `group A-mm2`, `the cluster`."""
    kind = _KIND.get(on)
    if kind is None:
        return "the cluster"
    return f"{kind}{'s' if len(names) > 1 else ''} {named(names)}"


_TOPIC_REFUSED, _CLUSTER_REFUSED = 29, 31


@dataclass(frozen=True)
class Missing:
    """A permission that a broker's refusal asks for; `resource` as in `the topic A.orders`."""

    operation: str
    resource: str
    cluster: str

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource} of cluster {self.cluster}"

    @property
    def advice(self) -> str:
        return f"grant {self.operation} on {self.resource} to Heliograph's principal on cluster {self.cluster}"


def missing_on_topic(code: int | None, operation: str, topic: str, cluster: str) -> Missing | None:
    """What a refusal means that came for an operation on a topic; None for what has nothing to do with permissions."""
    return Missing(operation, f"the topic {topic}", cluster) if code == _TOPIC_REFUSED else None


def missing_on_cluster(code: int | None, operation: str, cluster: str) -> Missing | None:
    """The same for an operation on the cluster itself."""
    return Missing(operation, "the cluster", cluster) if code == _CLUSTER_REFUSED else None


def missing_to_write(code: int | None, topic: str, cluster: str) -> Missing | None:
    """The same for a Produce; brokers before Kafka 2.8 want a permission on the cluster too."""
    return missing_on_cluster(code, "IDEMPOTENT_WRITE", cluster) or missing_on_topic(code, "WRITE", topic, cluster)
