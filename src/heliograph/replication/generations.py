"""Claims and entries to the generation in force (facts/exactly-once.md, P1).

Knows the ledger's keys and values and folds its records into a book. Must not know the topic it is kept in, nor who
reads and writes it: `kafka.ledger` does that. Whatever a reader has missed by compaction, it comes to the same answer.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

from heliograph.errors import SetupError
from heliograph.model.lanes import Identity, LaneId, LedgerEntry, Rule

LEDGER_VERSION = 1
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


@dataclass(frozen=True)
class Holder:
    """A run that holds a flow, or wants to. People are told; of the lanes only those need it that no broker guards (P5.2)."""

    flow: str
    host: str
    process: int
    run: str
    since_ms: int
    renewed_ms: int
    released: bool
    held: bool = False
    """It has seen that it won; without this it is a claim."""
    supersedes: str = ""
    """The run that it takes over from, after that one was silent for the take-over time."""


@dataclass(frozen=True)
class Claim:
    """A claim as it lies in the ledger."""

    claim: str
    offset: int
    entry: LedgerEntry


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


def encode_entry(entry: LedgerEntry) -> bytes:
    """Versioned JSON of an entry or claim."""
    return _encode(
        {
            "flow": entry.lane.flow,
            "topic": entry.lane.topic,
            "partition": entry.lane.partition,
            "generation": entry.generation,
            "producer_id": entry.identity.producer_id,
            "producer_epoch": entry.identity.producer_epoch,
            "isolation": entry.rule.isolation,
            "rule_version": entry.rule.version,
            "without": entry.rule.without,
            "target_cluster_id": entry.target_cluster_id,
            "source_topic_id": entry.source_topic_id,
            "target_topic_id": entry.target_topic_id,
            "source_start": entry.source_start,
            "target_start": entry.target_start,
            "source_next": entry.source_next,
            "source_epoch": entry.source_epoch,
            "target_next": entry.target_next,
            "sequence_next": entry.sequence_next,
            "time_ms": entry.time_ms,
            "attempt": entry.attempt,
            "anchors": entry.anchors,
            "last": entry.last,
            "filling": entry.filling,
            "filler_to": entry.filler_to,
            "differs_at": entry.differs_at,
            "mm2_offset": entry.mm2_offset,
        }
    )


def decode_entry(value: bytes) -> LedgerEntry:
    """The entry that `encode_entry` wrote; fields it does not know are passed over."""
    fields = _decode(value, "entry")
    try:
        return LedgerEntry(
            lane=LaneId(str(fields["flow"]), str(fields["topic"]), int(fields["partition"])),
            generation=int(fields["generation"]),
            identity=Identity(int(fields["producer_id"]), int(fields["producer_epoch"])),
            rule=Rule(str(fields["isolation"]), int(fields["rule_version"]), str(fields.get("without", ""))),
            target_cluster_id=str(fields["target_cluster_id"]),
            source_topic_id=str(fields["source_topic_id"]),
            target_topic_id=str(fields["target_topic_id"]),
            source_start=int(fields["source_start"]),
            target_start=int(fields["target_start"]),
            source_next=int(fields["source_next"]),
            source_epoch=int(fields["source_epoch"]),
            target_next=int(fields["target_next"]),
            sequence_next=int(fields["sequence_next"]),
            time_ms=int(fields["time_ms"]),
            attempt=str(fields["attempt"]),
            anchors=tuple((int(source), int(target)) for source, target in fields["anchors"]),
            last=_pair(fields.get("last")),
            filling=bool(fields.get("filling", False)),
            filler_to=int(fields.get("filler_to", 0)),
            differs_at=int(fields.get("differs_at", _first_difference(fields))),
            mm2_offset=int(fields.get("mm2_offset", -1)),
        )
    except (KeyError, TypeError, ValueError) as fault:
        raise _unreadable("entry", fault) from fault


def _first_difference(fields: dict[str, Any]) -> int:
    """Of entries that do not say it: the first known pair of offsets that are not the same."""
    known = [(fields["source_start"], fields["target_start"]), *fields["anchors"]]
    return next((int(source) for source, target in known if source != target), -1)


def _pair(value: Any) -> tuple[int, int] | None:
    """Entries that were written before this was kept have none."""
    if value is None:
        return None
    source, target = value
    return int(source), int(target)


def encode_holder(holder: Holder) -> bytes:
    """Versioned JSON of a holder."""
    return _encode(
        {
            "flow": holder.flow,
            "host": holder.host,
            "process": holder.process,
            "run": holder.run,
            "since_ms": holder.since_ms,
            "renewed_ms": holder.renewed_ms,
            "released": holder.released,
            "held": holder.held,
            "supersedes": holder.supersedes,
        }
    )


def decode_holder(value: bytes) -> Holder:
    """The holder that `encode_holder` wrote; fields it does not know are passed over."""
    fields = _decode(value, "holder")
    try:
        return Holder(
            flow=str(fields["flow"]),
            host=str(fields["host"]),
            process=int(fields["process"]),
            run=str(fields["run"]),
            since_ms=int(fields["since_ms"]),
            renewed_ms=int(fields["renewed_ms"]),
            released=bool(fields["released"]),
            held=bool(fields["held"]),
            supersedes=str(fields["supersedes"]),
        )
    except (KeyError, TypeError, ValueError) as fault:
        raise _unreadable("holder", fault) from fault


class LedgerBook:
    """The ledger's records, folded in the order of their offsets."""

    def __init__(self) -> None:
        self._entries: dict[LaneId, dict[int, LedgerEntry]] = {}
        self._claims: dict[tuple[LaneId, int], dict[str, Claim]] = {}
        self._holders: dict[str, Holder] = {}
        self._notes: dict[NoteKey, bytes] = {}
        self.strange_keys: set[str] = set()
        """Keys of no kind known here, such as a newer Heliograph may write; status names them."""

    def apply(self, key: str, value: bytes | None, offset: int) -> None:
        """Fold one record in; a null value is a tombstone."""
        try:
            parsed = parse_key(key)
        except ValueError:
            self.strange_keys.add(key)
            return
        if isinstance(parsed, HolderKey):
            self._apply_holder(parsed.flow, value)
        elif isinstance(parsed, NoteKey):
            self._apply_note(parsed, value)
        elif isinstance(parsed, ClaimKey):
            self._apply_claim(parsed, value, offset)
        else:
            self._apply_entry(parsed, value)

    def latest(self, lane: LaneId) -> LedgerEntry | None:
        """The entry of the highest generation that has one."""
        entries = self._entries.get(lane)
        return entries[max(entries)] if entries else None

    def generations(self, lane: LaneId) -> tuple[int, ...]:
        """The generations that have an entry, oldest first: all but the last may be tombstoned."""
        return tuple(sorted(self._entries.get(lane, ())))

    def claims(self, lane: LaneId, generation: int) -> tuple[Claim, ...]:
        """The claims of a generation, first one first."""
        return tuple(sorted(self._claims.get((lane, generation), {}).values(), key=lambda claim: claim.offset))

    def winner(self, lane: LaneId, generation: int) -> LedgerEntry | None:
        """Whose identity, start and rule a generation has: its entry, else its first claim (P1.4c)."""
        entry = self._entries.get(lane, {}).get(generation)
        if entry is not None:
            return entry
        claims = self.claims(lane, generation)
        return claims[0].entry if claims else None

    def lanes(self) -> tuple[LaneId, ...]:
        """All lanes with an entry or a claim."""
        return tuple(sorted({*self._entries, *(lane for lane, _ in self._claims)}))

    def holder(self, flow: str) -> Holder | None:
        return self._holders.get(flow)

    def notes(self, flow: str, kind: str) -> dict[str, bytes]:
        """What a job remembers of a flow, by subject. What it means is the job's own."""
        return {key.subject: value for key, value in self._notes.items() if (key.flow, key.kind) == (flow, kind)}

    def producers(self, flow: str) -> set[int]:
        """Every producer id under which a flow writes or ever wrote."""
        entries = (entry for lane, found in self._entries.items() if lane.flow == flow for entry in found.values())
        claims = (claim.entry for key, found in self._claims.items() if key[0].flow == flow for claim in found.values())
        return self.noted_producers(flow) | {entry.identity.producer_id for entry in (*entries, *claims)}

    def noted_producers(self, flow: str) -> set[int]:
        """Those that outlive the generations which wrote under them."""
        return {int(subject) for subject in self.notes(flow, PRODUCER_NOTE) if subject.isdecimal()}

    def _apply_note(self, key: NoteKey, value: bytes | None) -> None:
        if value is None:
            self._notes.pop(key, None)
        else:
            self._notes[key] = value

    def _apply_holder(self, flow: str, value: bytes | None) -> None:
        """The first claim holds until it is released or superseded; a claim that came later says nothing."""
        if value is None:
            return
        arrived = decode_holder(value)
        known = self._holders.get(flow)
        free = known is None or known.released
        own = known is not None and known.run == arrived.run
        taken = known is not None and arrived.supersedes == known.run
        # After compaction the winner's first claim may be gone, and a loser's that crashed still there: `held` settles it.
        settled = known is not None and arrived.held and not known.held
        if own or taken or settled or (free and not arrived.released):
            self._holders[flow] = arrived

    def _apply_claim(self, key: ClaimKey, value: bytes | None, offset: int) -> None:
        claims = self._claims.setdefault((key.lane, key.generation), {})
        if value is None:
            claims.pop(key.claim, None)
        elif key.claim not in claims:
            # A writer's own repeat of its claim does not lose it its place.
            claims[key.claim] = Claim(key.claim, offset, decode_entry(value))
        if not claims:
            del self._claims[key.lane, key.generation]

    def _apply_entry(self, key: EntryKey, value: bytes | None) -> None:
        entries = self._entries.setdefault(key.lane, {})
        if value is None:
            entries.pop(key.generation, None)
        else:
            entries[key.generation] = _further(entries.get(key.generation), decode_entry(value))
        if not entries:
            del self._entries[key.lane]


