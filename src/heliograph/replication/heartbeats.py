"""Which heartbeats a flow's run writes, and what must be made for them: MirrorMaker 2's `heartbeats` topic.

A heartbeat of the pair A, B lies on B. What shows on B that the flow A->B is alive is its copy of A's own heartbeats,
`A.heartbeats`: those of the pair B, A. So a run of A->B writes both, unless the way back is a flow of its own, whose run writes
that one. Knows no brokers: `control.heartbeats` reads and writes.
"""

from __future__ import annotations

from dataclasses import dataclass

from heliograph.model.clusters import Flow
from heliograph.replication.make_topic import MakeTopic, as_mirrormaker_does
from heliograph.replication.topic_names import HEARTBEATS

REPLICATION_OPTION = "heartbeats.topic.replication.factor"


@dataclass(frozen=True)
class Emitting:
    """The options of one ordered pair of clusters."""

    enabled: bool = True
    interval_s: int = 1
    replication_factor: int = 3


@dataclass(frozen=True)
class Pulse:
    """Heartbeats of one pair, written to its target's `heartbeats`."""

    source: str
    target: str
    interval_s: int
    replication_factor: int


def make_heartbeats_topic(pulse: Pulse) -> MakeTopic:
    reason = f"emit.heartbeats.enabled of {pulse.source}->{pulse.target}"
    return MakeTopic(as_mirrormaker_does(HEARTBEATS, pulse.replication_factor, reason), pulse.target)


@dataclass(frozen=True)
class Beat:
    """One heartbeat, with the time at which it is written."""

    pulse: Pulse
    routine: bool = True

    @property
    def subject(self) -> str:
        return f"topic {HEARTBEATS} on {self.pulse.target}"

    @property
    def what(self) -> str:
        return "write to"

    @property
    def why(self) -> str:
        return f"every {self.pulse.interval_s} s"


HeartbeatAction = MakeTopic | Beat


def pulses(flow: Flow, there: Emitting, back: Emitting | None, source_readonly: bool) -> tuple[Pulse, ...]:
    """What a run of the flow writes; `back` are the options of the way back, None if that is a flow of its own."""
    found = [_pulse(flow.source, flow.target, there)] if there.enabled else []
    if back is not None and back.enabled and not source_readonly:
        found.append(_pulse(flow.target, flow.source, back))
    return tuple(found)


def _pulse(source: str, target: str, options: Emitting) -> Pulse:
    return Pulse(source, target, options.interval_s, options.replication_factor)


def heartbeat_actions(pulse: Pulse, topic_exists: bool) -> tuple[HeartbeatAction, ...]:
    """What one turn does."""
    return (Beat(pulse),) if topic_exists else (make_heartbeats_topic(pulse), Beat(pulse))
