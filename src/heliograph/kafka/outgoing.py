"""Batches on their way: the buffer they were fetched into, and what is sent of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class Chunk:
    """A fetched buffer; goes back to its pool when the last batch in it was handed to a socket or dropped."""

    __slots__ = ("_give_back", "buffer", "holders", "since", "size")

    def __init__(self, buffer: bytearray, size: int, give_back: Callable[[Chunk], None], since: float = 0.0) -> None:
        self.buffer = buffer
        self.size = size
        self.since = since
        self.holders = 1
        self._give_back = give_back

    def hold(self) -> None:
        self.holders += 1

    def release(self) -> None:
        self.holders -= 1
        if self.holders == 0:
            self._give_back(self)


@dataclass(slots=True)
class Outgoing:
    """A batch ready to be sent: restamped or rebuilt, with the source position that its acknowledgement proves."""

    data: bytes | bytearray | memoryview
    count: int
    sequence: int
    source_first: int
    source_last: int
    """The source offset of its last record; source_next may lie further on."""
    source_next: int
    source_epoch: int
    max_timestamp: int
    size: int
    chunk: Chunk | None = None
    raw: bool = True
    reason: str = ""
    gap_at: int = -1
    """The source offset of its first record that does not follow the one before it; -1: they all do."""
    guarded: bool = True
    """Once it is sent: the target remembers the lane, so that this batch lands once however often it is sent."""
    since_ms: int = 0
    """Its first timestamp; once it is queued: since when it waits to be copied."""
