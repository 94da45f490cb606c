"""Which batches of a fetched partition a reader may see.

A batch belongs to one producer and one transaction, so read_committed is decided batch by batch, from headers alone;
only the one record of a control batch is opened, to tell an abort from a commit. The broker lists every aborted
transaction that overlaps the answer, so a view is made anew for each partition of each response.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from heliograph.wire.record_batch import HEADER_BYTES, BatchHeader, Buffer
from heliograph.wire.varint import read_zigzag

CONTROL = "control"
ABORTED = "aborted"
EMPTY = "empty"
CAME_HOME = "came home"
"""The flow in the other direction wrote it: kafka/homecoming.py."""

_MARKER_KEY = Struct(">hh")  # version, type
_ABORT_MARKER = 0


class CommittedView:
    """Must be shown every batch of the partition in order, also those below the wanted offset: they may be markers."""

    def __init__(self, aborted: Sequence[tuple[int, int]], read_committed: bool = True) -> None:
        by_first_offset = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
        self._not_begun = by_first_offset if read_committed else []
        self._aborted_producers: set[int] = set()

    def dropped_because(self, buf: Buffer, at: int, header: BatchHeader) -> str | None:
        """Why the batch at `at` must not be copied; None: copy it."""
        producer_id = header.producer_id
        while self._not_begun and self._not_begun[-1][1] < header.next_offset:
            self._aborted_producers.add(self._not_begun.pop()[0])
        if header.is_control:
            if _is_abort(buf, at, header):
                self._aborted_producers.discard(producer_id)
            return CONTROL
        if header.is_transactional and producer_id in self._aborted_producers:
            return ABORTED
        return EMPTY if header.count == 0 else None


def _is_abort(buf: Buffer, at: int, header: BatchHeader) -> bool:
    """A control batch without its record was cleaned, together with the data of its transaction: it ends nothing."""
    if header.count == 0:
        return False
    _, field = read_zigzag(buf, at + HEADER_BYTES)  # length
    _, field = read_zigzag(buf, field + 1)  # timestamp delta, after the attributes
    _, field = read_zigzag(buf, field)  # offset delta
    key_bytes, field = read_zigzag(buf, field)
    if key_bytes < _MARKER_KEY.size:
        return False
    return bool(_MARKER_KEY.unpack_from(buf, field)[1] == _ABORT_MARKER)
