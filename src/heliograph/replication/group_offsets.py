"""Offsets of the source's groups on the target: which are set, which are left alone, and why, for each group and partition.

A group that has members on the target is its own master. An offset there goes forward to where the group stands on the source, and
back only if it is the one that we wrote last and the group itself went back on the source: whatever the target's own consumers
have read, they do not read again. Knows no brokers: `control.group_offsets` reads and writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import quote, unquote

from heliograph.replication.group_positions import NoPair, Pair, Placed

NOTE_KIND = "groups"
_NOTE_VERSION = 1
_DESERTED = {"", "Empty", "Dead"}
_PROTOCOLS = {"", "consumer"}
_KINDS = {"", "classic", "consumer"}
_SHARE = "share"
NOWHERE = -1

Place = tuple[str, int]
"""A remote topic and a partition."""


class State(StrEnum):
    """How a group stands in one partition, in words that status shows."""

    IN_STEP = "in step"
    WAITS = "waits for the copy"
    SET = "to be set"
    OFF = "not synced"
    LIVE = "live on the target"
    AHEAD = "ahead on the target"
    NOT_KNOWN = "not known"
    REFUSED = "refused"


@dataclass(frozen=True)
class Standing:
    """A group on the target: its state and kind as brokers list them, its offsets, or why they may not be read."""

    state: str = ""
    protocol: str = ""
    kind: str = ""
    offsets: Mapping[Place, int] = field(default_factory=dict)
    refusal: str = ""

    @property
    def is_live(self) -> bool:
        return self.state not in _DESERTED

    def is_strange(self, is_share: bool) -> bool:
        """A group of another kind has the name."""
        if is_share:
            return self.kind not in ("", _SHARE)
        return self.protocol not in _PROTOCOLS or self.kind not in _KINDS


@dataclass(frozen=True)
class Written:
    """What we wrote last: the offset there, and where the group stood on the source; and the same of what we wrote before."""

    offset: int
    committed: int
    before: int | None = None
    before_committed: int | None = None

    def is_ours(self, offset: int) -> bool:
        """A crash between the note and the commit leaves what was there before."""
        return offset in (self.offset, self.before)

    def stood(self, offset: int) -> int:
        """Where the group stood on the source when we wrote this offset, which is ours."""
        if offset == self.offset or self.before_committed is None:
            return self.committed
        return self.before_committed


Note = Mapping[Place, Written]


@dataclass(frozen=True)
class GroupState:
    """One group in one partition: where it stands on both sides, and what that means."""

    group: str
    topic: str
    remote: str
    partition: int
    committed: int
    translated: int | None
    on_target: int | None
    state: State
    reason: str


@dataclass(frozen=True)
class Move:
    """An offset to set on the target."""

    remote: str
    partition: int
    to: int
    metadata: str
    committed: int
    on_target: int | None
    why: str


@dataclass(frozen=True)
class SetOffsets:
    """The moves of one group. `after` is what the note must say."""

    group: str
    moves: tuple[Move, ...]
    after: Note
    is_share: bool = False
    routine: bool = False

    @property
    def subject(self) -> str:
        return f"group {self.group}"

    @property
    def what(self) -> str:
        told = (
            f"{move.remote}-{move.partition} to {move.to}"
            + ("" if move.on_target is None else f" (from {move.on_target})")
            for move in self.moves
        )
        return f"set its offset on the target: {', '.join(told)}"

    @property
    def why(self) -> str:
        return "; ".join(dict.fromkeys(move.why for move in self.moves))


def plan_group_offsets(
    placed: Iterable[Placed], target: Mapping[str, Standing], notes: Mapping[str, Note], enabled: bool = True
) -> tuple[list[GroupState], list[SetOffsets]]:
    """The state of every group and partition, and the offsets to set."""
    states: list[GroupState] = []
    moves: dict[str, list[Move]] = {}
    shares: set[str] = set()
    for place in placed:
        if place.is_share:
            shares.add(place.group)
        there = target.get(place.group, Standing())
        written = notes.get(place.group, {}).get((place.remote, place.partition))
        state, reason = _judge(place, there, written)
        if state is State.SET and not enabled:
            state, reason = State.OFF, f"sync.group.offsets.enabled = false; {reason}"
        states.append(_state(place, there, state, reason))
        if state is State.SET and isinstance(place.pair, Pair):
            moves.setdefault(place.group, []).append(_move(place, place.pair, there, reason))
    return states, [
        SetOffsets(group, tuple(rows), _noted(rows, notes.get(group, {})), group in shares)
        for group, rows in sorted(moves.items())
    ]


def _judge(place: Placed, there: Standing, written: Written | None) -> tuple[State, str]:
    if there.is_live:
        return State.LIVE, f"it has members there ({there.state}), which commit for themselves"
    if there.is_strange(place.is_share):
        return State.REFUSED, f"a {there.kind or there.protocol} group has this name there"
    if there.refusal:
        return State.REFUSED, there.refusal
    if isinstance(place.pair, NoPair):
        return State.NOT_KNOWN, place.pair.reason
    have = there.offsets.get((place.remote, place.partition))
    to = place.pair.downstream
    if have is None:
        return State.SET, "it has no offset there"
    if have < to:
        return State.SET, "the group read on, on the source"
    if have == to:
        return _in_step(place.pair)
    return _ahead(place, have, written)


def _in_step(pair: Pair) -> tuple[State, str]:
    if pair.behind:
        return State.WAITS, f"the group is {pair.behind} offsets ahead of the copy"
    return State.IN_STEP, ""


def _ahead(place: Placed, have: int, written: Written | None) -> tuple[State, str]:
    """The offset there lies behind that of the source's group."""
    if written is not None and written.is_ours(have):
        if place.committed < written.stood(have):
            return State.SET, "the group went back, on the source, and the offset there is ours"
        if have > place.reach:
            return State.SET, "the offset there is ours and lies beyond what is copied"
        return State.WAITS, "what was copied once is copied again"
    return State.AHEAD, "it was read or set there by others, and is not sent back"


