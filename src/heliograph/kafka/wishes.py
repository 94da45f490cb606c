"""What a reader asks its broker for: which lanes want data, from where, and what of that the broker has not been told.

Of thousands of lanes at rest none is looked at: a lane that changes stirs, and the broker remembers the others (KIP-227). Does
no I/O.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from heliograph.kafka.lane import LaneRun
from heliograph.wire.fetch_codec import FetchPartition
from heliograph.wire.fetch_session import FetchSession, SessionStep, TopicPart


class Wishes:
    """Of one reader. A lane with `lane_bytes` queued wants no more; `partition_bytes` is the most that it is given at once."""

    def __init__(self, lane_bytes: int, partition_bytes: int) -> None:
        self.session = FetchSession()
        self._lane_bytes = lane_bytes
        self._partition_bytes = partition_bytes
        self._keys: dict[LaneRun, TopicPart] = {}
        self._wanting: dict[LaneRun, int] = {}
        self._parts: dict[LaneRun, FetchPartition] = {}
        """What was last asked for of each lane."""
        self._stirred: set[LaneRun] = set()
        """Lanes that may want something else than at the last look."""
        self._unsaid: set[LaneRun] = set()
        """Lanes that were looked at since the last request."""
        self._gone: set[TopicPart] = set()
        """What nobody reads any more, likewise."""
        self._is_in_step = False
        """The broker remembers what is wanted, but for what is unsaid and gone."""

    def add(self, run: LaneRun) -> None:
        lane = run.lane
        key = ((lane.id.topic, uuid.UUID(lane.source_topic_id).bytes), lane.id.partition)
        if key in self.session:
            self.session.lost()  # the broker said already how far this partition goes, and would not say it again
        self._keys[run] = key
        self._parts.pop(run, None)
        self._gone.discard(key)
        run.told = (*(one for one in run.told if one is not self._stirred), self._stirred)
        self._stirred.add(run)

    def remove(self, run: LaneRun) -> None:
        run.told = tuple(one for one in run.told if one is not self._stirred)
        self._gone.add(self._keys.pop(run))
        self._wanting.pop(run, None)
        self._parts.pop(run, None)
        self._stirred.discard(run)
        self._unsaid.discard(run)

    def look(self) -> Mapping[LaneRun, int]:
        """The lanes that want data now, and from which offset."""
        for run in self._stirred:
            if run.wants_data(self._lane_bytes):
                self._wanting[run] = run.fetch_offset
            else:
                self._wanting.pop(run, None)
        self._unsaid |= self._stirred
        self._stirred.clear()
        return self._wanting

    def step(self, allowed: Mapping[LaneRun, float] | None = None, batch_bytes: int = 0) -> SessionStep:
        """The next request, for the lanes of the last look; with limits only those and so many bytes of each.

        `batch_bytes`: of a batch that is larger than what a lane is given at once.
        """
        if allowed is None and self._is_in_step and not self.session.is_new:
            step = self.session.change(*self._news())
        else:
            most = dict.fromkeys(self._wanting, float(self._partition_bytes)) if allowed is None else allowed
            self._rotate(next(iter(most)))
            cap = float(max(self._partition_bytes, batch_bytes))
            parts = {self._keys[run]: self._part(run, min(size, cap)) for run, size in most.items()}
            step = self.session.step(parts)
            self._is_in_step = allowed is None
        self._unsaid.clear()
        self._gone.clear()
        return step

    def _news(self) -> tuple[dict[TopicPart, FetchPartition], set[TopicPart]]:
        wanted = {
            self._keys[run]: self._part(run, self._partition_bytes) for run in self._unsaid if run in self._wanting
        }
        return wanted, self._gone | {self._keys[run] for run in self._unsaid if run not in self._wanting}

    def _rotate(self, first: LaneRun) -> None:
        """The first partition of a request alone may exceed its limit (KIP-74): without this a large batch starves others."""
        self._wanting[first] = self._wanting.pop(first)

    def _part(self, run: LaneRun, most: float) -> FetchPartition:
        part = self._parts.get(run)
        wanted = (self._wanting[run], run.fetch_epoch, max(1, int(most)))
        if part is None or (part.offset, part.last_fetched_epoch, part.max_bytes) != wanted:
            assert run.start is not None  # noqa: S101  a lane is added after begin()
            part = FetchPartition(run.lane.id.partition, run.start.source_leader_epoch, *wanted)
            self._parts[run] = part
        return part
