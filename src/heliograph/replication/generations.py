"""Claims and entries to the generation in force (facts/exactly-once.md, P1).

Knows the ledger's keys and values and folds its records into a book. Must not know the topic it is kept in, nor who
reads and writes it: `kafka.ledger` does that. Whatever a reader has missed by compaction, it comes to the same answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from heliograph.errors import SetupError
from heliograph.model.lanes import Identity, LaneId, LedgerEntry, Rule, Scanned
from heliograph.replication.ledger_keys import PRODUCER_NOTE, ClaimKey, EntryKey, HolderKey, NoteKey, parse_key

LEDGER_VERSION = 1


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
    machine: str = ""
    """Where its process number means something; whoever is there too can see whether it lives."""


@dataclass(frozen=True)
class Claim:
    """A claim as it lies in the ledger."""

    claim: str
    offset: int
    entry: LedgerEntry


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
            "follows": entry.follows,
            "uncounted": entry.uncounted,
            "mm2_offset": entry.mm2_offset,
            "scanned": entry.scanned,
        }
    )


def decode_entry(value: bytes) -> LedgerEntry:
    """The entry that `encode_entry` wrote; fields it does not know are passed over."""
    fields = _decode(value, "an entry")
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
            follows=int(fields.get("follows", -1)),
            uncounted=bool(fields.get("uncounted", False)),
            mm2_offset=int(fields.get("mm2_offset", -1)),
            scanned=None if fields.get("scanned") is None else Scanned(*map(int, fields["scanned"])),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as fault:
        raise _unreadable("an entry", fault) from fault


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
            "machine": holder.machine,
        }
    )


def decode_holder(value: bytes) -> Holder:
    """The holder that `encode_holder` wrote; fields it does not know are passed over."""
    fields = _decode(value, "a holder")
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
            machine=str(fields.get("machine", "")),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as fault:
        raise _unreadable("a holder", fault) from fault


class LedgerBook:
    """The ledger's records, folded in the order of their offsets."""

    def __init__(self) -> None:
        self._entries: dict[LaneId, dict[int, LedgerEntry]] = {}
        self._claims: dict[LaneId, dict[int, dict[str, Claim]]] = {}
        self._holders: dict[str, Holder] = {}
        self._notes: dict[NoteKey, bytes] = {}
        self.strange_keys: set[str] = set()
        """Keys of no kind known here, such as a newer Heliograph may write; an event names them."""

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
        """The entry in force: that of the highest generation.

        Where that one is uncounted and has written nothing, an older one may be further: its writer continued while
        another attempt opened a generation and ended. Then its position is in force, under the highest number.
        """
        entries = self._entries.get(lane)
        if not entries:
            return None
        newest = entries[max(entries)]
        furthest = newest
        for number in sorted(entries, reverse=True):
            entry = entries[number]
            if _is_of_other_topics(entry, newest):
                break
            if entry.source_next > furthest.source_next:
                furthest = entry
            if not entry.uncounted or entry.has_written or entry.went_back:
                break
        return furthest if furthest is newest else replace(furthest, generation=newest.generation)

    def newest(self, lane: LaneId) -> int:
        """The highest generation that has an entry, -1 where none has."""
        return max(self._entries.get(lane, (-1,)))

    def generations(self, lane: LaneId) -> tuple[int, ...]:
        """The generations that have an entry, oldest first: all but the last may be tombstoned."""
        return tuple(sorted(self._entries.get(lane, ())))

    def claims(self, lane: LaneId, generation: int) -> tuple[Claim, ...]:
        """The claims of a generation, first one first."""
        found = self._claims.get(lane, {}).get(generation, {})
        return tuple(sorted(found.values(), key=lambda claim: claim.offset))

    def winner(self, lane: LaneId, generation: int) -> LedgerEntry | None:
        """Whose identity, start and rule a generation has: its entry, else its first claim (P1.4c)."""
        entry = self._entries.get(lane, {}).get(generation)
        if entry is not None:
            return entry
        claims = self.claims(lane, generation)
        return claims[0].entry if claims else None

    def opened_as(self, wanted: LedgerEntry) -> LedgerEntry | None:
        """What a claimed generation is: its entry, or its first claim; None where that claim is outlived.

        A claim is outlived when its lane was carried further than the position that it follows (P1.4).
        """
        winner = self.winner(wanted.lane, wanted.generation)
        has_entry = wanted.generation in self._entries.get(wanted.lane, {})
        return winner if has_entry or winner is None or winner.follows >= wanted.follows else None

    def moot_claims(self, lane: LaneId, generation: int) -> tuple[ClaimKey, ...]:
        """Claims of generations up to this one, which has an entry: nobody adopts them any more."""
        return tuple(key for key in self.claim_keys(lane) if key.generation <= generation)

    def claim_keys(self, lane: LaneId) -> tuple[ClaimKey, ...]:
        """Of every claim of a lane."""
        found = self._claims.get(lane, {})
        return tuple(ClaimKey(lane, number, claim) for number, claims in found.items() for claim in claims)

    def lanes(self) -> tuple[LaneId, ...]:
        """All lanes with an entry or a claim."""
        return tuple(sorted({*self._entries, *self._claims}))

    def holder(self, flow: str) -> Holder | None:
        return self._holders.get(flow)

    def notes(self, flow: str, kind: str) -> dict[str, bytes]:
        """What a job remembers of a flow, by subject. What it means is the job's own."""
        return {key.subject: value for key, value in self._notes.items() if (key.flow, key.kind) == (flow, kind)}

    def producers(self, flow: str) -> set[int]:
        """Every producer id under which a flow writes or ever wrote."""
        entries = (entry for lane, found in self._entries.items() if lane.flow == flow for entry in found.values())
        claims = (
            claim.entry
            for lane, numbers in self._claims.items()
            if lane.flow == flow
            for found in numbers.values()
            for claim in found.values()
        )
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
        numbers = self._claims.setdefault(key.lane, {})
        claims = numbers.setdefault(key.generation, {})
        if value is None:
            claims.pop(key.claim, None)
        elif key.claim not in claims:
            # A writer's own repeat of its claim does not lose it its place.
            claims[key.claim] = Claim(key.claim, offset, decode_entry(value))
        if not claims:
            del numbers[key.generation]
        if not numbers:
            del self._claims[key.lane]

    def _apply_entry(self, key: EntryKey, value: bytes | None) -> None:
        entries = self._entries.setdefault(key.lane, {})
        if value is None:
            entries.pop(key.generation, None)
        else:
            entries[key.generation] = _further(entries.get(key.generation), decode_entry(value))
        if not entries:
            del self._entries[key.lane]


def _is_of_other_topics(entry: LedgerEntry, other: LedgerEntry) -> bool:
    """One of both topics was replaced between the two: their positions cannot be compared."""
    return (entry.source_topic_id, entry.target_topic_id) != (other.source_topic_id, other.target_topic_id)


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
    except (ValueError, RecursionError) as fault:
        raise _unreadable(what, fault) from fault
    if not isinstance(fields, dict):
        raise _unreadable(what, TypeError("not a JSON object"))
    if fields.get("version") != LEDGER_VERSION:
        raise SetupError(
            f"the ledger holds {what} of version {fields.get('version')!r}, this Heliograph reads version "
            f"{LEDGER_VERSION}: run the release that wrote it, or a newer one"
        )
    return fields


def _unreadable(what: str, fault: Exception) -> SetupError:
    return SetupError(f"the ledger holds {what} that cannot be read ({type(fault).__name__}: {fault})")
