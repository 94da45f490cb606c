"""How much may be read at a time, and the buffers that a slot reads into."""

from __future__ import annotations

import asyncio
import contextlib
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from heliograph.kafka.lane import LaneRun
from heliograph.kafka.outgoing import Chunk, Outgoing
from heliograph.kafka.sockets import DEFAULT_BUFFERS, Buffers

_BUFFER_LEAST = 64 << 10
_SMALLEST_READ = 128 << 10
_LARGE_READ = 1 << 20
_PATIENCE_SECONDS = 0.1
_STUCK_SECONDS = 0.5
_HARDLY_USED = 4
"""A buffer of which no more than this part waits is not worth its size."""


@dataclass(frozen=True)
class ReadLimits:
    """How much one read may bring."""

    max_bytes: int = 8 << 20
    partition_bytes: int = 1 << 20
    max_wait_ms: int = 250
    min_bytes: int = 1
    lane_bytes: int = 8 << 20
    """A lane with more than this on its way to the target is not read further."""
    buffers: Buffers = DEFAULT_BUFFERS


class Memory:
    """The buffers of one slot: bounded in sum, reused because fresh pages cost more than the copy.

    What a reader has asked for counts until it is answered, so that answers that come at once fit together.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit = limit_bytes
        self._out = self._asked = self._kept = 0
        self._free: list[bytearray] = []
        """The smallest first."""
        self._freed = asyncio.Event()
        self.make_room: Callable[[], object] = lambda: None
        """Called when somebody has waited for a while: what is stuck may take up less."""
        self.peak = 0

    @property
    def left(self) -> int:
        return self.limit - self._out - self._asked

    async def room(self, wanted: int) -> int:
        """Wait, and give how many bytes may be asked for now; they count until `answered`.

        As much as is wanted, or a share where other readers ask for much too. Where nothing has come back for a while, less:
        what is stuck must not stop those who still move.
        """
        waited = False
        while True:
            share = min(wanted, max(_LARGE_READ, (self.limit - self._asked) // 4))
            if self.left >= share or not (self._out or self._asked):
                break
            if waited and self.left >= 2 * _SMALLEST_READ:
                share = self.left // 2
                break
            waited = not await self._freed_soon()
            if waited:
                self.make_room()
        self._asked += share
        return share

    def answered(self, share: int) -> None:
        """What `room` gave is asked for no longer."""
        self._asked -= share
        self._freed.set()

    async def _freed_soon(self) -> bool:
        self._freed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._freed.wait()
        return self._freed.is_set()

    def take(self, size: int) -> Chunk:
        """A buffer of at least this size, whatever is left; not much larger for a small one, nor once half of all is out."""
        place = bisect_left(self._free, size, key=len)
        if place < len(self._free) and self._may_have(len(self._free[place]), size):
            buffer = self._free.pop(place)
            self._kept -= len(buffer)
        else:
            buffer = bytearray(_rounded(size))
        self._out += len(buffer)
        self.peak = max(self.peak, self._out)
        self._trim()
        return Chunk(buffer, size, self._give_back, time.monotonic())

    def _may_have(self, length: int, size: int) -> bool:
        fits = length <= 2 * max(size, _BUFFER_LEAST)
        return fits or (size >= _LARGE_READ and self._out + length <= self.limit // 2)

    def _give_back(self, chunk: Chunk) -> None:
        self._out -= len(chunk.buffer)
        self._kept += len(chunk.buffer)
        insort(self._free, chunk.buffer, key=len)
        self._trim()
        self._freed.set()

    def _trim(self) -> None:
        """What is kept for later counts too."""
        while self._free and self._out + self._kept > self.limit:
            self._kept -= len(self._free.pop(0))

    def squeeze(self, runs: Iterable[LaneRun]) -> None:
        """Copy what waits for long out of buffers that are kept for its sake alone, where it is a small part of them."""
        waiting: dict[int, list[Outgoing]] = {}
        for run in runs:
            for item in run.queue:
                if item.chunk is not None:
                    waiting.setdefault(id(item.chunk), []).append(item)
        before = time.monotonic() - _STUCK_SECONDS
        for items in waiting.values():
            chunk = items[0].chunk
            assert chunk is not None  # noqa: S101  seen above
            size = sum(item.size for item in items)
            # With another holder somebody reads from it, or sends of it.
            if chunk.since <= before and chunk.holders == len(items) and size * _HARDLY_USED <= len(chunk.buffer):
                self._move(items, size)

    def _move(self, items: list[Outgoing], size: int) -> None:
        fresh, at = self.take(size), 0
        view = memoryview(fresh.buffer)
        for item in items:
            old, end = item.chunk, at + item.size
            view[at:end] = item.data
            item.data, item.chunk, at = view[at:end], fresh, end
            fresh.hold()
            if old is not None:
                old.release()
        fresh.release()


def _rounded(size: int) -> int:
    """A size that others will do with too: at most an eighth more."""
    step = max(_BUFFER_LEAST, 1 << max(0, size.bit_length() - 4))
    return -(-max(size, 1) // step) * step


class Fairness:
    """Who is read further while memory is short: a target that takes nothing must not hold all of it.

    `waiting` gives, for each writer, the lanes that have something for it.
    """

    def __init__(self, memory: Memory, waiting: Callable[[], list[dict[LaneRun, None]]]) -> None:
        self._memory = memory
        self._waiting = waiting

    def overfull(self) -> set[int]:
        """The ids of those outboxes that hold more than what is left: none while half of the memory is left."""
        left = self._memory.left
        if left * 2 >= self._memory.limit:
            return set()
        boxes = self._waiting()
        if len(boxes) < 2:  # nobody else to be fair to
            return set()
        return {id(box) for box in boxes if sum(map(_unsent, box)) > left}


def _unsent(run: LaneRun) -> int:
    return run.queued_bytes - sum(item.size for item in run.in_flight)
