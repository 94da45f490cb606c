"""One lane while a task carries it: what was read, what is on its way, what is acknowledged.

Does no I/O: fetch.py hands in what was read, produce.py takes what may be sent and hands in the answers. The rules are P3 and
P4 of the protocol: window 1 until the first acknowledgement, never more than five, positions from acknowledgements in order
only, and after the first error nothing is judged until every answer due has come.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from heliograph.kafka.outgoing import Outgoing
from heliograph.kafka.target_memory import TargetMemory
from heliograph.metrics.lane_times import LaneTimes
from heliograph.metrics.meters import FlowMeter
from heliograph.model.lanes import Lane, LaneCounts, LaneState, LedgerEntry, next_sequence
from heliograph.replication.alignment import differs_at
from heliograph.replication.anchors import keep_anchor
from heliograph.wire.produce_codec import ProducedPartition


@dataclass(frozen=True)
class Failure:
    """Why a lane stopped sending: a broker's code (None: the connection ended), or a finding of ours."""

    code: int | None
    message: str
    finding: str = ""
    """"": a broker's answer; else one of: source, source_range, source_cut, source_replaced, source_refused,
    below_expected, foreign_writer, record, corrupt, revoked, unguarded, unwritten."""
    offset: int = -1
    """record: the record that cannot be copied; source_cut: where the source ends what was copied."""
    epoch: int = -1
    """source_cut: the leader epoch that the source ends there."""


_AFTER_THE_QUEUE = {"source", "source_range", "source_refused", "corrupt"}
"""Findings about what comes next on the source: what was read before is whole, and is sent first."""
_ANSWERS_COUNT = {*_AFTER_THE_QUEUE, "source_cut", "source_replaced", "unguarded", "revoked", "unwritten"}
"""Findings that say nothing about batches on their way: their answers still count."""


@dataclass
class Start:
    """What attach found out: everything a lane needs to go on."""

    entry: LedgerEntry
    source_next: int
    source_epoch: int
    sequence: int
    target_next: int | None
    source_node: int
    source_leader_epoch: int
    target_node: int
    guarded: bool
    went_back: int = 0
    """Records that the target lost since the entry was written; they are copied again."""
    last_timestamp: int = -1
    """Of the last batch that the target remembers; -1: it remembers none."""


@dataclass(frozen=True)
class Refusal:
    """The last batch that the target refused."""

    first: int = -1
    next: int = -1
    size: int = 0
    count: int = 0


