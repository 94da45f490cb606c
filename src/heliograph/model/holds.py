"""Holds: what a person stopped, with the reason. A flow, a topic or one partition of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from heliograph.model.lanes import LaneId


class HoldKind(StrEnum):
    PAUSE = "pause"
    """Stopped at once."""
    DRAIN = "drain"
    """Carried on to where the source ended when it was asked for, then stopped."""


@dataclass(frozen=True)
class Hold:
    """`topic` empty: the whole flow; `partition` -1: all of the topic."""

    flow: str
    topic: str
    partition: int
    kind: HoldKind
    reason: str
    who: str
    since_ms: int
    ends: tuple[tuple[str, int], ...] = ()
    """Of a drain: where each lane's source ended, by the lane's key. One that is not named is stopped at once."""

    @property
    def subject(self) -> str:
        parts = [self.flow, self.topic, str(self.partition)]
        return "/".join(parts[: 1 + bool(self.topic) + (self.partition >= 0)])

    @property
    def sentence(self) -> str:
        by = f" by {self.who}" if self.who else ""
        return f"{'paused' if self.kind is HoldKind.PAUSE else 'drained'}{by}: {self.reason or 'no reason given'}"

    @property
    def why(self) -> str:
        """As `sentence`, beside the lane's state, which says already that it is stopped."""
        by = f" (by {self.who})" if self.who else ""
        return f"{self.reason or 'no reason given'}{by}"

    def covers(self, lane: LaneId) -> bool:
        return lane.flow == self.flow and self.topic in ("", lane.topic) and self.partition in (-1, lane.partition)

    def is_within(self, other: Hold) -> bool:
        """Whether all that this one holds the other would hold too."""
        return self.flow == other.flow and other.topic in ("", self.topic) and other.partition in (-1, self.partition)

    def end_of(self, lane: LaneId) -> int:
        """How far a drained lane is carried; nothing of one that was not there when it was asked for."""
        return dict(self.ends).get(lane.key, 0)

    def as_fields(self) -> dict[str, Any]:
        return {**asdict(self), "kind": str(self.kind), "ends": [list(end) for end in self.ends]}


def hold_of(fields: Mapping[str, Any]) -> Hold:
    """What `as_fields` wrote; ValueError, KeyError or TypeError where it is none."""
    return Hold(
        flow=str(fields["flow"]),
        topic=str(fields["topic"]),
        partition=int(fields["partition"]),
        kind=HoldKind(fields["kind"]),
        reason=str(fields["reason"]),
        who=str(fields["who"]),
        since_ms=int(fields["since_ms"]),
        ends=tuple((str(lane), int(end)) for lane, end in fields["ends"]),
    )


def hold_on(lane: LaneId, holds: Iterable[Hold]) -> Hold | None:
    """The one that counts for a lane: a pause rather than a drain, the wider rather than the narrower."""
    mine = [hold for hold in holds if hold.covers(lane)]
    return min(mine, key=lambda hold: (hold.kind is HoldKind.DRAIN, len(hold.subject)), default=None)
