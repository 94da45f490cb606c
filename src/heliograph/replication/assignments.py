"""Lanes and their load to slots: who carries what in the next epoch.

Longest-processing-time greedy, kept sticky. Knows lanes and numbers; must not know Spark, brokers or clocks.

Invariants, by letter:
  A  every lane is in exactly one slot
  B  no slot is empty, and there are min(slots, lanes) of them (at least one if there are lanes)
  C  the heaviest slot is at most SLACK times as heavy as plain greedy would make it
  D  a previous placement that satisfies B and C, of these very lanes, comes back unchanged
  E  the result is a function of the set of lanes: their order in the argument does not matter
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from heliograph.model.lanes import Lane, LaneId

SLACK = 1.25
LANES_OF_AN_EPOCH = 500
_IDLE_SHARE = 0.01
"""What an idle lane weighs, as a share of the mean load: polling it costs a little, so idle lanes are spread too."""
_ROUNDING = 1e-9
"""The same lanes added up in another order may differ in the last digits."""


def balance(
    lanes: Sequence[Lane],
    loads: Mapping[LaneId, float],
    slots: int,
    previous: Mapping[LaneId, int],
) -> list[tuple[Lane, ...]]:
    """Slot by slot its lanes. `previous`: the slot each lane had. A lane of unknown load counts as average."""
    if not lanes:
        return []
    count = max(1, min(slots, len(lanes)))
    weights = _weights(lanes, loads)
    heaviest_first = sorted(lanes, key=lambda lane: (-weights[lane.id], lane.id))
    plain = _Slots(count, weights)
    plain.place(heaviest_first)

    # Lanes that keep their slot are placed first, so that a new lane never pushes an old one away.
    limit = SLACK * plain.heaviest * (1 + _ROUNDING)
    sticky = _Slots(count, weights)
    moved = [lane for lane in heaviest_first if not sticky.keep(lane, previous.get(lane.id), limit)]
    sticky.place(moved)
    chosen = sticky if sticky.heaviest <= limit and not sticky.has_empty else plain
    return [tuple(sorted(slot, key=lambda lane: lane.id)) for slot in chosen.lanes]


def epoch_length(seconds: float, lanes: int) -> float:
    """How long so many lanes stay where they are, if nothing asks for a change.

    Handing a lane over costs the same whether it carries something or not, so many lanes are handed over less often.

    >>> epoch_length(45, 20), epoch_length(45, 500), epoch_length(45, 5000)
    (45, 45, 450.0)
    """
    return seconds if lanes <= LANES_OF_AN_EPOCH else seconds * lanes / LANES_OF_AN_EPOCH


class _Slots:
    """Lanes placed so far and what they weigh."""

    def __init__(self, count: int, weights: Mapping[LaneId, float]) -> None:
        self.lanes: list[list[Lane]] = [[] for _ in range(count)]
        self._loads = [0.0] * count
        self._weights = weights

    @property
    def heaviest(self) -> float:
        return max(self._loads)

    @property
    def has_empty(self) -> bool:
        return not all(self.lanes)

    def keep(self, lane: Lane, slot: int | None, limit: float) -> bool:
        """Put the lane where it was, if that slot is still there and has room."""
        if slot is None or not 0 <= slot < len(self.lanes):
            return False
        if self._loads[slot] + self._weights[lane.id] > limit:
            return False
        self._add(lane, slot)
        return True

    def place(self, lanes: Sequence[Lane]) -> None:
        """Each lane in turn into the lightest slot."""
        for lane in lanes:
            self._add(lane, min(range(len(self.lanes)), key=self._loads.__getitem__))

    def _add(self, lane: Lane, slot: int) -> None:
        self.lanes[slot].append(lane)
        self._loads[slot] += self._weights[lane.id]


def _weights(lanes: Sequence[Lane], loads: Mapping[LaneId, float]) -> dict[LaneId, float]:
    known = [_sane(loads[lane.id]) for lane in lanes if lane.id in loads]
    mean = math.fsum(known) / len(known) if known else 0.0
    idle = mean * _IDLE_SHARE or 1.0
    return {lane.id: _sane(loads.get(lane.id, mean)) + idle for lane in lanes}


def _sane(load: float) -> float:
    """A rate that was measured over no time at all is no rate."""
    return load if math.isfinite(load) and load > 0 else 0.0
