"""Heliograph's own options: top level names, no prefix."""

from __future__ import annotations

from heliograph.config.kinds import Choice, Flag, Text, Whole
from heliograph.config.option import FLOW, FLOW_ONLY, TOP, Option

OURS = "Heliograph 0.1"


def _own(name: str, kind: Whole | Choice | Text, default: str, doc: str) -> Option:
    return Option(name, kind, default, doc, TOP, since=OURS)


def _policy(name: str, values: tuple[str, ...], doc: str) -> Option:
    """The first value is the default."""
    return Option(name, Choice(values), values[0], doc, FLOW, since=OURS)


LIMIT_ROWS = (
    Option(
        "throttle.bytes.per.second",
        Whole(0),
        "0",
        "Bytes that a flow may read of its source in a second, all its lanes together; 0: no limit.",
        FLOW,
        since=OURS,
    ),
    Option(
        "topic.<name>.throttle.bytes.per.second",
        Whole(0),
        "0",
        "The same for one topic: A->B.topic.orders.throttle.bytes.per.second = 1000000.",
        FLOW_ONLY,
        since=OURS,
    ),
    Option(
        "recompress",
        Flag(),
        "false",
        "Whether copies get the codec of the target's `producer.compression.type`. Every batch of another codec is then opened "
        "and built anew, which costs the CPU time that forwarding saves.",
        FLOW,
        since=OURS,
    ),
)

ROWS = (
    _own(
        "epoch.seconds",
        Whole(2, 50, unit="seconds"),
        "45",
        "How long one Spark job carries its lanes; more than 500 lanes as many times longer.",
    ),
    _own("slots", Whole(0), "0", "Tasks that carry lanes at the same time; 0: as many as there are CPUs."),
    _own("slot.memory.bytes", Whole(1_048_576), "67108864", "Batches that one slot may hold in memory."),
    _own("master", Text(), "", "Spark's master URL; empty: Spark runs inside this process."),
    _own(
        "unknown.options",
        Choice(("warn", "error")),
        "warn",
        "What an unknown name in the file is: a warning or a fault.",
    ),
    _own(
        "takeover.wait.seconds",
        Whole(0, unit="seconds"),
        "90",
        "How long a lane that the broker does not guard waits until an old attempt counts as dead. Not less than such an attempt "
        "may still write: with the default `request.timeout.ms` 53; the default also covers followers that hang as long as a "
        "leader waits for them (`replica.lag.time.max.ms`, 30 s). See [exactly once](exactly-once.md).",
    ),
    _own("ledger.interval.ms", Whole(1, unit="ms"), "1000", "How often a lane's position is written to the ledger."),
    _own(
        "heliograph.topics.replication.factor",
        Whole(0),
        "0",
        "Replication factor of Heliograph's own topics; 0: as many as there are brokers, at most 3.",
    ),
    _own("request.timeout.ms", Whole(1, unit="ms"), "30000", "How long a broker that owes an answer may be silent."),
    _own("lane.retry.backoff.ms", Whole(1, unit="ms"), "1000", "First wait before a parked lane is tried again."),
    _own(
        "lane.retry.backoff.max.ms", Whole(1, unit="ms"), "60000", "Longest wait before a parked lane is tried again."
    ),
    _own(
        "merge.below.bytes",
        Whole(0),
        "4096",
        "A lane whose batches are smaller than this on average merges them; 0: never.",
    ),
    _own("merge.target.bytes", Whole(1024), "1048576", "How large a merged batch may become."),
    _own("in.flight.batches", Whole(1, 5), "5", "Batches of one lane on their way to the target at the same time."),
    _own(
        "reload.interval.seconds",
        Whole(0, unit="seconds"),
        "10",
        "How often a run looks whether its file was saved, and reads it again; 0: only on SIGHUP.",
    ),
    _own("telemetry.interval.ms", Whole(100, unit="ms"), "1000", "How often positions and counters are published."),
    _policy(
        "on.source.reset",
        ("fail", "restart"),
        "When a source topic was made anew, or lost records that were copied: stop its lanes, or copy what it has now after "
        "what the target has.",
    ),
    _policy(
        "on.data.loss",
        ("continue", "fail"),
        "When the source deleted records before they were copied: go on with what it has, or stop the lane. Both say how many.",
    ),
    _policy(
        "on.target.loss",
        ("recopy", "fail"),
        "When the target lost records that it had acknowledged, or its topic was made anew: copy them again, or stop.",
    ),
    _policy(
        "on.foreign.writer",
        ("continue", "fail"),
        "When somebody else writes into a remote topic: go on after their records, or stop the lane.",
    ),
    _policy(
        "on.bad.record",
        ("park", "skip", "dead-letter"),
        "A record that the target refuses: stop the lane there, leave it out, or keep it in the remote topic's dead-letter "
        "topic and go on.",
    ),
    _own("spark.*", Text(), "", "Handed to Spark's configuration as it is."),
)
