"""What a remote topic takes against what its source holds: sizes and timestamps.

Knows configs as values. A remote topic that does not exist yet has what it will be created with, and for the rest the
defaults of the target's brokers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from heliograph.replication.findings import Finding, Level, named

UNLIMITED_MS = 9_223_372_036_854_775_807
BROKER_NAMES: Mapping[str, str] = {
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
}
"""A topic's config to the broker's setting that is its default."""
_DEFAULT_MAX_BYTES = 1_048_588


@dataclass(frozen=True)
class TopicLimits:
    """What one topic allows; -1 as retention keeps records for ever."""

    max_bytes: int
    before_max_ms: int
    after_max_ms: int
    append_time: bool
    retention_ms: int = -1


@dataclass(frozen=True)
class LimitPair:
    """A source topic and its remote topic, which need not exist yet."""

    topic: str
    remote: str
    source: TopicLimits
    target: TopicLimits


def limits_of(configs: Mapping[str, str | None]) -> TopicLimits:
    """From a topic's configs, defaults among them; what a broker does not have is unlimited."""
    return TopicLimits(
        max_bytes=int(configs.get("max.message.bytes") or _DEFAULT_MAX_BYTES),
        before_max_ms=int(configs.get("message.timestamp.before.max.ms") or UNLIMITED_MS),
        after_max_ms=int(configs.get("message.timestamp.after.max.ms") or UNLIMITED_MS),
        append_time=configs.get("message.timestamp.type") == "LogAppendTime",
        retention_ms=int(configs.get("retention.ms") or -1),
    )


def limits_to_be(configs: Mapping[str, str], broker: Mapping[str, str | None]) -> TopicLimits:
    """Of a topic that will be created with these configs, where `broker` are the brokers' own settings."""
    return limits_of({name: configs.get(name, broker.get(theirs)) for name, theirs in BROKER_NAMES.items()})


def limit_findings(flow: str, pairs: Sequence[LimitPair]) -> Iterator[Finding]:
    """One line for sizes, one for timestamps: PASS, or WARN with the topics. A record that does not fit parks its lane."""
    small = {pair.remote: pair for pair in pairs if pair.target.max_bytes < pair.source.max_bytes}
    yield _finding(
        f"{flow}: max.message.bytes",
        [
            f"{remote} takes {pair.target.max_bytes}, {pair.topic} {pair.source.max_bytes}"
            for remote, pair in small.items()
        ],
        "remote topics take batches as large as their sources",
        "larger batches are split, a single larger record parks its lane: raise max.message.bytes of the remote topic",
    )
    strict = {pair.remote: refused for pair in pairs if (refused := _refused(pair))}
    yield _finding(
        f"{flow}: timestamp limits",
        [f"{remote} refuses {refused}" for remote, refused in strict.items()],
        "remote topics take every timestamp that their sources hold",
        "raise message.timestamp.before.max.ms and message.timestamp.after.max.ms of the remote topic",
    )


def _finding(subject: str, faults: Sequence[str], well: str, advice: str) -> Finding:
    if not faults:
        return Finding(Level.PASS, subject, well)
    return Finding(Level.WARN, subject, named(faults, 5), advice)


def _refused(pair: LimitPair) -> str:
    """Which records the remote topic would refuse; empty if none that the source can hold."""
    source, target = pair.source, pair.target
    if target.append_time:
        return ""  # the target stamps records itself and looks at no timestamp
    # A record grows older on the source after it was accepted there, up to its retention.
    oldest_ms = UNLIMITED_MS if source.retention_ms < 0 else source.retention_ms
    if target.before_max_ms < min(UNLIMITED_MS, max(source.before_max_ms, oldest_ms)):
        return f"records older than {_span(target.before_max_ms)}"
    if target.after_max_ms < source.after_max_ms:
        return f"records more than {_span(target.after_max_ms)} in the future"
    return ""


def _span(milliseconds: int) -> str:
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if milliseconds >= length and milliseconds % length == 0:
            return f"{milliseconds // length} {unit}"
    return f"{milliseconds} ms"
