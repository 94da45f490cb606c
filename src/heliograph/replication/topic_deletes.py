"""When the remote topic of a deleted source topic is deleted too (`sync.topic.deletes.enabled`): slowly, and only on evidence.

Evidence is the broker's answer to a question by name, on the cluster where the topic was seen before, at every look of a whole
grace. A topic that may not be seen, one that is no longer chosen, and a cluster that does not answer prove nothing. Knows no
brokers: `control.topic_deletes` asks and applies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

NOTE_KIND = "deletes"
_NOTE_VERSION = 1
_LOOKS_MISSED = 10
"""So many intervals without a look, and what happened meanwhile is not known: the grace begins anew."""


class Answer(StrEnum):
    """What the source says of a topic, asked by its name."""

    EXISTS = "exists"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Seen:
    """A topic as it was when it last existed; `missing_since_ms` and `looked_ms` are 0 while it does."""

    cluster_id: str
    remote: str
    remote_id: str
    missing_since_ms: int = 0
    looked_ms: int = 0

    @property
    def existing(self) -> Seen:
        return replace(self, missing_since_ms=0, looked_ms=0)


@dataclass(frozen=True)
class Grace:
    grace_ms: int
    interval_ms: int


@dataclass(frozen=True)
class Facts:
    """Both sides at one look. `answers` and `remote_ids` are of noted topics that the plan no longer has."""

    now_ms: int
    cluster_id: str
    present: Mapping[str, tuple[str, str]]
    """Source topics of the plan, with name and id of their remote topic."""
    answers: Mapping[str, Answer] = field(default_factory=dict)
    remote_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Remember:
    """Write a note, or take it out; `notice` is a sentence that a person must know."""

    topic: str
    seen: Seen | None
    notice: str = ""
    routine: bool = True

    @property
    def subject(self) -> str:
        return f"topic {self.topic}"

    @property
    def what(self) -> str:
        return "remember"

    @property
    def why(self) -> str:
        return self.notice or "a topic that was seen can be missed"


@dataclass(frozen=True)
class DeleteTopic:
    """The grace is over."""

    topic: str
    remote: str
    why: str
    routine: bool = False

    @property
    def subject(self) -> str:
        return f"topic {self.remote}"

    @property
    def what(self) -> str:
        return "delete"


DeleteAction = Remember | DeleteTopic


def plan_deletes(notes: Mapping[str, Seen], facts: Facts, grace: Grace) -> list[DeleteAction]:
    """What follows from one look, in the order of the topics' names."""
    actions: list[DeleteAction | None] = []
    for topic in sorted({*notes, *facts.present}):
        if topic in facts.present:
            seen = Seen(facts.cluster_id, *facts.present[topic])
            actions.append(Remember(topic, seen) if notes.get(topic) != seen else None)
        else:
            actions.append(_missed(topic, notes[topic], facts, grace))
    return [action for action in actions if action is not None]


def _missed(topic: str, note: Seen, facts: Facts, grace: Grace) -> DeleteAction | None:
    answer = facts.answers.get(topic, Answer.UNKNOWN)
    if note.cluster_id != facts.cluster_id or answer is not Answer.GONE:
        return Remember(topic, note.existing) if note != note.existing else None
    if facts.remote_ids.get(note.remote) != note.remote_id:
        return Remember(topic, None)  # it is gone, or somebody made another one
    if facts.now_ms - note.looked_ms > _LOOKS_MISSED * grace.interval_ms:
        seen = replace(note, missing_since_ms=facts.now_ms, looked_ms=facts.now_ms)
        notice = (
            f"source topic '{topic}' does not exist any more: its remote topic '{note.remote}' is deleted if that stays so "
            f"for {grace.grace_ms // 1000} s (sync.topic.deletes.grace.seconds)"
        )
        return Remember(topic, seen, notice)
    missing_ms = facts.now_ms - note.missing_since_ms
    if missing_ms >= grace.grace_ms:
        why = f"source topic '{topic}' has not existed for {missing_ms // 1000} s"
        return DeleteTopic(topic, note.remote, why)
    return Remember(topic, replace(note, looked_ms=facts.now_ms))


def encode_seen(seen: Seen) -> bytes:
    """Versioned JSON."""
    return json.dumps({"version": _NOTE_VERSION, **vars(seen)}, separators=(",", ":"), ensure_ascii=False).encode()


def decode_seen(value: bytes) -> Seen | None:
    """None for what cannot be read: without a note nothing is deleted."""
    try:
        fields = json.loads(value)
        if fields.pop("version") != _NOTE_VERSION:
            return None
        return Seen(
            cluster_id=str(fields["cluster_id"]),
            remote=str(fields["remote"]),
            remote_id=str(fields["remote_id"]),
            missing_since_ms=int(fields["missing_since_ms"]),
            looked_ms=int(fields["looked_ms"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
