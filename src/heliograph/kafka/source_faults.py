"""What is wrong with a source's answer for a lane: a refusal, a log that was cut back, bytes without a whole batch. No I/O."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from heliograph.kafka.lane import Failure, LaneRun
from heliograph.wire.error_codes import describe
from heliograph.wire.fetch_codec import FetchedPartition

MOVED = {-1, 2, 3, 5, 6, 9, 56, 74, 75, 78}
"""Another replica may answer, or this one a moment later."""
_FAULTY = {-1, 2, 56}
"""Of these, what does not go away by itself where no other replica takes over."""
_PATIENCE = 3
"""How often in a row an answer may have bytes for a lane and no whole batch."""
_LENGTH = struct.Struct(">qi")
_LARGEST_BATCH = 1 << 30
_UNKNOWN_SIZE = 4 << 20


def source_failure(run: LaneRun, part: FetchedPartition) -> Failure:
    """What a source's refusal means for a lane (P10)."""
    name = f"{run.lane.id.topic}-{run.lane.id.partition}"
    if part.diverging_epoch >= 0:
        message = (
            f"the source ends what was copied of {name} at {part.diverging_end}, the copy is at {run.fetch_offset}"
        )
        return Failure(0, message, "source_cut", part.diverging_end, part.diverging_epoch)
    if part.error_code == 1:
        return Failure(1, f"offset {run.fetch_offset} of {name} is out of the source's range", finding="source_range")
    if part.error_code in (100, 103):
        return Failure(part.error_code, f"{name} was deleted or created again", finding="source_replaced")
    if part.error_code in MOVED:
        code = part.error_code if part.error_code in _FAULTY else None
        return Failure(code, f"reading {name}: {describe(part.error_code)}", finding="source")
    if part.error_code:
        return Failure(part.error_code, f"reading {name}: {describe(part.error_code)}", finding="source_refused")
    # That a log was cut back is seen by asking its leader, so followers are not read.
    message = f"the source sends readers of {name} to broker {part.preferred_replica}, which does not lead it"
    return Failure(0, f"{message}: its replica.selector.class must leave Heliograph to the leader", "source_refused")


class Unreadable:
    """Of one reader: lanes that got bytes and no whole batch.

    Brokers cut an answer by bytes, so this is nothing once or twice. Then the batch is larger than what the broker gives beside
    others, and is asked for alone; or it is damaged, and asking again at once would bring the same for ever.
    """

    def __init__(self) -> None:
        self._seen: dict[LaneRun, tuple[int, int]] = {}
        self._alone: dict[LaneRun, int] = {}

    def __bool__(self) -> bool:
        return bool(self._seen)

    def forget(self, run: LaneRun) -> None:
        """It got further, or is not read any more."""
        self._seen.pop(run, None)
        self._alone.pop(run, None)

    def next_alone(self) -> tuple[LaneRun, int] | None:
        """A lane whose next batch is to be asked for alone, and how large it is."""
        return next(iter(self._alone.items()), None)

    def bytes_alone(self, asked: Mapping[LaneRun, float]) -> int:
        """The size of the batch that is asked for alone; 0: none is."""
        return max((self._alone.get(run, 0) for run in asked), default=0) if self._alone else 0

    def nothing_whole(self, run: LaneRun, part: FetchedPartition, buffer: bytearray) -> None:
        """The lane fails if even the whole answer has no batch for it."""
        offset, times = self._seen.get(run, (-1, 0))
        times = times + 1 if offset == run.fetch_offset else 1
        self._seen[run] = (run.fetch_offset, times)
        if times < _PATIENCE:
            return
        came, size = part.end - part.start, batch_bytes(buffer, part.start, part.end)
        if run not in self._alone and size > came:
            self._alone[run] = size
            return
        self.forget(run)
        name = f"{run.lane.id.topic}-{run.lane.id.partition}"
        what = f"{came} bytes came and no whole batch; its length says {size}"
        run.fail(Failure(2, f"reading {name} at {run.fetch_offset}: {what}", finding="corrupt"))


def batch_bytes(buffer: bytes | bytearray, start: int, end: int) -> int:
    """How large the batch is that begins here, by its own length; 0 where it cannot be one."""
    if end - start < _LENGTH.size:
        return _UNKNOWN_SIZE
    size = int(_LENGTH.unpack_from(buffer, start)[1]) + _LENGTH.size
    return size if _LENGTH.size < size <= _LARGEST_BATCH else 0
