"""From fetched bytes to batches on their way: which batch is forwarded, which is rebuilt, which is dropped, and why.

The raw path restamps a batch where it lies in the fetched buffer. The record path (wire/rebuild.py) opens it: gaps, a position
inside a batch, source LogAppendTime, batches over the target's limit, and runs of small batches, which are merged because a
Produce request takes only one batch per partition.
"""

from __future__ import annotations

from collections.abc import Iterable

from heliograph.errors import HeliographError
from heliograph.kafka.lane import Failure, LaneRun
from heliograph.kafka.outgoing import Chunk, Outgoing
from heliograph.kafka.ranges import Judge
from heliograph.model.lanes import Identity
from heliograph.wire.aborted import CAME_HOME, CommittedView
from heliograph.wire.compression import TooMuchData
from heliograph.wire.fetch_codec import FetchedPartition
from heliograph.wire.rebuild import CorruptBatch, Rebuilder, Rebuilt, RecordTooLarge
from heliograph.wire.record_batch import BatchHeader, restamp, walk

SMALL = "small"


class Cutter:
    """Cuts for all lanes of one isolation level and codec (None: each batch keeps its own); keeps no state between calls."""

    def __init__(
        self,
        read_committed: bool,
        merge_below: int = 4096,
        merge_target: int = 1 << 20,
        codec: int | None = None,
        home: Judge | None = None,
    ) -> None:
        self.read_committed = read_committed
        self._home = home
        self._merge_below = merge_below
        self._merge_target = merge_target
        self._codec = codec

    async def learn(self, parts: Iterable[FetchedPartition], chunk: Chunk) -> None:
        """Find out whose the batches are before any is cut; ConnectionLost while that cannot be known."""
        if self._home is not None:
            buffer = chunk.buffer
            headers = (header for part in parts for _, header in walk(buffer, part.start, part.end))
            await self._home.learn({header.producer_id for header in headers})

    def cut(self, run: LaneRun, part: FetchedPartition, chunk: Chunk) -> None:
        """Queue everything that `part` brings for this lane and move its reading position past it."""
        buffer = chunk.buffer
        view = memoryview(buffer)
        visible = CommittedView(part.aborted, self.read_committed)
        pending = _Pending(run.fetch_offset)
        for at, header in walk(buffer, part.start, part.end):
            dropped = visible.dropped_because(buffer, at, header)
            if dropped is None and self._home is not None and self._home.is_theirs(header.producer_id):
                dropped = CAME_HOME
            if header.next_offset <= run.fetch_offset:
                continue
            if run.until is not None and header.base_offset >= run.until:
                run.fetch_offset = max(run.fetch_offset, run.until)
                break
            if dropped is None:
                why = self._why_rebuilt(run, header)
                if why:
                    pending.add(view[at : at + header.size], header, why, run.fetch_offset)
                else:
                    self._flush(run, pending, chunk)
                    if (
                        run.failure is None and run.pending_failure is None
                    ):  # the flush may have met what cannot be copied
                        self._forward(run, view, at, header, chunk)
            else:
                run.drop(dropped)
            if run.failure is not None or run.pending_failure is not None:
                return
            run.fetch_offset = header.next_offset
            run.fetch_epoch = header.leader_epoch
        self._flush(run, pending, chunk)

    def _why_rebuilt(self, run: LaneRun, header: BatchHeader) -> str:
        if header.magic != 2:
            return "old format"
        if not header.is_dense:
            return "gap"
        if header.base_offset < run.fetch_offset:
            return "begins earlier"
        if header.size > run.max_bytes:
            return "too large"
        if header.is_append_time and not run.lane.target_append_time:
            return "append time"
        if header.base_offset in run.record_path_once or header.base_offset < run.piece_until:
            return "refused raw"
        if self._codec not in (None, header.codec):
            return "recompressed"
        return SMALL if header.size < self._merge_below else ""

    def _forward(self, run: LaneRun, view: memoryview, at: int, header: BatchHeader, chunk: Chunk) -> None:
        assert run.start is not None  # noqa: S101  a lane is read after begin()
        identity = run.start.entry.identity
        restamp(view, at, header, identity.producer_id, identity.producer_epoch, run.sequence)
        run.push(
            Outgoing(
                data=view[at : at + header.size],
                count=header.count,
                sequence=run.sequence,
                source_first=header.base_offset,
                source_last=header.next_offset - 1,  # it is dense
                source_next=header.next_offset,
                source_epoch=header.leader_epoch,
                max_timestamp=header.max_timestamp,
                size=header.size,
                chunk=chunk,
                since_ms=header.base_timestamp,
            )
        )

    def _flush(self, run: LaneRun, pending: _Pending, chunk: Chunk) -> None:
        if not pending.batches:
            return
        if len(pending.batches) == 1 and pending.reasons == [SMALL]:
            data, header = pending.batches[0]
            pending.clear()
            self._forward(run, data, 0, header, chunk)
            return
        assert run.start is not None  # noqa: S101  a lane is read after begin()
        identity = run.start.entry.identity
        try:
            rebuilt = self._rebuild(run, pending, identity)
        except CorruptBatch as error:
            run.fail(Failure(2, str(error), finding="corrupt"))
            return
        except RecordTooLarge as error:
            self._stop_before(run, pending, error, chunk)
            return
        except TooMuchData as error:
            if set(pending.reasons) != {SMALL}:
                run.fail(Failure(87, str(error), finding="record"))
                return
            for data, header in pending.batches:  # merging only saves requests
                self._forward(run, data, 0, header, chunk)
            pending.clear()
            return
        except HeliographError as error:
            run.fail(Failure(87, str(error), finding="record"))
            return
        self._push(run, rebuilt, pending.reasons, chunk)
        pending.clear()

    def _stop_before(self, run: LaneRun, pending: _Pending, error: RecordTooLarge, chunk: Chunk) -> None:
        """What lies before a record that the target cannot take is copied; the lane parks there and nowhere earlier."""
        assert run.start is not None  # noqa: S101  a lane is read after begin()
        good: list[tuple[memoryview, BatchHeader]] = []
        for data, header in pending.batches:
            good.append((data, header))
            if header.next_offset > error.offset:
                break
        reasons = pending.reasons[: len(good)]
        pending.batches = good
        self._push(run, self._rebuild(run, pending, run.start.entry.identity, error.offset), reasons, chunk)
        run.fetch_offset = error.offset
        pending.clear()
        cause = f"it has {error.size} bytes, {run.lane.remote_topic} takes {run.lane.max_batch_bytes}"
        run.stop_at(Failure(10, cause, finding="record", offset=error.offset))

    def _push(self, run: LaneRun, rebuilt: list[Rebuilt], reasons: list[str], chunk: Chunk) -> None:
        for reason in reasons:
            run.counts.rebuilt[reason] = run.counts.rebuilt.get(reason, 0) + 1
        for piece in rebuilt:
            run.push(
                Outgoing(
                    data=piece.data,
                    count=piece.count,
                    sequence=run.sequence,
                    source_first=piece.first_offset,
                    source_last=piece.last_offset,
                    source_next=piece.source_next,
                    source_epoch=piece.source_epoch,
                    max_timestamp=piece.max_timestamp,
                    size=len(piece.data),
                    chunk=chunk,
                    raw=False,
                    gap_at=piece.gap_at,
                    since_ms=piece.first_timestamp,
                )
            )

    def _rebuild(self, run: LaneRun, pending: _Pending, identity: Identity, until: int | None = None) -> list[Rebuilt]:
        pieces = run.piece_count if pending.batches[0][1].base_offset < run.piece_until else 0
        while True:
            rebuilder = Rebuilder(
                identity.producer_id,
                identity.producer_epoch,
                run.max_bytes,
                self._merge_target,
                codec=self._codec,
                max_count=pieces,
            )
            try:
                return rebuilder.rebuild(pending.batches, pending.from_offset, run.sequence, until)
            except RecordTooLarge as error:
                if run.max_bytes >= run.lane.max_batch_bytes or error.size > run.lane.max_batch_bytes:
                    raise
                # Our guess after a refusal was too small for this record: let the target judge.
                run.max_bytes = error.size


class _Pending:
    """Neighbouring batches that take the record path together."""

    def __init__(self, from_offset: int) -> None:
        self.from_offset = from_offset
        self.batches: list[tuple[memoryview, BatchHeader]] = []
        self.reasons: list[str] = []

    def add(self, data: memoryview, header: BatchHeader, reason: str, from_offset: int) -> None:
        if not self.batches:
            self.from_offset = from_offset
        self.batches.append((data, header))
        self.reasons.append(reason)

    def clear(self) -> None:
        self.batches = []
        self.reasons = []
