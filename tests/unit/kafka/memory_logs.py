"""Two logs in memory and a lane that copied one into the other, by any history, with the truth kept beside it."""

from __future__ import annotations

import random
import struct
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from heliograph.kafka.log_ends import End
from heliograph.kafka.ranges import Judge, Log, Seen
from heliograph.model.lanes import Identity, LaneId, LedgerEntry, Rule
from heliograph.replication.anchors import Anchor, keep_anchor, over_a_jump
from heliograph.wire.aborted import ABORTED, CAME_HOME, CONTROL, EMPTY
from heliograph.wire.plain_batch import plain_batch
from heliograph.wire.record_batch import read_header, restamp
from heliograph.wire.records import read_records

Row = tuple[bytes, bytes | None]
OURS = 7
_CONTROL_BITS = 0x30


class MemoryLog:
    """A partition; stands in for its client, so that an End finds it."""

    def __init__(self) -> None:
        self.batches: list[tuple[bytes, str | None]] = []
        self.start = self.end = 0

    def add(
        self, rows: list[Row], producer: tuple[int, int] = (-1, -1), sequence: int = -1, dropped: str | None = None
    ) -> int:
        """Append a batch; its first offset."""
        batch = bytearray(plain_batch(rows, 1_000))
        restamp(batch, 0, read_header(batch, 0), *producer, sequence)
        first = self.end
        struct.pack_into(">q", batch, 0, first)
        if dropped == CONTROL:
            struct.pack_into(">h", batch, 21, _CONTROL_BITS)
        self.batches.append((bytes(batch), dropped))
        self.end += len(rows)
        return first

    def seen(self) -> Iterator[Seen]:
        for batch, dropped in self.batches:
            yield Seen(read_header(batch, 0), memoryview(batch), dropped)

    def records(self) -> dict[int, Row]:
        """What a reader of committed records gets."""
        rows = (row for seen in self.seen() if seen.dropped is None for row in read_records(seen.data, seen.header))
        return {row.offset: (row.key or b"", row.value) for row in rows if row.offset >= self.start}

    def cut(self, before: int) -> None:
        """Retention."""
        self.start = before
        self.batches = [pair for pair in self.batches if read_header(pair[0], 0).next_offset > before]

    def clean(self, until: int) -> None:
        """The cleaner, over batches of one record each."""
        last = {key: offset for offset, (key, _) in self.records().items() if offset < until}
        kept = set(last.values())

        def stays(pair: tuple[bytes, str | None]) -> bool:
            offset = read_header(pair[0], 0).base_offset
            return pair[1] is not None or offset >= until or offset in kept

        self.batches = [pair for pair in self.batches if stays(pair)]

    def as_end(self) -> End:
        return End(self, Log("topic", "", 0, 0), self.start, self.end)  # type: ignore[arg-type]  # stands in


async def read_range(
    log: MemoryLog, _: Log, offset: int, end: int, *, committed: bool, home: Judge | None
) -> AsyncIterator[Seen]:
    for seen in log.seen():
        if seen.header.next_offset > offset and seen.header.base_offset < end:
            if home is not None:  # what came home is known here anyway: it is only asked
                await home.learn([seen.header.producer_id])
            yield Seen(seen.header, seen.data, seen.dropped if committed else None)


async def fetch_batches(log: MemoryLog, _: Log, offset: int) -> list[Seen]:
    behind = [seen for seen in log.seen() if seen.header.next_offset > offset]
    return [Seen(seen.header, seen.data, EMPTY if seen.header.count == 0 else None) for seen in behind[:3]]


