"""Facts about the two clusters of a flow to findings: reach, identity, versions, clocks, space.

Values in, sentences out. Must not know how the facts were come by: `operations.check` gathers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from heliograph.model.takeover import needed_wait_s
from heliograph.replication.broker_versions import named_broker, needs_of, unsupported
from heliograph.replication.findings import Finding, Level, named

_HOUR_MS = 3_600_000
_CLOCK_WARN_MS = 10_000
_TIGHT = 0.8

Versions = Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class BrokerFacts:
    """One broker at the address that it tells its clients. `trouble` is why it could not be asked."""

    node: int
    address: str
    trouble: str = ""
    versions: Versions = field(default_factory=dict)


@dataclass(frozen=True)
class ClockFacts:
    """A cluster's clock less this machine's, as measured once; `within_ms` is how wrong that can be."""

    ahead_ms: int
    within_ms: int


@dataclass(frozen=True)
class SpaceFacts:
    """Bytes of all log directories of a cluster's brokers."""

    total: int
    usable: int


@dataclass(frozen=True)
class ClusterFacts:
    """What connecting to a cluster showed."""

    alias: str
    addresses: tuple[str, ...]
    protocol: str = "PLAINTEXT"
    cluster_id: str = ""
    unreachable: str = ""
    """No address answered: why."""
    refused: str = ""
    """An address answered, but would not let us in: why."""
    brokers: tuple[BrokerFacts, ...] = ()
    clock: ClockFacts | None = None
    no_clock: str = ""
    """Why the clock is not known."""

    @property
    def is_open(self) -> bool:
        return not (self.unreachable or self.refused)

    @property
    def live_brokers(self) -> int:
        return len(self.brokers)


def reach_findings(cluster: ClusterFacts) -> Iterator[Finding]:
    """Reach and authentication: the bootstrap addresses, then every broker where it says that it is."""
    addresses = ", ".join(cluster.addresses)
    reach, login = f"{cluster.alias}: reach", f"{cluster.alias}: authentication"
    if cluster.unreachable:
        advice = (
            f"see that a broker runs there and that {cluster.alias}.bootstrap.servers and the network let us reach it"
        )
        yield Finding(Level.FAIL, reach, cluster.unreachable, advice)
        return
    if cluster.refused:
        advice = f"see security.protocol, ssl.* and sasl.* of cluster {cluster.alias}"
        yield Finding(Level.FAIL, login, f"{addresses}: {cluster.refused}", advice)
        return
    silent = [broker for broker in cluster.brokers if broker.trouble]
    for broker in silent:
        advice = "see advertised.listeners of that broker and the network between"
        sentence = f"broker {broker.node} is to be reached at {broker.address}, and is not: {broker.trouble}"
        level = Level.FAIL if len(silent) == len(cluster.brokers) else Level.WARN
        yield Finding(level, reach, sentence, advice)
    if not silent:
        yield Finding(Level.PASS, reach, f"{len(cluster.brokers)} broker(s) answer, first asked at {addresses}")
    yield Finding(Level.PASS, login, f"accepted with security.protocol {cluster.protocol}")


def identity_finding(flow: str, source: ClusterFacts, target: ClusterFacts) -> Finding:
    """The same cluster under two aliases would copy a topic for ever."""
    subject = f"{flow}: cluster ids"
    if not (source.cluster_id and target.cluster_id):
        advice = "see why a cluster tells no id: a copy into itself cannot be told from one into another"
        return Finding(Level.WARN, subject, "a cluster tells no id, so they cannot be compared", advice)
    if source.cluster_id == target.cluster_id:
        sentence = f"{source.alias} and {target.alias} are the same cluster ({source.cluster_id})"
        return Finding(Level.FAIL, subject, sentence, "give them different bootstrap.servers, or disable the flow")
    return Finding(Level.PASS, subject, f"different: {source.cluster_id} and {target.cluster_id}")


def api_findings(cluster: ClusterFacts, *, is_target: bool) -> Iterator[Finding]:
    """Every broker must offer what is spoken here: the one that leads a partition is the one that is asked."""
    subject = f"{cluster.alias}: versions"
    asked = [broker for broker in cluster.brokers if not broker.trouble]
    faults = [_fault(cluster.alias, broker, is_target) for broker in asked]
    for sentence in filter(None, faults):
        yield Finding(Level.FAIL, subject, sentence)
    if asked and not any(faults):
        shared = _offered([broker.versions for broker in asked], is_target)
        yield Finding(Level.PASS, subject, f"every broker offers {shared}")


def _fault(alias: str, broker: BrokerFacts, is_target: bool) -> str | None:
    return unsupported(named_broker(alias, broker.node, broker.address), broker.versions, is_target=is_target)


