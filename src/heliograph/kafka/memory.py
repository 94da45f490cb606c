"""How much may be read at a time, and the buffers that a slot reads into."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from heliograph.kafka.connections import DEFAULT_BUFFERS, Buffers
from heliograph.kafka.outgoing import Chunk

_SMALLEST_READ = 1 << 20


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
    """The buffers of one slot: bounded in sum, reused because fresh pages cost more than the copy."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._out = 0
        self._free: list[bytearray] = []
        self._freed = asyncio.Event()
        self.readers = 1
        self.peak = 0

    def share(self, bytes_wanted: int) -> int:
        """What one read may bring so that all readers together fit into half of it: they may all be answered at once."""
        return max(_SMALLEST_READ, min(bytes_wanted, self._limit // (2 * self.readers)))

    async def room(self, bytes_wanted: int) -> None:
        """Wait until every reader may be answered with this size; one always may when nothing is out."""
        while self._out and self._out + bytes_wanted * self.readers > self._limit:
            self._freed.clear()
            await self._freed.wait()

    def take(self, size: int) -> Chunk:
        for index, buffer in enumerate(self._free):
            if len(buffer) >= size:
                del self._free[index]
                break
        else:
            buffer = bytearray(max(size, 1 << 16))
        self._out += len(buffer)
        self.peak = max(self.peak, self._out)
        self._trim()
        return Chunk(buffer, size, self._give_back)

    def _give_back(self, chunk: Chunk) -> None:
        self._out -= len(chunk.buffer)
        self._free.append(chunk.buffer)
        self._trim()
        self._freed.set()

    def _trim(self) -> None:
        """What is kept for later counts too."""
        while self._free and self._out + sum(map(len, self._free)) > self._limit:
            self._free.pop(0)
