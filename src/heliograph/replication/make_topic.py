"""The action of a job whose own topic is missing: one for heartbeats, offset syncs, checkpoints and the canary."""

from __future__ import annotations

from dataclasses import dataclass

from heliograph.replication.topic_plan import CreateTopic


@dataclass(frozen=True)
class MakeTopic:
    """`cluster` is named where a job may write to either side."""

    topic: CreateTopic
    cluster: str = ""
    routine: bool = False

    @property
    def subject(self) -> str:
        return f"topic {self.topic.name}" + (f" on {self.cluster}" if self.cluster else "")

    @property
    def what(self) -> str:
        return "create"

    @property
    def why(self) -> str:
        return self.topic.reason


def as_mirrormaker_does(name: str, replication_factor: int, reason: str) -> CreateTopic:
    """One partition, compacted: so MirrorMaker 2 makes all of its topics."""
    return CreateTopic(name, 1, replication_factor, {"cleanup.policy": "compact"}, reason)
