"""Which checkpoints are due: MirrorMaker 2's rule, so that a group is never sent back by a restart.

A checkpoint is written if there is none for its partition, if the group went back on the source, or if it comes to lie further on
than the last one. Otherwise the last one stands. Besides, one that lies beyond what was copied, because the remote topic was made
anew, is replaced. Checkpoints of groups that are gone stay. Knows no brokers: `control.checkpoints` reads and writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from heliograph.replication.group_positions import Pair, Placed
from heliograph.replication.make_topic import MakeTopic, as_mirrormaker_does

CheckpointKey = tuple[str, str, int]
"""Group, remote topic, partition."""

_OPTION = "emit.checkpoints.enabled"


def make_checkpoints_topic(name: str, replication_factor: int) -> MakeTopic:
    return MakeTopic(as_mirrormaker_does(name, replication_factor, _OPTION))


@dataclass(frozen=True)
class Due:
    """A checkpoint to write: a group, a remote partition, the pair, the metadata that the group committed; and the reason."""

    group: str
    remote: str
    partition: int
    pair: Pair
    metadata: str
    why: str


@dataclass(frozen=True)
class WriteCheckpoints:
    """What is due of one group."""

    group: str
    due: tuple[Due, ...]
    routine: bool = False

    @property
    def subject(self) -> str:
        return f"group {self.group}"

    @property
    def what(self) -> str:
        told = (f"{due.remote}-{due.partition} {due.pair.upstream} -> {due.pair.downstream}" for due in self.due)
        return f"write a checkpoint: {', '.join(told)}"

    @property
    def why(self) -> str:
        return "; ".join(dict.fromkeys(due.why for due in self.due))


CheckpointAction = MakeTopic | WriteCheckpoints


def plan_checkpoints(placed: Iterable[Placed], last: Mapping[CheckpointKey, Pair]) -> list[WriteCheckpoints]:
    """What is due of every group; `last` are the newest checkpoints that are written."""
    due: dict[str, list[Due]] = {}
    for place in placed:
        if isinstance(place.pair, Pair):
            why = _why(place.pair, last.get((place.group, place.remote, place.partition)), place.reach)
            if why:
                found = Due(place.group, place.remote, place.partition, place.pair, place.metadata, why)
                due.setdefault(place.group, []).append(found)
    return [WriteCheckpoints(group, tuple(rows)) for group, rows in sorted(due.items())]


def _why(pair: Pair, last: Pair | None, reach: int) -> str:
    """Why a checkpoint is due; empty: it is not."""
    if last is None:
        return "it has none yet"
    if pair.upstream < last.upstream:
        return "the group went back"
    if pair.downstream > last.downstream:
        return "the group read on" if pair.upstream > last.upstream else "it lies further on now"
    if last.downstream > reach and pair.downstream != last.downstream:
        return f"the last one, at {last.downstream}, lies beyond what is copied"
    return ""