@dataclass
class History:
    """A lane's life. `truth`: source offset to the offset of its (last) copy."""

    chance: random.Random
    largest: int = 4
    """Records in a batch, at most."""
    values: int = 1_000_000
    """How many different values there are; few make records that could be taken for one another."""
    source: MemoryLog = field(default_factory=MemoryLog)
    target: MemoryLog = field(default_factory=MemoryLog)
    truth: dict[int, int] = field(default_factory=dict)
    control: int = 0
    aborted: int = 0
    came_home: int = 0
    skipped: int = 0
    _rows: dict[int, Row] = field(default_factory=dict)
    _anchors: list[Anchor] = field(default_factory=list)
    _now: int = 10_000
    _anchored: int = 0
    _epoch: int = 0
    producers: list[int] = field(default_factory=lambda: [OURS])
    """Every id under which the lane wrote, the latest last."""
    _sequence: int = 0
    _start: Anchor = (0, 0)
    _acked: Anchor = (0, 0)

    def live(self, steps: int, what: list[str]) -> None:
        for _ in range(self.chance.randrange(3)):
            self.target.add([(b"before", b"the lane")])
        self._start = self._acked = (0, self.target.end)
        for _ in range(steps):
            getattr(self, self.chance.choice(what))()

    def copy(self) -> None:
        rows: list[Row] = [
            (b"k%d" % self.chance.randrange(4), b"v%d" % self.chance.randrange(self.values))
            for _ in range(self.chance.randint(1, self.largest))
        ]
        self._append(self.source.add(rows), rows)

    def _append(self, first: int, rows: list[Row]) -> None:
        there = self.target.add(rows, (self.producers[-1], self._epoch), self._sequence)
        self._sequence += len(rows)
        for place, row in enumerate(rows):
            self.truth[first + place] = there + place
            self._rows[first + place] = row
        self._acked = (first + len(rows), there + len(rows))
        for pair in ((first, there), self._acked):
            self._anchored = keep_anchor(self._anchors, pair, self._now, self._anchored)

    def marker(self) -> None:
        self.source.add([(struct.pack(">hh", 0, 1), b"")], dropped=CONTROL)
        self.control += 1

    def abort(self) -> None:
        self.source.add([(b"a", b"aborted")] * 2, (9, 0), 0, dropped=ABORTED)
        self.aborted += 2

    def home(self) -> None:
        """The flow in the other direction wrote it."""
        records = self.chance.randint(1, self.largest)
        self.source.add([(b"k1", b"from there")] * records, (8, 0), 0, dropped=CAME_HOME)
        self.came_home += records

    def foreign(self) -> None:
        self.target.add([(b"f", b"foreign")] * self.chance.randint(1, 2), (self.chance.choice([-1, 5]), 0), 0)

    def second(self) -> None:
        self._now += 2_000

    def skip(self) -> None:
        self.source.add([(b"k0", b"refused")])
        self.skipped += 1
        self._anchors = list(over_a_jump(tuple(self._anchors), self._acked, self.source.end))
        self._generation((self.source.end, self._acked[1]))

    def rotate(self) -> None:
        """The coordinator forgot the flow's transactional id: its next generation has another producer id."""
        self.skip()
        self.producers.append(OURS + 1_000 * len(self.producers))
        self._epoch = 0

    def crash(self) -> None:
        """The last records are copied again by the next generation: a compacted source may not be counted (P8)."""
        known, anchors = self._acked, list(self._anchors)
        for _ in range(self.chance.randint(0, 2)):
            self.copy()
        again = {offset: row for offset, row in self._rows.items() if offset >= known[0]}
        self._anchors = anchors
        self._generation(known)
        for offset, row in sorted(again.items()):
            self._append(offset, [row])

    def _generation(self, start: Anchor) -> None:
        self._start = self._acked = start
        self._epoch += 1
        self._sequence = self._anchored = 0

    def entry(self) -> LedgerEntry:
        return LedgerEntry(
            lane=LaneId("A->B", "t", 0),
            generation=self._epoch,
            identity=Identity(self.producers[-1], self._epoch),
            rule=Rule(),
            target_cluster_id="",
            source_topic_id="",
            target_topic_id="",
            source_start=self._start[0],
            target_start=self._start[1],
            source_next=self._acked[0],
            source_epoch=0,
            target_next=self._acked[1],
            sequence_next=self._sequence,
            anchors=tuple(self._anchors),
        )
