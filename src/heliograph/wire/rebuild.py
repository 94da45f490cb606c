"""The record path: open batches, merge neighbours, split what is too large.

Every batch is verified against its own CRC before it is opened, so damage is found and not given a fresh checksum. What
comes out is what a producer would have written: magic 2, CreateTime, base offset 0, dense, with the lane's identity and
running sequence, in the codec of its source unless another is asked for.

Must not know why a batch took this path, nor when a lane merges.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from struct import Struct

from fastcrc import crc32

from heliograph.errors import HeliographError
from heliograph.wire.compression import compress
from heliograph.wire.record_batch import CODEC_BITS, HEADER_BYTES, walk
from heliograph.wire.records import Batch, CorruptBatch, Headers, OpenedRecords, Record, read_records

__all__ = ["CorruptBatch", "Rebuilder", "Rebuilt", "RecordTooLarge", "last_record", "record_at"]

_OUTSIDE_CRC = Struct(">qiibI")
_INSIDE_CRC = Struct(">hiqqqhii")
_MAGIC = 2
_SEQUENCE_MASK = 0x7FFFFFFF
_ROOM_FOR_GUESS = 16  # pieces are cut 1/16 smaller than the limit, because records do not compress evenly

_iscsi = crc32.iscsi


class RecordTooLarge(HeliographError):
    """A single record is larger than the target allows: no split can help."""

    def __init__(self, offset: int, size: int, limit: int) -> None:
        super().__init__(
            f"The record at source offset {offset} needs a batch of {size} bytes; "
            f"the remote topic's max.message.bytes allows {limit}."
        )
        self.offset = offset
        self.size = size
        self.limit = limit


@dataclass(frozen=True)
class Rebuilt:
    """One batch ready to be produced, and the stretch of the source that it stands for."""

    data: bytes | bytearray
    count: int
    source_next: int
    source_epoch: int
    first_timestamp: int
    max_timestamp: int
    first_offset: int
    last_offset: int
    """Of its last record; offsets without a record may lie between it and source_next."""
    gap_at: int = -1
    """The offset of the first record that does not follow the one before it; -1: they all do."""


class Rebuilder:
    """Rebuilds batches for one lane's identity and one remote topic's limit.

    `codec` None: each batch keeps its source's; `max_count` 0: any number of records in a batch.
    """

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int,
        max_bytes: int,
        target_bytes: int = 1 << 20,
        *,
        codec: int | None = None,
        max_count: int = 0,
    ) -> None:
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch
        self._max_bytes = max_bytes
        self._group_bytes = min(target_bytes, max_bytes)
        self._codec = codec
        self._max_count = max_count

    def rebuild(
        self, batches: Sequence[Batch], from_offset: int, sequence: int, until: int | None = None
    ) -> list[Rebuilt]:
        """Records at from_offset and above, and below `until` if it is given, in as few batches as the limits allow.

        The last result's source_next is `until`, or the end of the last batch given, so offsets without records are passed
        over. No result at all means that no record is left in any of them.
        """
        results: list[Rebuilt] = []
        for group in self._groups(batches):
            opened = OpenedRecords()
            opened.add_all(group, from_offset)
            end = len(opened) if until is None else bisect_left(opened.offsets, until)
            if end:
                for rebuilt in self._pieces(opened, 0, end, sequence):
                    sequence = (sequence + rebuilt.count) & _SEQUENCE_MASK
                    results.append(rebuilt)
        if results:
            results[-1] = replace(results[-1], source_next=batches[-1][1].next_offset if until is None else until)
        return results

    def _groups(self, batches: Sequence[Batch]) -> Iterator[Sequence[Batch]]:
        """Neighbours of one codec whose sizes together stay within the aim; judged by headers alone."""
        start, size, codec = 0, 0, -1
        for index, (_, header) in enumerate(batches):
            records_bytes = header[1] - HEADER_BYTES
            header_codec = header[5] & CODEC_BITS
            if size and (header_codec != codec or size + records_bytes > self._group_bytes):
                yield batches[start:index]
                start, size = index, 0
            codec = header_codec
            size += records_bytes if size else records_bytes + HEADER_BYTES
        yield batches[start:]

    def _pieces(self, opened: OpenedRecords, start: int, end: int, sequence: int) -> Iterator[Rebuilt]:
        """Records start to end as one batch, or as several if one would be over a limit."""
        cuts: Iterator[tuple[int, int]]
        if self._max_count and end - start > self._max_count:
            cuts = ((at, min(at + self._max_count, end)) for at in range(start, end, self._max_count))
        else:
            rebuilt = self._build(opened, start, end, sequence)
            size = len(rebuilt.data)
            if size <= self._max_bytes:
                yield rebuilt
                return
            if end - start == 1:
                raise RecordTooLarge(opened.offsets[start], size, self._max_bytes)
            cuts = _cuts(opened, start, end, self._share(size))
        for piece_start, piece_end in cuts:
            for piece in self._pieces(opened, piece_start, piece_end, sequence):
                sequence = (sequence + piece.count) & _SEQUENCE_MASK
                yield piece

    def _share(self, size: int) -> float:
        """Which part of the records should fit into one batch."""
        room = self._max_bytes - self._max_bytes // _ROOM_FOR_GUESS - HEADER_BYTES
        return min(max(room, 1) / size, 0.5)

    def _build(self, opened: OpenedRecords, start: int, end: int, sequence: int) -> Rebuilt:
        codec = opened.owners[start].codec if self._codec is None else self._codec
        records = opened.encode(start, end)
        if codec:
            records = compress(codec, records)
        count = end - start
        timestamps = opened.timestamps[start:end]
        max_timestamp = max(timestamps)
        covered = _INSIDE_CRC.pack(
            codec,
            count - 1,
            timestamps[0],
            max_timestamp,
            self._producer_id,
            self._producer_epoch,
            sequence,
            count,
        )
        crc = _iscsi(records, _iscsi(covered))
        length = HEADER_BYTES - 12 + len(records)
        return Rebuilt(
            data=b"".join((_OUTSIDE_CRC.pack(0, length, -1, _MAGIC, crc), covered, records)),
            count=count,
            source_next=_next_after(opened, end),
            source_epoch=opened.owners[end - 1].leader_epoch,
            first_timestamp=timestamps[0],
            max_timestamp=max_timestamp,
            first_offset=opened.offsets[start],
            last_offset=opened.offsets[end - 1],
            gap_at=_gap_at(opened.offsets, start, end),
        )


def _gap_at(offsets: Sequence[int], start: int, end: int) -> int:
    """The first of these offsets that lies further from the first one than records do: the distance never shrinks."""
    first = offsets[start] - start
    if offsets[end - 1] - (end - 1) == first:
        return -1
    return offsets[bisect_right(range(start, end), first, key=lambda at: offsets[at] - at) + start]


def _next_after(opened: OpenedRecords, end: int) -> int:
    owner = opened.owners[end - 1]
    if end < len(opened) and opened.owners[end] is owner:
        return opened.offsets[end - 1] + 1
    return owner.next_offset


def _cuts(opened: OpenedRecords, start: int, end: int, share: float) -> Iterator[tuple[int, int]]:
    """Ranges that hold about `share` of the bytes each; at least two, none empty."""
    allowance = share * sum(map(len, opened.rests[start:end]))
    first, held = start, 0
    for index in range(start, end):
        size = len(opened.rests[index])
        if index > first and held + size > allowance:
            yield first, index
            first, held = index, 0
        held += size
    yield first, end


def _read(batch: memoryview) -> tuple[int, list[Record]]:
    for _, header in walk(batch, 0, len(batch)):
        return header.base_offset, list(read_records(batch, header))
    raise HeliographError(f"A batch of {len(batch)} bytes was cut short: it has no whole header and body.")


def last_record(batch: memoryview) -> tuple[int, bytes | None, bytes | None]:
    """Timestamp, key and value of the last record of a batch."""
    base_offset, records = _read(batch)
    if not records:
        raise HeliographError(f"The batch at offset {base_offset} holds no record.")
    return records[-1].timestamp, records[-1].key, records[-1].value


def record_at(batch: memoryview, offset: int) -> tuple[int, bytes | None, bytes | None, Headers]:
    """Timestamp, key, value and headers of the record with that offset in the partition the batch was fetched from."""
    base_offset, records = _read(batch)
    for record in records:
        if record.offset == offset:
            return record.timestamp, record.key, record.value, record.headers
    raise HeliographError(f"The batch at offset {base_offset} holds no record with offset {offset}.")
