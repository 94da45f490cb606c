"""Walking the source of a lane to where its copy ends (P2.5): by count, or by content where what would be counted is deleted."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from heliograph.errors import BrokerRefused, LaneParked
from heliograph.kafka.attach_findings import Disproved, PositionLost
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.ranges import Seen, fetch_once, read_range
from heliograph.kafka.sides import Side
from heliograph.kafka.walked import Content, Copy, Position, alike, contents, has_gaps, offsets_from, offsets_of
from heliograph.replication.alignment import differs_at

RUN = 64
"""So many of the target's last records are looked for together: one alone may have equals."""
_ONE_BATCH = 1  # a broker gives at least one batch, however little is asked for
_OUT_OF_RANGE = 1


@dataclass(frozen=True)
class Wanted:
    """The last records of ours on the target, oldest first, and how many of ours it has beyond the ledger's entry."""

    run: Sequence[Copy]
    records: int


class Parting(NamedTuple):
    """A source and its copy are the same before this offset; the record before it is of this leader epoch."""

    offset: int
    epoch: int


class SourceWalk:
    """Reads sources of one cluster."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    def read(self, source: Side, first: int, after: int, rule: Position) -> AsyncIterator[Seen]:
        return read_range(self._client, source.log, first, after, committed=rule.committed, home=rule.home)

    async def by_count(
        self, source: Side, begin: Position, records: int, look_again: Callable[[], Awaitable[Side]]
    ) -> Position:
        """`records` records from `begin`, by the lane's rule; what the target has beyond the ledger's entry."""
        if source.log_start > begin.offset:
            raise PositionLost(
                f"the source begins at {source.log_start}, after the position {begin.offset} to count from",
                source.log_start,
            )
        walk = _Walk(begin, records)
        await self._walk(source, walk)
        while walk.left:
            # Another attempt may have copied what came after the source was asked for its end: ask it once more.
            reached, source = walk.offset, await look_again()
            await self._walk(source, walk)
            if walk.left and walk.offset == reached:
                raise Disproved(
                    f"the target has {walk.left} records more than the source below {source.end}{cleaned(walk.reached)}"
                )
        return walk.reached

    async def _walk(self, source: Side, walk: _Walk) -> None:
        async for seen in self.read(source, walk.offset, source.end, walk.begin):
            if walk.add(seen):
                return

    async def check(self, source: Side, offset: int, epoch: int) -> None:
        """Diverged, if the source is not the one of which everything before `offset` was copied, up to that epoch."""
        if epoch < 0:
            return
        try:
            log = replace(source.log, after_epoch=epoch)
            await fetch_once(self._client, log, offset, committed=False, max_bytes=_ONE_BATCH)
        except BrokerRefused as error:
            if error.code != _OUT_OF_RANGE:
                raise  # else its leader cannot tell where that epoch ended: nothing is shown

    async def parts_at(self, source: Side, begin: Position, copies: AsyncIterator[Copy]) -> Parting | None:
        """Where the source's records are no longer those that were copied, and another leader's instead; None: nowhere.

        What one leader wrote, in one epoch, never changes. So where a log was cut back and has grown again, the first record
        that differs is the first of a later epoch than the one before it.
        """
        reached, epoch = begin.offset, begin.epoch
        records = self._records(source, begin)
        async for copy, append_time in copies:
            found = await anext(records, None)
            if found is not None and alike(found[1], copy, append_time):
                reached, epoch = found[0] + 1, found[2]
                continue
            is_later = (source.log.leader_epoch if found is None else found[2]) > epoch
            return Parting(reached, epoch) if is_later and epoch >= 0 else None
        return None

    async def _records(self, source: Side, begin: Position) -> AsyncGenerator[tuple[int, Content, int], None]:
        """Offset, content and leader epoch of each record, by the lane's rule."""
        async for seen in self.read(source, begin.offset, source.end, begin):
            if seen.dropped is None:
                for offset, content in contents(seen):
                    if offset >= begin.offset:
                        yield offset, content, seen.header.leader_epoch

    async def by_content(self, source: Side, begin: Position, wanted: Wanted) -> Position:
        """The source no longer has what would be counted: look for the target's last records of ours in what is left.

        Of the offsets that are gone each may have held a record, or none: so the last record of ours is one of a few, known
        by their number from the source's start on. It must be the only one of them that looks like it.
        """
        lost = PositionLost(
            f"the source begins at {source.log_start}, after the ledger's position {begin.offset}", source.log_start
        )
        if not wanted.run:
            raise lost
        first, number = wanted.records - (source.log_start - begin.offset), 0
        window: deque[Content] = deque(maxlen=len(wanted.run))
        places: list[tuple[int, Position]] = []
        async for seen in self.read(source, source.log_start, source.end, begin):
            if seen.dropped is not None:
                continue
            for offset, content in contents(seen):
                if offset < source.log_start:
                    continue
                number += 1
                window.append(content)
                if first <= number <= wanted.records and _ends_with(window, wanted.run):
                    place = replace(begin, offset=offset + 1, epoch=seen.header.leader_epoch, last=seen)
                    places.append((number, place))
            if number >= wanted.records:
                break
        if not places:
            raise lost
        # A few records whose timestamps cannot be compared may look like those that are gone.
        number, place = places[0]
        is_sure = first > 0 or not wanted.run[-1][1] or number >= len(wanted.run)
        if len(places) > 1 or not is_sure:
            raise LaneParked(
                f"{lost}, and {len(places)} of its records from {place.before()} on look like the last that was copied: which "
                "one it was cannot be told. When the source has deleted them too, on.data.loss decides; or start over with "
                "--reset"
            )
        return place

    async def before(self, source: Side, position: Position) -> Position:
        """The position with the batch before it, where that is a batch of records: what the proof compares."""
        if position.offset <= source.log_start:
            return position
        async for seen in self.read(source, position.offset - 1, position.offset, position):
            if seen.dropped is None and any(offset < position.offset for offset in offsets_of(seen)):
                return replace(position, last=seen)
        return position


