"""MirrorMaker 2's own translation of offsets, as its checkpoint task does it: at most 64 offset syncs per partition.

Shown beside the exact answer, so that nobody wonders where MirrorMaker 2's tools send a group. It never interpolates: between
two syncs it answers with the offset after the older one, so that records are read again rather than lost.
"""

from __future__ import annotations

from dataclasses import dataclass

_SLOTS = 64
TOO_OLD = -1
Partition = tuple[str, int]


@dataclass(frozen=True)
class Sync:
    """One record's offset on both sides."""

    upstream: int
    downstream: int


class OffsetSyncStore:
    """The newest sync first; slots further back hold syncs further apart. Two neighbours may be the same sync."""

    def __init__(self, must_read_to_end: bool = True) -> None:
        """`must_read_to_end`: no checkpoints were loaded, so of what is read before `loaded` only the last sync counts."""
        self._must_read_to_end = must_read_to_end
        self._loaded = False
        self._slots: dict[Partition, list[Sync]] = {}

    def loaded(self) -> None:
        """The offset-syncs topic was read to its end."""
        self._loaded = True

    def add(self, place: Partition, sync: Sync) -> None:
        slots = self._slots.get(place)
        only_last = self._must_read_to_end and not self._loaded
        if slots is None or only_last or sync.upstream < slots[0].upstream:
            self._slots[place] = [sync] * _SLOTS
        else:
            self._slots[place] = _with(slots, sync)

    def translate(self, place: Partition, upstream: int) -> int | None:
        """The downstream offset; -1: older than the oldest sync; None: nothing is known."""
        slots = self._slots.get(place)
        if slots is None or not self._loaded:
            return None
        for sync in slots:
            if sync.upstream <= upstream:
                return sync.downstream if sync.upstream == upstream else sync.downstream + 1
        return TOO_OLD


def _with(old: list[Sync], sync: Sync) -> list[Sync]:
    """The slots after one more sync: the first slot that is still recent enough ends the change."""
    slots = list(old)
    slots[0] = replacement = sync
    at = 0
    for current in range(1, _SLOTS):
        before = slots[current - 1]
        after = slots[current + 1] if current + 1 < _SLOTS else None
        while True:
            candidate = old[at]
            apart = _is_apart(before, candidate, current - 1)
            fits = (
                apart
                and _is_recent(before, candidate, current - 1, current)
                and (after is None or _is_apart(candidate, after, current))
            )
            if fits:
                replacement = candidate
            is_repeated = at + 1 < _SLOTS and candidate is old[at + 1]
            skip = is_repeated or not apart
            at += fits or skip
            if at >= current or not skip:
                break
        if _is_recent(before, slots[current], current - 1, current):
            break
        slots[current] = replacement
    return slots


def _is_recent(newer: Sync, older: Sync, i: int, j: int) -> bool:
    """MirrorMaker 2's invariant B: slot j is at most 2^j - 2^i behind slot i."""
    return newer.upstream <= older.upstream + (1 << j) - (1 << i)


def _is_apart(newer: Sync, older: Sync, i: int) -> bool:
    """Its invariant C: slots are at least 2^(i-2) apart."""
    return newer.upstream >= older.upstream + (1 << max(i - 2, 0))
