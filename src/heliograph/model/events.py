"""Events: what a person must know, as values. One form for the log, the events topic, `status` and `heliograph events`.

Knows how an event is written down and read again (versioned JSON). Must not know who tells it or where it is kept.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

EVENT_VERSION = 1


class EventKind(StrEnum):
    """What happened, in one word that machines may look for."""

    SOURCE_RESET = "source-reset"
    """A source topic was made anew or cut back: on.source.reset."""
    DATA_LOSS = "data-loss"
    """The source deleted records before they were copied: on.data.loss."""
    TARGET_LOSS = "target-loss"
    """The target lost records that it had acknowledged: on.target.loss."""
    FOREIGN_WRITER = "foreign-writer"
    """Somebody else writes into a remote topic: on.foreign.writer."""
    BAD_RECORD = "bad-record"
    """The target refuses a record: on.bad.record."""
    ALIGNMENT = "alignment"
    """A lane's offsets are not, or no longer, the same on both sides: offsets.align."""
    GENERATION = "generation"
    """A lane's records are numbered anew for another reason."""
    BATCH_AGAIN = "batch-again"
    """A batch was refused or damaged and is tried once more."""
    FENCED = "fenced"
    """Another attempt carries the lane."""
    PARKED = "parked"
    """A lane stopped for a reason that no policy covers."""
    LEDGER = "ledger"
    """Positions are copied further but cannot be written down."""
    TROUBLE = "trouble"
    """A flow cannot be planned or a cluster does not answer."""
    LAG = "lag"
    """A record waits longer to be copied than lag.limit.seconds."""
    CANARY = "canary"
    """The canary takes longer than canary.limit.ms, or does not arrive."""
    RECOVERED = "recovered"
    """The trouble of a flow is over, or its lag is."""
    FILE = "file"
    """The file was saved and cannot be used: the run goes on with what it has."""
    CERTIFICATE = "certificate"
    """A certificate of ours or of a broker ends within a week, or has ended."""
    TAKEN_OVER = "taken-over"
    """Another run took a flow."""
    TOPIC_GONE = "topic-gone"
    """A source topic was deleted, and its remote topic will be: sync.topic.deletes.enabled."""
    TOPIC_DELETED = "topic-deleted"
    """A remote topic was deleted, because its source topic was."""
    MALFORMED = "malformed"
    """Records in one of MirrorMaker 2's topics cannot be read and are passed over."""
    CHANGED = "changed"
    """Somebody changed something by hand: who, and why if they said so."""
    EVENTS_DROPPED = "events-dropped"
    """Events were not written, because the target did not take them for too long."""


@dataclass(frozen=True)
class Event:
    """`subject` is what it is about: a partition `orders-3`, a topic, or the flow itself."""

    time_ms: int
    flow: str
    subject: str
    kind: str
    reason: str
    """What happened, with numbers: a whole sentence."""
    what_to_do: str = ""
    """The next step for a person; empty where nothing need be done."""

    def __str__(self) -> str:
        """One line, as the log has it."""
        about = self.flow if self.subject == self.flow else f"{self.flow}: {self.subject}"
        return f"{about}: {self.reason}" + (f"; {self.what_to_do}" if self.what_to_do else "")

    @property
    def told(self) -> tuple[str, str, str, str]:
        """What it says, whenever it was told."""
        return self.flow, self.subject, self.kind, self.reason

    def as_fields(self) -> dict[str, Any]:
        return {"version": EVENT_VERSION, **asdict(self)}


@dataclass(frozen=True)
class Deed:
    """What somebody did by hand. `subject` is empty for the flow itself, `done` a few words such as `paused`."""

    flow: str
    done: str
    who: str
    reason: str = ""
    subject: str = ""

    def event(self, time_ms: int) -> Event:
        why = f": {self.reason}" if self.reason else ""
        by = f" by {self.who}" if self.who else ""
        return Event(time_ms, self.flow, self.subject or self.flow, EventKind.CHANGED, f"{self.done}{by}{why}")


def encode_event(event: Event) -> bytes:
    """Versioned JSON."""
    return json.dumps(event.as_fields(), separators=(",", ":"), ensure_ascii=False).encode()


def event_of(fields: Any) -> Event | None:
    """The event that `as_fields` wrote; None where it is none, or of a version that is not known here."""
    if not isinstance(fields, dict) or fields.get("version") != EVENT_VERSION:
        return None
    try:
        return Event(
            time_ms=int(fields["time_ms"]),
            flow=str(fields["flow"]),
            subject=str(fields["subject"]),
            kind=str(fields["kind"]),
            reason=str(fields["reason"]),
            what_to_do=str(fields["what_to_do"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def decode_event(value: bytes | None) -> Event | None:
    """An event from the events topic; None for what cannot be read: one strange record must not hide the others."""
    try:
        return event_of(json.loads(value or b"null"))
    except ValueError:
        return None