class _Walk:
    """How far a count is."""

    def __init__(self, begin: Position, records: int) -> None:
        self.begin = self.reached = begin
        self.offset, self.left, self._records = begin.offset, records, records

    def add(self, seen: Seen) -> bool:
        """Whether this batch holds the last record."""
        after = seen.header.next_offset
        is_cleaned = self.reached.cleaned or has_gaps(seen, self.offset)
        offsets = [] if seen.dropped is not None else offsets_from(seen, self.offset)
        if offsets:
            copied = self.begin.target + self._records - self.left
            count = min(self.left, len(offsets))
            if count < len(offsets):
                after = offsets[count - 1] + 1
            self.left -= count
            self.reached = replace(
                self.reached,
                epoch=seen.header.leader_epoch,
                last=seen,
                target=copied + count,
                gap_at=_gap_at(self.reached.gap_at, offsets[:count], copied),
            )
        self.offset = after
        self.reached = replace(self.reached, offset=after, cleaned=is_cleaned)
        return not self.left


def cleaned(position: Position) -> str:
    """What to add to a reason where the source's own gaps explain it."""
    if not position.cleaned:
        return ""
    return (
        ": the source has gaps, it was cleaned after this was copied. Let its cleanup.policy hold compact until the lane "
        "follows again: it then continues at the ledger's position and repeats what was copied since; or start over with --reset"
    )


def _gap_at(known: int, offsets: Sequence[int], target: int) -> int:
    if offsets[-1] - offsets[0] == len(offsets) - 1:
        return differs_at(known, (offsets[0], target), -1)
    inside = next(offset for at, offset in enumerate(offsets) if offset - offsets[0] != at)
    return differs_at(known, (offsets[0], target), inside)


def _ends_with(window: Sequence[Content], run: Sequence[Copy]) -> bool:
    """Whether the records up to here are the last ones of the run; at the source's start fewer are there to compare."""
    pairs = zip(reversed(window), reversed(run), strict=False)
    return all(alike(here, there, append_time) for here, (there, append_time) in pairs)