def _state(place: Placed, there: Standing, state: State, reason: str) -> GroupState:
    return GroupState(
        group=place.group,
        topic=place.topic,
        remote=place.remote,
        partition=place.partition,
        committed=place.committed,
        translated=place.pair.downstream if isinstance(place.pair, Pair) else None,
        on_target=there.offsets.get((place.remote, place.partition)),
        state=state,
        reason=reason,
    )


def _move(place: Placed, pair: Pair, there: Standing, reason: str) -> Move:
    return Move(
        remote=place.remote,
        partition=place.partition,
        to=pair.downstream,
        metadata=place.metadata,
        committed=place.committed,
        on_target=there.offsets.get((place.remote, place.partition)),
        why=reason,
    )


def _noted(moves: Iterable[Move], note: Note) -> Note:
    """What to remember before the moves are made."""
    after = dict(note)
    for move in moves:
        known = note.get((move.remote, move.partition))
        have = move.on_target
        before = (have, known.stood(have)) if known is not None and have is not None and known.is_ours(have) else ()
        after[move.remote, move.partition] = Written(move.to, move.committed, *before)
    return after


def unread_group(group: str, reason: str) -> GroupState:
    """A group of which no partition is known."""
    return GroupState(group, "", "", NOWHERE, NOWHERE, None, None, State.NOT_KNOWN, reason)


def summary(states: Iterable[GroupState]) -> str:
    """`12 in step, 3 live on the target`, as status shows it."""
    counts: dict[str, int] = {}
    for row in states:
        counts[row.state] = counts.get(row.state, 0) + 1
    return ", ".join(f"{counts[state]} {state}" for state in State if state in counts)


# -- the note in the ledger ---------------------------------------------------------------------------------------------


def note_subject(group: str) -> str:
    """A group may be called anything; a ledger key ends with `#` and its subject."""
    return quote(group, safe="")


def group_of(subject: str) -> str:
    return unquote(subject)


def encode_note(note: Note) -> bytes:
    """Versioned JSON."""
    topics: dict[str, dict[str, list[int | None]]] = {}
    for (remote, partition), written in sorted(note.items()):
        row = [written.offset, written.committed, written.before, written.before_committed]
        topics.setdefault(remote, {})[str(partition)] = row
    fields = {"version": _NOTE_VERSION, "written": topics}
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def _written(row: Sequence[int | None]) -> Written:
    """Notes of earlier versions have no last number."""
    offset, committed, *before = row
    if offset is None or committed is None:
        raise ValueError(row)
    return Written(int(offset), int(committed), *(None if number is None else int(number) for number in before))


def decode_note(value: bytes) -> Note:
    """What cannot be read is not remembered: then nothing goes back, which does no harm."""
    try:
        fields = json.loads(value)
        if fields["version"] != _NOTE_VERSION:
            return {}
        return {
            (str(remote), int(partition)): _written(row)
            for remote, rows in fields["written"].items()
            for partition, row in rows.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return {}