class LaneRun:
    """Fields are public to the slot's own parts; nobody outside a task sees this object."""

    told: tuple[set[LaneRun], ...] = ()
    """Who wants to know that there may be news of this lane."""
    outbox: dict[LaneRun, None] | None = None
    """The writer's: lanes with something queued."""

    def __init__(self, lane: Lane, window: int, expiration_ms: int, until: int | None) -> None:
        self.lane = lane
        self.until = until
        self._window = window
        self.memory = TargetMemory(expiration_ms, lane.target_append_time)
        self.counts = LaneCounts()
        self.meter, self.times = FlowMeter(), LaneTimes()  # a slot's lanes share the meter of their flow
        self.state = LaneState.WAITING
        self.reason, self.since_ms = "", 0
        self.queue: deque[Outgoing] = deque()
        self.in_flight: deque[Outgoing] = deque()
        self.queued_bytes = 0
        self.start: Start | None = None
        self.fetch_offset, self.fetch_epoch, self.sequence = 0, -1, 0
        self.target_next: int | None = None
        self.acked: LedgerEntry | None = None
        self.failure: Failure | None = None
        self.pending_failure: Failure | None = None
        self.stopped_at = self.foreign_at = -1
        self.draining = False
        self.stopped = asyncio.Event()
        self.idle = asyncio.Event()
        self.idle.set()
        self.source_end = self.high_watermark = -1
        self.log_start = 0
        self.record_path_once: set[int] = set()
        """Source offsets of batches that the target refused as they were."""
        self.refused = Refusal()
        self.piece_count = self.piece_until = 0
        """Batches that begin before `piece_until` are cut into pieces of so many records: one of them is refused."""
        self.tolerates_others = True
        """Whether the lane goes on when somebody else writes into the remote partition."""
        self.max_bytes = lane.max_batch_bytes
        """What the target takes: its config, or less where it has refused a batch as too large since."""
        self.is_alone: Callable[[], bool] = lambda: True
        """Whether no other attempt can write: needed wherever the target does not refuse a second one (P5, P6)."""
        self._unanswered: list[bool] = []
        """Of each batch whose answer never came: whether the target remembered the lane when it was sent."""
        self._confirmed, self._judging = False, True
        self._parked, self._anchored_ms = ("", 0), 0
        self._anchors: list[tuple[int, int]] = []

    # -- life -------------------------------------------------------------------------------------------------------

    def stir(self) -> None:
        """Something may have changed that reports or the ledger tell."""
        for one in self.told:
            one.add(self)

    def begin(self, start: Start, now_ms: int) -> None:
        """Attach succeeded: follow from here."""
        self.stir()
        self.start = start
        self.queue.clear()
        self.queued_bytes = 0
        self.fetch_offset = start.source_next
        self.fetch_epoch = start.source_epoch
        self.sequence = start.sequence
        self.target_next = start.target_next
        self.acked = start.entry
        self._unanswered.clear()
        self._anchors = list(start.entry.anchors)
        self._anchored_ms = 0
        self.failure = self.pending_failure = None
        self.stopped.clear()
        # Where others write behind our records the next offset is not known, but how far we came may well be.
        self._confirmed = (start.entry.source_next, start.entry.sequence_next) == (start.source_next, start.sequence)
        self._judging = True
        self.memory.begin(start.last_timestamp if start.guarded else -1)
        self.counts.attaches += 1
        self.times.began(now_ms)
        self.become(LaneState.FOLLOWING, "", now_ms)

    def become(self, state: LaneState, reason: str, now_ms: int) -> None:
        self.stir()
        if (state, reason) != (self.state, self.reason):
            self.since_ms = now_ms
        if state is LaneState.PARKED:
            # It tried again and met the same: parked since the first time, as long as no record got through between.
            if self._parked[0] != reason:
                self._parked = (reason, now_ms)
            self.since_ms = self._parked[1]
        self.state = state
        self.reason = reason

    def fail(self, failure: Failure) -> None:
        """Stop sending; the first failure counts, what is queued is fetched again after the next attach.

        What the source refuses stops the lane after what was read before.
        """
        if self.failure is None and failure.finding in _AFTER_THE_QUEUE and (self.queue or self.in_flight):
            self.stop_at(failure)
            return
        self.stir()
        self._judging = self._judging and failure.finding in _ANSWERS_COUNT
        if self.failure is None:
            if failure.finding == "source_range":
                self.stopped_at = self.position()  # where the loss begins, markers that were passed left out
            self.failure = failure
            self.times.stuck_at(self._head_ms())
        for item in self.queue:
            if item.chunk is not None:
                item.chunk.release()
        self.queue.clear()
        self.queued_bytes = 0
        self.stopped.set()
        self._note_idle()

    def stop_at(self, failure: Failure) -> None:
        """What is queued may still go; then the lane stops for this reason, the first one there is."""
        self.stir()
        if self.queue or self.in_flight:
            self.pending_failure = self.pending_failure or failure
        else:
            self.fail(failure)

    def drain(self) -> None:
        """Read no more; send what is queued, take the answers, then be idle."""
        self.stir()
        self.draining = True
        self.stopped.set()
        self._note_idle()

    def _note_idle(self) -> None:
        if self.in_flight or self.queue:
            self.idle.clear()
        else:
            self.idle.set()

    def is_clean(self) -> bool:
        """Every batch sent was answered."""
        return not self.in_flight and not self._unanswered

    @property
    def lost_unguarded(self) -> bool:
        """A batch whose answer never came may land later, and nothing but time keeps it from landing twice (5f)."""
        return not all(self._unanswered)

    @property
    def may_land_twice(self) -> bool:
        """Something is on its way that the target does not guard, and other attempts may be there by now."""
        return any(not item.guarded for item in self.in_flight) and not self.is_alone()

    # -- reading ----------------------------------------------------------------------------------------------------

    def wants_data(self, limit_bytes: int) -> bool:
        if self.failure is not None or self.pending_failure is not None or self.draining:
            return False
        if self.queued_bytes >= limit_bytes:
            return False
        return self.until is None or self.fetch_offset < self.until

    def is_finished(self) -> bool:
        """All records below `until` are on the target: acknowledged, or found there when the lane attached.

        The second counts also where others wrote meanwhile, so that nobody can say at which offset our records lie.
        """
        if self.until is None or self.start is None:
            return False
        at_rest = self.failure is None and not self.queue and not self.in_flight
        return self.position() >= self.until or (at_rest and self.fetch_offset >= self.until)

    def push(self, item: Outgoing) -> None:
        item.since_ms = max(item.since_ms, self.times.at_end_ms)  # it was not there then, whatever its timestamp says
        self.queue.append(item)
        self.queued_bytes += item.size
        self.sequence = next_sequence(self.sequence, item.count)
        if item.chunk is not None:
            item.chunk.hold()
        self.idle.clear()
        if self.outbox is not None:
            self.outbox[self] = None

    # -- sending ----------------------------------------------------------------------------------------------------

    def can_send(self, now_ms: int) -> bool:
        if not self.queue or self.failure is not None:
            return False
        guarded = self.memory.outlives(self.queue[0], now_ms)
        if not guarded and not self.is_alone():
            self.fail(Failure(None, "the target may forget this lane with the next records", finding="unguarded"))
            return False
        if not self.in_flight:
            return True
        return guarded and len(self.in_flight) < self._window and self.memory.may_pipeline(now_ms)

    def take(self, now_ms: int) -> Outgoing:
        item = self.queue.popleft()
        self.memory.sent(item, now_ms, is_first=not self.in_flight)
        self.in_flight.append(item)
        return item

    # -- answers ----------------------------------------------------------------------------------------------------

    def answered(self, answer: ProducedPartition, message: str, now_ms: int) -> None:
        item = self.in_flight.popleft()
        self.stir()
        self.queued_bytes -= item.size if self.failure is None else 0
        if item.chunk is not None:
            item.chunk.release()
        if not self._judging or answer.error_code:
            self.meter.retried += item.count
        if self._judging:
            if answer.error_code:
                self.counts.refused += 1
                self.times.stuck_at(item.since_ms)
                self.refused = Refusal(item.source_first, item.source_next, item.size, item.count)
                self.fail(Failure(answer.error_code, message))
            else:
                self._acknowledge(item, answer.base_offset, now_ms)
        if self.pending_failure is not None and not self.queue and not self.in_flight:
            self.fail(self.pending_failure)
        self._note_idle()

    def connection_ended(self, message: str) -> None:
        """No answer will come for what is in flight."""
        self._unanswered += [item.guarded for item in self.in_flight]
        self.times.stuck_at(self._head_ms())
        for item in self.in_flight:
            self.meter.retried += item.count
            if item.chunk is not None:
                item.chunk.release()
        self.in_flight.clear()
        self.fail(Failure(None, message))

    def _acknowledge(self, item: Outgoing, base: int, now_ms: int) -> None:
        if self.target_next is not None and base < self.target_next:
            self.fail(
                Failure(
                    0,
                    f"the target put the record of {self.lane.remote_topic}-{self.lane.id.partition} expected at "
                    f"{self.target_next} at {base}: it was truncated, recreated or lost its memory of this lane; "
                    f"{item.count} stray records or more lie from {base} on",
                    finding="below_expected",
                )
            )
            return
        assert self.acked is not None  # noqa: S101  begin() precedes every send
        if self.target_next is not None and base > self.target_next:
            self.counts.foreign += base - self.target_next
            self.foreign_at = self.target_next
            if not self.tolerates_others:
                # Not acknowledged: the entry stays before the other's records, so that every later attach meets them too.
                self.fail(Failure(0, "somebody else writes into the remote partition", finding="foreign_writer"))
                return
        self.target_next = base + item.count
        self._anchor(item.source_first, base, now_ms)
        # A batch merged over a gap ends with another delta than it began with.
        self._anchor(item.source_next, self.target_next, now_ms)
        self.acked = replace(
            self.acked,
            source_next=item.source_next,
            source_epoch=item.source_epoch,
            target_next=base + item.count,
            sequence_next=next_sequence(item.sequence, item.count),
            anchors=tuple(self._anchors),
            last=(item.source_last, self.target_next - 1),
            differs_at=differs_at(self.acked.differs_at, (item.source_first, base), item.gap_at),
        )
        self.memory.acknowledged(item, now_ms)
        self._confirmed = True
        self._parked = ("", 0)
        self._count(item, now_ms)

    def _anchor(self, source: int, target: int, now_ms: int) -> None:
        self._anchored_ms = keep_anchor(self._anchors, (source, target), now_ms, self._anchored_ms)

    def _count(self, item: Outgoing, now_ms: int) -> None:
        counts = self.counts
        counts.records += item.count
        counts.bytes += item.size
        counts.raw_batches += item.raw
        counts.rebuilt_batches += not item.raw
        self.times.stuck_ms = 0
        self.meter.note(self.times, (item.max_timestamp, now_ms, item.count, item.size))

    def drop(self, reason: str) -> None:
        self.counts.dropped[reason] = self.counts.dropped.get(reason, 0) + 1

    # -- positions --------------------------------------------------------------------------------------------------

    def position(self) -> int:
        """The source offset before which everything is on the target."""
        if self.acked is None:
            return -1
        if self._confirmed and self.failure is None and not self.queue and not self.in_flight:
            return max(self.acked.source_next, self.fetch_offset)
        return self.acked.source_next

    def waiting_since(self) -> int:
        """Since when the oldest record waits that is not copied yet; 0: none does."""
        return self.times.waiting_since(self._head_ms(), self.position() < self.source_end)

    def _head_ms(self) -> int | None:
        item = self.in_flight[0] if self.in_flight else self.queue[0] if self.queue else None
        return None if item is None else item.since_ms

    def entry(self, now_ms: int) -> LedgerEntry | None:
        """The position as the ledger keeps it. What was read and dropped after the last acknowledgement counts as passed."""
        if self.acked is None:
            return None
        position = self.position()
        epoch = self.fetch_epoch if position > self.acked.source_next else self.acked.source_epoch
        return replace(self.acked, source_next=position, source_epoch=epoch, time_ms=now_ms)