def _further(known: LedgerEntry | None, arrived: LedgerEntry) -> LedgerEntry:
    """The entry to believe of two of the same generation.

    Entries are written from acks in order (P3.6), so the one that is further on is true, whoever wrote it; a lower one
    that arrives later is a zombie's, or a slower racer's. Believing the lower one does no harm where attach counts, it
    only counts more; where it may not count (compacted sources, P8) it would repeat records. If the target really went
    back, attach sees so from the broker's own sequence (P2.4), not from here.
    Another identity in the same generation should not be (P1.4). The last write wins then: it is what compaction
    leaves, so all readers agree, and attach finds the conflict on the broker (P2.3b).
    """
    if known is None or known.identity != arrived.identity:
        return arrived
    return arrived if arrived.source_next >= known.source_next else known


def _encode(fields: dict[str, object]) -> bytes:
    return json.dumps({"version": LEDGER_VERSION, **fields}, separators=(",", ":"), ensure_ascii=False).encode()


def _decode(value: bytes, what: str) -> dict[str, Any]:
    try:
        fields = json.loads(value)
    except ValueError as fault:
        raise _unreadable(what, fault) from fault
    if not isinstance(fields, dict):
        raise _unreadable(what, TypeError("not a JSON object"))
    if fields.get("version") != LEDGER_VERSION:
        raise SetupError(
            f"the ledger holds a {what} of version {fields.get('version')!r}, this Heliograph reads version "
            f"{LEDGER_VERSION}: run the release that wrote it, or a newer one"
        )
    return fields


def _unreadable(what: str, fault: Exception) -> SetupError:
    return SetupError(f"the ledger holds a {what} that cannot be read ({type(fault).__name__}: {fault})")
