"""The keys of the ledger's records: what is kept under which name, and in which partition (P1.1).

Knows nothing of what the records say: that is in replication/generations.py.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from heliograph.model.lanes import LaneId

_HOLDER_PREFIX = "holder/"
_NOTE_PREFIX = "note/"
PRODUCER_NOTE = "producer"
"""The kind of note that names a producer id of a flow; it outlives the generations that wrote under it."""


@dataclass(frozen=True, order=True)
class EntryKey:
    """The entry of one generation of a lane."""

    lane: LaneId
    generation: int

    def __str__(self) -> str:
        return f"{self.lane.key}/{self.generation}"


@dataclass(frozen=True, order=True)
class ClaimKey:
    """One attempt's wish to open a generation."""

    lane: LaneId
    generation: int
    claim: str

    def __str__(self) -> str:
        return f"{self.lane.key}/{self.generation}#{self.claim}"


@dataclass(frozen=True, order=True)
class HolderKey:
    """What one run says about holding a flow. A key per run: a run that lost must not overwrite the one that won."""

    flow: str
    run: str

    def __str__(self) -> str:
        return f"{_HOLDER_PREFIX}{self.flow}#{self.run}"


@dataclass(frozen=True, order=True)
class NoteKey:
    """What a job remembers of a flow: `kind` is the job's word, `subject` a topic."""

    flow: str
    kind: str
    subject: str

    def __str__(self) -> str:
        return f"{_NOTE_PREFIX}{self.kind}/{self.flow}#{self.subject}"


LedgerKey = EntryKey | ClaimKey | HolderKey | NoteKey


def parse_key(key: str) -> LedgerKey:
    """A ledger key as a value; ValueError if it is of no kind known here."""
    if key.startswith(_HOLDER_PREFIX):
        flow, _, run = key.removeprefix(_HOLDER_PREFIX).rpartition("#")
        if not (flow and run):
            raise ValueError(f"'{key}' is no ledger key: holder/flow#run")
        return HolderKey(flow, run)
    note = _note_key(key)
    if note is not None:
        return note
    # From the right: topics, numbers and uuids hold no slash, an alias may.
    parts = key.rsplit("/", 3)
    if len(parts) != 4:
        raise ValueError(f"'{key}' is no ledger key: flow/topic/partition/generation[#claim] or holder/flow")
    flow, topic, partition, last = parts
    generation, mark, claim = last.partition("#")
    if not (partition.isdecimal() and generation.isdecimal() and bool(mark) == bool(claim)):
        raise ValueError(f"'{key}' is no ledger key: flow/topic/partition/generation[#claim] or holder/flow")
    lane = LaneId(flow, topic, int(partition))
    return ClaimKey(lane, int(generation), claim) if claim else EntryKey(lane, int(generation))


def _note_key(key: str) -> NoteKey | None:
    """An alias may begin like a note; what follows is then no flow."""
    kind, slash, rest = key.removeprefix(_NOTE_PREFIX).partition("/")
    flow, _, subject = rest.rpartition("#")
    is_note = key.startswith(_NOTE_PREFIX) and kind and slash and "->" in flow and subject
    return NoteKey(flow, kind, subject) if is_note else None


def ledger_partition(key: LedgerKey, partitions: int) -> int:
    """Where a key lives. All records of a lane share a partition: claims are ordered by their offset in it (P1.4c)."""
    name = key.lane.key if isinstance(key, EntryKey | ClaimKey) else key.flow
    return zlib.crc32(name.encode()) % partitions