def _offered(brokers: Sequence[Versions], is_target: bool) -> str:
    """The versions that all of them share."""
    parts = []
    for need in needs_of(is_target=is_target):
        low = max(versions[need.key][0] for versions in brokers)
        high = min(versions[need.key][1] for versions in brokers)
        parts.append(f"{need.name} {low}-{high}" if low != high else f"{need.name} {low}")
    return ", ".join(parts)


def factor_finding(flow: str, option: str, wanted: int, target: ClusterFacts) -> Finding:
    """A replication factor cannot be larger than the number of brokers. -1 and 0 leave it to the target."""
    subject = f"{flow}: {option}"
    brokers = target.live_brokers
    if wanted <= 0:
        return Finding(Level.PASS, subject, f"left to cluster {target.alias}, which has {brokers} broker(s)")
    if wanted > brokers:
        return Finding(
            Level.FAIL,
            subject,
            f"{option} = {wanted}, and cluster {target.alias} has {brokers} broker(s)",
            f"set {option} to {brokers} or less, or bring the missing brokers up",
        )
    return Finding(Level.PASS, subject, f"{wanted} of {brokers} broker(s) of cluster {target.alias}")


def clock_findings(flow: str, source: ClusterFacts, target: ClusterFacts, expiration_ms: int) -> Iterator[Finding]:
    """Clocks against this machine's. The guard compares the target's clock with record timestamps, with a margin."""
    margin_ms = min(_HOUR_MS, expiration_ms // 2)
    for cluster, limit_ms in ((source, _HOUR_MS), (target, margin_ms)):
        yield _clock(f"{flow}: clock of {cluster.alias}", cluster, limit_ms)


def _clock(subject: str, cluster: ClusterFacts, limit_ms: int) -> Finding:
    clock = cluster.clock
    if clock is None:
        advice = f"compare the clocks of this machine and of cluster {cluster.alias} yourself"
        return Finding(Level.WARN, subject, f"not measured: {cluster.no_clock}", advice)
    off_ms = max(0, abs(clock.ahead_ms) - clock.within_ms)
    side = "ahead of" if clock.ahead_ms > 0 else "behind"
    measured = f"{abs(clock.ahead_ms) / 1000:.3f} s {side} this machine's, give or take {clock.within_ms / 1000:.3f} s"
    how = "the active controller's answer to DescribeQuorum"
    if off_ms < _CLOCK_WARN_MS:
        return Finding(Level.PASS, subject, f"{measured} ({how})")
    level = Level.FAIL if off_ms >= limit_ms else Level.WARN
    sentence = f"{measured} ({how}): timestamps, latencies and the target's memory of producers are judged by clocks"
    return Finding(level, subject, sentence, "run NTP on all of them")


def wait_findings(flow: str, wait_s: int, request_timeout_ms: int, replica_lag_ms: int) -> Iterator[Finding]:
    """The take-over wait against what only the target knows: how long its leaders wait for followers (P5)."""
    needed_s = needed_wait_s(request_timeout_ms, replica_lag_ms)
    if wait_s < needed_s:
        sentence = (
            f"{wait_s} s may be over before followers of the target have what an attempt wrote that is not heard any more "
            f"(request.timeout.ms = {request_timeout_ms}, the target's replica.lag.time.max.ms = {replica_lag_ms}): a lane that "
            "the target does not guard could then repeat it"
        )
        yield Finding(Level.WARN, f"{flow}: takeover.wait.seconds", sentence, f"set it to {needed_s} or more")


def space_finding(flow: str, target: str, needed: int, space: SpaceFacts | None, why_not: str = "") -> Finding:
    """`needed`: bytes still to be copied, all replicas."""
    subject = f"{flow}: space on {target}"
    if space is None:
        return Finding(Level.WARN, subject, f"not known: {why_not}", f"look at the disks of cluster {target} yourself")
    sentence = (
        f"{_size(needed)} are still to be copied (all replicas), {_size(space.usable)} of {_size(space.total)} free"
    )
    if needed <= space.usable * _TIGHT:
        return Finding(Level.PASS, subject, sentence)
    level = Level.FAIL if needed > space.usable else Level.WARN
    return Finding(level, subject, sentence, "make room, lower retention on the remote topics, or mirror fewer topics")


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def choice_findings(
    flow: str, literals: Sequence[str], chosen: Sequence[str], visible: Sequence[str]
) -> Iterator[Finding]:
    """Names in `topics` that no topic has, as far as this client may see. Brokers hide what may not be described."""
    subject = f"{flow}: topics"
    unseen = [name for name in literals if name not in set(visible)]
    advice = (
        "see the spelling in topics, and that READ on the topic is granted: brokers hide topics that may not be seen"
    )
    if unseen:
        yield Finding(Level.WARN, subject, f"not on the source, or hidden from us: {named(unseen)}", advice)
    if not chosen:
        yield Finding(Level.WARN, subject, "no topic of the source is chosen: nothing would be copied", advice)
    elif not unseen:
        yield Finding(Level.PASS, subject, f"{len(chosen)} chosen: {named(chosen, 5)}")
