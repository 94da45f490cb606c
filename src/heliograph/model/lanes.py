"""Lanes: one source partition and one remote partition, their numbering and their position.

Knows nothing of brokers, files or clocks. The protocol that these values serve is in docs/architecture.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

SEQUENCE_MASK = 0x7FFFFFFF


class LaneId(NamedTuple):
    """The name of a lane: flow, source topic, source partition. `key` is its name in the ledger.

    A tuple, because thousands are looked up and sorted every second: a dataclass hashes and compares in Python.
    """

    flow: str
    topic: str
    partition: int

    @property
    def key(self) -> str:
        return f"{self.flow}/{self.topic}/{self.partition}"


@dataclass(frozen=True)
class Lane:
    """What stays the same while a lane lives: both ends by name and by topic id (uuid as text)."""

    id: LaneId
    source: str
    target: str
    remote_topic: str
    source_topic_id: str
    target_topic_id: str
    compacted: bool = False
    """The source's cleanup.policy holds `compact`: counting is not deterministic (P8)."""
    target_append_time: bool = False
    """The remote topic is LogAppendTime: the broker's memory of a producer is always fresh."""
    max_batch_bytes: int = 1_048_588
    """The remote topic's max.message.bytes."""
    timestamp_after_max_ms: int = 9_223_372_036_854_775_807
    timestamp_before_max_ms: int = 9_223_372_036_854_775_807
    target_compacted: bool = False

    def __hash__(self) -> int:
        """Of the name alone: thousands are looked up at a time."""
        return hash(self.id)


@dataclass(frozen=True)
class Identity:
    """A producer id and epoch. Never chosen by arithmetic: the coordinator gives them out."""

    producer_id: int
    producer_epoch: int

    def shuts_out(self, other: Identity) -> bool:
        """A broker that has a record of this identity refuses the other."""
        return self.producer_id == other.producer_id and self.producer_epoch > other.producer_epoch


@dataclass(frozen=True)
class Rule:
    """What "record n" means. Any change of it opens a new generation (P7)."""

    isolation: str = "read_committed"
    version: int = 1
    without: str = ""
    """The flow whose batches are no records of this lane: they came home. Empty: none."""


class Scanned(NamedTuple):
    """How far an attach has read the remote partition behind the entry's `target_next`, where others write too."""

    to: int
    epoch: int
    """Leader epoch of the last batch before `to`: a target that was cut back since no longer has it there."""
    ours_at: int = -1
    """Where the last batch of this generation begins in what was read; -1: there is none."""


@dataclass(frozen=True)
class LedgerEntry:
    """A lane's durable position in one generation, or a claim to open that generation."""

    lane: LaneId
    generation: int
    identity: Identity
    rule: Rule
    target_cluster_id: str
    source_topic_id: str
    target_topic_id: str
    source_start: int
    """Where the generation began on the source."""
    target_start: int
    """Where its first record was expected on the target."""
    source_next: int
    source_epoch: int
    """Leader epoch of the last copied batch, -1 before the first."""
    target_next: int
    sequence_next: int
    time_ms: int = 0
    attempt: str = ""
    """Who wrote it. On compacted sources a generation belongs to one attempt."""
    anchors: tuple[tuple[int, int], ...] = ()
    """The latest (source offset, target offset) pairs from which the delta holds, newest last."""
    last: tuple[int, int] | None = None
    """The last copied record: its offsets on source and target. None: not known."""
    filling: bool = False
    """offsets.align: the remote partition may not be filled and cut off up to `filler_to` yet."""
    filler_to: int = 0
    """offsets.align: what lies before this target offset is filler."""
    differs_at: int = -1
    """The first source offset whose copy has another offset on the target; -1: none yet."""
    follows: int = -1
    """The source position of the generation before this one when this one was claimed; -1: there was none."""
    uncounted: bool = False
    """Opened by an attempt for itself, on a compacted source (P8): nothing is ever counted from its sequences."""
    mm2_offset: int = -1
    """MirrorMaker 2's stored progress as last seen or written by us; another one means that it ran since. -1: none."""
    scanned: Scanned | None = None
    """What need not be read again to find our last record; `target_next` stays where our records end."""

    @property
    def has_written(self) -> bool:
        """A record of this generation was acknowledged."""
        return self.sequence_next != 0

    @property
    def went_back(self) -> bool:
        """It was opened to copy again what the generation before it had copied."""
        return self.source_start < self.follows


class LaneState(StrEnum):
    WAITING = "waiting"
    ATTACHING = "attaching"
    FOLLOWING = "following"
    DRAINING = "draining"
    PARKED = "parked"
    DONE = "done"


class Guard(StrEnum):
    """What keeps a second attempt from repeating records."""

    BROKER = "broker"
    EXCLUSIVE = "exclusive"
    FENCED = "fenced"


@dataclass(frozen=True)
class Assignment:
    """The lanes that one task carries for one epoch."""

    epoch: int
    slot: int
    lanes: tuple[Lane, ...]
    entries: tuple[LedgerEntry, ...] = ()


@dataclass
class LaneCounts:
    """What happened on a lane since its task began; plain numbers, summed by the driver."""

    records: int = 0
    bytes: int = 0
    raw_batches: int = 0
    rebuilt_batches: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    """Batches that were not copied, by reason: control, aborted, empty."""
    rebuilt: dict[str, int] = field(default_factory=dict)
    """Batches that took the record path, by reason."""
    refused: int = 0
    attaches: int = 0
    foreign: int = 0
    """Offsets of the remote partition that somebody else took."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Records that the target does not take, by what became of them: skip, dead-letter."""


def next_sequence(first: int, count: int) -> int:
    """The sequence after `count` records from `first`; Kafka wraps at 2^31."""
    return (first + count) & SEQUENCE_MASK
