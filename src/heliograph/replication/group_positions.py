"""Where a group of the source goes on, on the target: pairs of offsets that belong together, or the reason why there is none.

A pair is always exact. A group may have read further on the source than is copied: then its pair is the lane's own position, the
last one that is known, and `behind` says how much is still to come. Going on there repeats what is not copied yet and loses
nothing; as soon as it is copied the pair is that of the group's own offset.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from heliograph.model.lanes import Lane, LedgerEntry
from heliograph.replication.openings import is_another
from heliograph.replication.translation import Answer, Gone, NeverCopied, NotKnown, NotYetCopied, Point, position_of


@dataclass(frozen=True)
class Pair:
    """Everything before `upstream` that was copied lies before `downstream`, the rest after it."""

    upstream: int
    downstream: int
    behind: int = 0
    """Source offsets between the pair and what the group committed, which are not copied yet."""


@dataclass(frozen=True)
class NoPair:
    reason: str


@dataclass(frozen=True)
class Placed:
    """What a group committed for one source partition, and where that is on the target."""

    group: str
    topic: str
    remote: str
    partition: int
    committed: int
    metadata: str
    pair: Pair | NoPair
    reach: int = 0
    """How far the ledger knows the remote partition."""
    is_share: bool = False
    """Of a share group: `committed` is where it begins to read."""


def pair_of(answer: Answer, committed: int, known: Point) -> Pair | NoPair:
    """`known` is the lane's position by the ledger that gave the answer."""
    if isinstance(answer, NotYetCopied):
        return Pair(known.source, known.target, answer.distance)
    position = position_of(answer)
    if position is not None:
        return Pair(committed, position)
    match answer:
        case Gone(_, reason) | NeverCopied(reason) | NotKnown(reason):
            return NoPair(reason)
    raise AssertionError(f"{answer} has a position")  # pragma: no cover  the union has no other kind


def pair_without_reading(lane: Lane, offset: int, entry: LedgerEntry | None) -> Pair | NoPair | None:
    """What the ledger alone says of a source offset; None: the logs must be read."""
    if entry is None:
        return NoPair("nothing of this partition was ever copied")
    if is_another(entry.source_topic_id, lane.source_topic_id):
        return NoPair("the source topic was deleted and created again since it was copied")
    if is_another(entry.target_topic_id, lane.target_topic_id):
        return NoPair("the remote topic was deleted and created again since it was written to")
    if entry.rule.without:
        # Each side has the other's records at places of its own: what a group has read here may lie behind one place there.
        return NoPair("both directions keep the same names, so records lie in another order on each side")
    if offset == entry.source_next:
        return Pair(offset, entry.target_next)
    if offset > entry.source_next == entry.source_start:
        return Pair(entry.source_next, entry.target_next, offset - entry.source_next)  # it has only just begun
    return None


def not_before(pair: Pair | NoPair, start: int) -> Pair | NoPair:
    """Where the remote partition begins behind the pair, a reader goes on at its start: an offset that is gone would send it
    wherever its auto.offset.reset says, by default to the end.
    """
    return replace(pair, downstream=start) if isinstance(pair, Pair) and pair.downstream < start else pair
