"""Which (source offset, target offset) pairs a lane keeps: few, close together near the end, wider apart further back.

An anchor says: what was copied from before the source offset lies before the target offset, and the rest after it. Between two
anchors `replication.translation` counts, so the distance of two anchors is what a translation has to read.
"""

from __future__ import annotations

Anchor = tuple[int, int]

MAX_ANCHORS = 32
ANCHOR_MS = 1_000
STRIDE = 1_000_000
"""So many source offsets with one delta get an anchor all the same: nobody should have to count a whole log."""
_NEWEST = 16
"""These stay as they are: attach counts from them when the target went back (P2.4)."""


def keep_anchor(anchors: list[Anchor], pair: Anchor, now_ms: int, anchored_ms: int) -> int:
    """Add the pair if the delta changed or the last one is far; of several in one second the last. Gives the second's begin."""
    source, target = pair
    if anchors:
        last_source, last_target = anchors[-1]
        if last_target - last_source == target - source and source - last_source < STRIDE:
            return anchored_ms
    if len(anchors) > 1 and now_ms - anchored_ms < ANCHOR_MS:
        anchors[-1] = pair
        return anchored_ms
    anchors.append(pair)
    _thin(anchors)
    return now_ms


def over_a_jump(anchors: tuple[Anchor, ...], left: Anchor, begins: int) -> tuple[Anchor, ...]:
    """The anchors of a lane that goes on at source offset `begins`: what lies between there and where it left is not copied."""
    source, target = left
    if begins <= source:
        return anchors
    kept = [*anchors, left, (begins, target)]
    _thin(kept)
    return tuple(kept)


def _thin(anchors: list[Anchor]) -> None:
    """Take out those that are missed least: whose neighbours are close, seen from the end. The oldest is never taken."""
    end = anchors[-1][0]

    def missed(at: int) -> float:
        before, after = anchors[at - 1][0], anchors[at + 1][0]
        # The lane may have gone back in the source: distances are distances, whatever their sign.
        return abs(after - before) / (abs(end - before) + 1)

    while len(anchors) > MAX_ANCHORS:
        del anchors[min(range(1, len(anchors) - _NEWEST), key=missed)]
