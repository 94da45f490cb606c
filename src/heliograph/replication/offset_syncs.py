"""Which offset syncs are written, and when: MirrorMaker 2's rules for its `mm2-offset-syncs` topic, from looks instead of records.

A sync names one record's offsets on both sides. MirrorMaker 2 decides at every record; here a lane is looked at now and then,
and of the records between two looks the last one counts, with their number. Looked at after every record, both decide the same.
Knows no brokers: `control.offset_syncs` reads and writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from heliograph.model.lanes import SEQUENCE_MASK, Lane, LaneId, LedgerEntry
from heliograph.replication.make_topic import MakeTopic, as_mirrormaker_does
from heliograph.replication.openings import is_another


@dataclass(frozen=True)
class SyncSettings:
    """The options of a flow."""

    on_source: bool = True
    """offset-syncs.topic.location"""
    lag_max: int = 100
    flush_ms: int = 60_000
    replication_factor: int = 3


class Why(StrEnum):
    """What calls for a sync."""

    FIRST = "none was written yet in this run"
    BEHIND = "offset.lag.max"
    PASSED_OVER = "source offsets were passed over"
    WENT_BACK = "the remote partition went back"
    FLUSH = "offset.flush.interval.ms"


@dataclass(frozen=True)
class Copied:
    """The last copied record of a lane, and its number within a generation."""

    upstream: int
    downstream: int
    number: int
    generation: int = 0

    def follows(self, before: Copied) -> bool:
        """Whether every source offset since then is a record that was copied."""
        copied = (self.number - before.number) & SEQUENCE_MASK
        return self.generation == before.generation and self.upstream - before.upstream == copied


class Emission:
    """Of one lane: what was seen last, what was written last, and whether a sync is owed."""

    def __init__(self, lag_max: int) -> None:
        self._lag_max = lag_max
        self._seen: Copied | None = None
        self._written: Copied | None = None
        self._owed: Why | None = None

    def look(self, now: Copied, flush: bool = False) -> Why | None:
        """Why a sync of this record is due; None: not yet. It stays due until `wrote` says that one was written."""
        why = self._why(now)
        if why is None and flush and now != self._written:
            why = Why.FLUSH
        self._owed = self._owed or why
        self._seen = now
        return self._owed

    def _why(self, now: Copied) -> Why | None:
        if self._written is None or self._seen is None:
            return Why.FIRST
        # A group behind the last sync is sent one past it, so that one is not counted.
        if now.downstream - (self._written.downstream + 1) >= self._lag_max:
            return Why.BEHIND
        if not now.follows(self._seen):
            return Why.PASSED_OVER
        return Why.WENT_BACK if now.downstream < self._seen.downstream else None

    def wrote(self, sync: Copied) -> None:
        self._written, self._owed = sync, None


def copied_of(entry: LedgerEntry | None, lane: Lane) -> Copied | None:
    """What the ledger shows of a lane; None where nothing was copied yet between these topics."""
    if entry is None or entry.last is None:
        return None
    if is_another(entry.source_topic_id, lane.source_topic_id) or is_another(
        entry.target_topic_id, lane.target_topic_id
    ):
        return None
    return Copied(*entry.last, entry.sequence_next, entry.generation)


def make_syncs_topic(name: str, cluster: str, replication_factor: int) -> MakeTopic:
    return MakeTopic(as_mirrormaker_does(name, replication_factor, "emit.offset-syncs.enabled"), cluster)


@dataclass(frozen=True)
class WriteSync:
    """One sync."""

    lane: LaneId
    copied: Copied
    why: Why
    routine: bool = True

    @property
    def subject(self) -> str:
        return f"{self.lane.topic}-{self.lane.partition}"

    @property
    def what(self) -> str:
        return f"write offset sync {self.copied.upstream} -> {self.copied.downstream} of"


SyncAction = MakeTopic | WriteSync


class Syncs:
    """Of all lanes of a flow, from look to look."""

    def __init__(self, lag_max: int) -> None:
        self._lag_max = lag_max
        self._lanes: dict[LaneId, Emission] = {}

    def due(self, found: Iterable[tuple[LaneId, Copied]], flush: bool) -> list[WriteSync]:
        return [
            WriteSync(lane, copied, why)
            for lane, copied in found
            if (why := self._of(lane).look(copied, flush)) is not None
        ]

    def wrote(self, written: Iterable[WriteSync]) -> None:
        for one in written:
            self._of(one.lane).wrote(one.copied)

    def _of(self, lane: LaneId) -> Emission:
        return self._lanes.setdefault(lane, Emission(self._lag_max))
