"""The canary: small events that are sent through a flow, so that its latency is known whether or not there is traffic.

Latency is from before an event is written to the source until it is read from the target, on one clock. Knows no brokers:
`control.canary` sends and reads.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from heliograph.model.clusters import Flow
from heliograph.replication.make_topic import MakeTopic
from heliograph.replication.topic_names import Names
from heliograph.replication.topic_plan import CreateTopic

_KEPT = 60
"""Latencies of which the median and the longest are told."""
_AWAITED = 1_000
_CONFIGS = {"cleanup.policy": "delete", "retention.ms": "3600000", "segment.ms": "600000"}


def canary_topic(flow: Flow) -> str:
    """A topic for each flow: two that keep names and meet on one target must not write one topic."""
    return f"heliograph-canary-{flow.source}-{flow.target}"


@dataclass(frozen=True)
class WithCanary:
    """A choice of topics, and the canary's."""

    names: Names
    topic: str

    def accepts(self, name: str) -> bool:
        return name == self.topic or self.names.accepts(name)

    def excludes(self, name: str) -> bool:
        return name != self.topic and self.names.excludes(name)


def make_canary_topic(name: str) -> MakeTopic:
    """With the broker's default of replicas."""
    return MakeTopic(CreateTopic(name, 1, -1, _CONFIGS, "canary.enabled"))


@dataclass(frozen=True)
class SendCanary:
    """One event."""

    topic: str
    routine: bool = True

    @property
    def subject(self) -> str:
        return f"topic {self.topic}"

    @property
    def what(self) -> str:
        return "write to"

    @property
    def why(self) -> str:
        return "canary.enabled"


CanaryAction = MakeTopic | SendCanary


class Canary:
    """The events of one sender: what was sent, what arrived, what is awaited. `now_s` is a clock that only goes on."""

    def __init__(self, sender: str, now_s: Callable[[], float]) -> None:
        self._sender = sender
        self._now_s = now_s
        self._sent: dict[bytes, float] = {}
        self._latencies: deque[float] = deque(maxlen=_KEPT)
        self.sent = self.arrived = self._number = 0

    def send(self, now_ms: int) -> tuple[bytes, bytes]:
        """The next event, as key and value."""
        self.sent += 1
        self._number += 1
        key = f"{self._sender}/{self._number}".encode()
        if len(self._sent) < _AWAITED:  # while none arrives the oldest says for how long
            self._sent[key] = self._now_s()
        return key, json.dumps({"version": 1, "sent_ms": now_ms}, separators=(",", ":")).encode()

    def give_up(self, key: bytes) -> None:
        """An event could not be written: it is not awaited, and if it is there after all, it is nobody's."""
        self.sent -= 1
        self._sent.pop(key, None)

    def see(self, key: bytes | None) -> float | None:
        """An event was read from the target: its latency in ms; None for another's, or one that was seen before."""
        sent = self._sent.pop(key, None) if key is not None else None
        if sent is None:
            return None
        self.arrived += 1
        self._latencies.append((self._now_s() - sent) * 1000)
        return self._latencies[-1]

    @property
    def last_ms(self) -> float | None:
        return self._latencies[-1] if self._latencies else None

    @property
    def waiting_ms(self) -> float:
        """For how long the oldest event that has not arrived is awaited."""
        return (self._now_s() - min(self._sent.values())) * 1000 if self._sent else 0.0

    def standing(self) -> dict[str, Any]:
        latencies = sorted(self._latencies)
        return {
            "sent": self.sent,
            "arrived": self.arrived,
            "waiting_ms": round(self.waiting_ms),
            "last_ms": _rounded(self.last_ms),
            "median_ms": _rounded(latencies[len(latencies) // 2] if latencies else None),
            "longest_ms": _rounded(latencies[-1] if latencies else None),
        }

    def sentence(self) -> str:
        """How it stands, for people."""
        told = self.standing()
        if self.last_ms is None:
            return f"{told['sent']} sent, none arrived yet"
        return f"{told['last_ms']} ms; of the last {len(self._latencies)} the median {told['median_ms']} ms, the longest {told['longest_ms']} ms"

    def why_late(self, limit_ms: int) -> str:
        """Why it is not in time; empty: it is, or there is no limit."""
        if not limit_ms:
            return ""
        if self.waiting_ms > limit_ms:
            return f"an event that was sent {self.waiting_ms / 1000:,.1f} s ago has not arrived; canary.limit.ms is {limit_ms:,}"
        if self.last_ms is not None and self.last_ms > limit_ms:
            return f"the last event took {self.last_ms:,.0f} ms; canary.limit.ms is {limit_ms:,}"
        return ""


class Punctuality:
    """Whether the canary is in time, from look to look."""

    def __init__(self) -> None:
        self.is_late = False

    def look(self, canary: Canary, limit_ms: int) -> str:
        """A sentence when that has changed; `is_late` says how."""
        why, before = canary.why_late(limit_ms), self.is_late
        self.is_late = bool(why)
        if self.is_late == before:
            return ""
        return why or f"the canary is in time again: {canary.sentence()}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
