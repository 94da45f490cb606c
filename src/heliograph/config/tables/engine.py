"""Heliograph's own options: top level names, no prefix."""

from __future__ import annotations

from heliograph.config.kinds import Choice, Flag, Only, Text, Whole
from heliograph.config.option import FLOW, TOP, Option

OURS = "Heliograph 0.1"


def _own(name: str, kind: Whole | Choice | Text | Only, default: str, doc: str) -> Option:
    return Option(name, kind, default, doc, TOP, since=OURS)


def _policy(name: str, value: str, doc: str) -> Option:
    return _own(name, Only(value), value, doc)


LIMIT_ROWS = (
    Option(
        "throttle.bytes.per.second",
        Whole(0),
        "0",
        "Bytes that a flow may read of its source in a second, all its lanes together; 0: no limit. Counts as soon as the "
        "file is saved, also while it runs.",
        FLOW,
        since=OURS,
    ),
    Option(
        "throttle.bytes.per.second.*",
        Whole(0),
        "0",
        "The same for one topic, whose name on the source stands in place of the star.",
        FLOW,
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
    _own("epoch.seconds", Whole(2, 50, unit="seconds"), "45", "How long one Spark job carries its lanes."),
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
        "How long a lane that the broker does not guard waits until an old attempt counts as dead.",
    ),
    _own("ledger.interval.ms", Whole(1, unit="ms"), "1000", "How often a lane's position is written to the ledger."),
    _own(
        "heliograph.topics.replication.factor",
        Whole(0),
        "0",
        "Replication factor of Heliograph's own topics; 0: as many as there are brokers, at most 3.",
    ),
    _own("request.timeout.ms", Whole(1, unit="ms"), "30000", "How long a broker has to answer."),
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
    _own("telemetry.interval.ms", Whole(100, unit="ms"), "1000", "How often positions and counters are published."),
    _policy("on.source.reset", "fail", "What to do when a source topic was made anew."),
    _policy("on.data.loss", "continue", "What to do when records were deleted before they were copied."),
    _policy("on.target.loss", "recopy", "What to do when copied records are gone from the target."),
    _policy("on.foreign.writer", "continue", "What to do when somebody else writes into a remote topic."),
    _policy("on.bad.record", "park", "What to do with a record that the target refuses."),
    _own("spark.*", Text(), "", "Handed to Spark's configuration as it is."),
)
