"""What keeps a lane from attaching, each with what somebody must know to act on it."""

from __future__ import annotations

from heliograph.errors import LaneParked
from heliograph.replication.attach import Lost


class NotCountable(LaneParked):
    """The target has more of ours than the entry says, and this source may not be counted (P8.1)."""


class PositionLost(LaneParked):
    """The source lost what lies around our position (retention): it goes on where the source begins, and says so (P9)."""

    def __init__(self, reason: str, begins: int) -> None:
        super().__init__(reason)
        self.begins = begins


class LostOnTarget(LaneParked):
    """The target has less than it acknowledged, and where to go on cannot be counted (P9)."""

    def __init__(self, lost: Lost) -> None:
        super().__init__(lost.reason)
        self.lost = lost


class Disproved(LaneParked):
    """What the target has is not what the source has up to there (P2.6)."""


class SourceCutBack(LaneParked):
    """The source lost records that were copied (P10.2)."""

    def __init__(self, position: int, ends_at: int, agrees_to: int, epoch: int, target_next: int) -> None:
        """It ends what the copy has, up to `position` and on the target to `target_next`, at `ends_at`; both are shown to be the
        same before `agrees_to`, where the source's leader `epoch` ends."""
        super().__init__(f"the source ends what was copied at {ends_at}, the copy goes up to {position}")
        self.position = position
        self.ends_at = ends_at
        self.agrees_to = agrees_to
        self.epoch = epoch
        self.target_next = target_next


class NewerGeneration(LaneParked):
    """The target knows a later epoch than our entry: the ledger must be read again."""


class Overtaken(LaneParked):
    """Another attempt wrote while this one looked: look again."""
