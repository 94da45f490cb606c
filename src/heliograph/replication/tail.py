"""Where another mirror stopped: the tail of a remote partition against the source (take-over from MirrorMaker 2).

MirrorMaker 2 stores its progress once a minute and writes in order, so what it wrote after that lies at the end of the
remote partition: in order, and again from the stored offset for every time it was killed and started. The position is the
longest stretch of the source, from the stored offset on, of which every record is there. So a chance equality further on
loses nothing, and a repeat of its own does not lead back.

Records are compared by `mark`: timestamp, key and value. Headers are left out, because Connect's default converter
rewrites them. Reads nothing: `kafka.tails` brings both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from struct import Struct
from typing import NamedTuple

_LOOK_AHEAD = 32
_HEAD = Struct(">qqq")
_NULL = -1
_DIGEST_BYTES = 16


class SourceRecord(NamedTuple):
    """A record of the source, as far as it is compared."""

    offset: int
    mark: bytes
    leader_epoch: int
    optional: bool = False
    """Written in a transaction: a mirror that reads committed records only has passed it over if it was aborted."""


@dataclass(frozen=True)
class Tail:
    """The last records of a remote partition; `whole`: there are none before them."""

    marks: Sequence[bytes]
    whole: bool


@dataclass(frozen=True)
class Stopped:
    """Everything before the source offset `position` is on the target.

    `beyond`: how many records of it were not known to be. A position at or before what was known to be copied: the target
    has lost records since.
    """

    position: int
    leader_epoch: int
    beyond: int


@dataclass(frozen=True)
class LookFurther:
    """The tail does not reach back to the lower bound: more of it must be read."""


@dataclass(frozen=True)
class Unlike:
    """No record of the tail is one of the source's."""


def mark(timestamp: int | None, key: bytes | None, value: bytes | None) -> bytes:
    """What a record is recognised by; no timestamp where the target puts its own."""
    sizes = (_NULL if part is None else len(part) for part in (key, value))
    head = _HEAD.pack(_NULL if timestamp is None else timestamp, *sizes)
    return blake2b(head + (key or b"") + (value or b""), digest_size=_DIGEST_BYTES).digest()


def find_end(
    tail: Tail, source: Sequence[SourceRecord], copied: int | None, may_miss: bool = False
) -> Stopped | LookFurther | Unlike:
    """The position that the tail proves.

    `copied`: the source offset up to which everything is known to be on the target (None: nothing is known). `source`
    begins a little before it. `may_miss`: a side is compacted, so records between two that are there may be gone.
    """
    found = _align(tail.marks, source)
    first = _first_unknown(source, found, copied)
    reaches_back = any(index < first for index in found) if first else first in found
    if not tail.whole and not reaches_back:
        return LookFurther()
    if not found:
        return Unlike()
    if not may_miss and reaches_back and _lacks_known(source, found, first):
        first = min(found)
    last = _covered(found, source, first, may_miss)
    if last is None:
        assert copied is not None  # noqa: S101  without a bound the first record found is covered
        return Stopped(copied + 1, -1, 0)
    beyond = sum(1 for index in found if first <= index <= last and (copied is None or source[index].offset > copied))
    return Stopped(source[last].offset + 1, source[last].leader_epoch, beyond)


def _first_unknown(source: Sequence[SourceRecord], found: set[int], copied: int | None) -> int:
    """The first record of which it is not known whether it was copied."""
    if copied is None:
        return min(found, default=0)
    return next((index for index, record in enumerate(source) if record.offset > copied), len(source))


def _lacks_known(source: Sequence[SourceRecord], found: set[int], first: int) -> bool:
    """The target lost the last record that was stored as copied, though it has some before it."""
    certain = next((index for index in range(first - 1, -1, -1) if not source[index].optional), None)
    return certain is not None and certain not in found and min(found) < certain


def _covered(found: set[int], source: Sequence[SourceRecord], first: int, may_miss: bool) -> int | None:
    """The last record found before the first one that is missing."""
    last = None
    for index in range(first, len(source)):
        if index in found:
            last = index
        elif not (may_miss or source[index].optional):
            break
    return last


def _align(marks: Sequence[bytes], source: Sequence[SourceRecord]) -> set[int]:
    """Which source records the tail holds: runs that go on one by one, each beginning where it fits longest."""
    places: dict[bytes, list[int]] = {}
    for index, record in enumerate(source):
        places.setdefault(record.mark, []).append(index)
    found: set[int] = set()
    at: int | None = None
    for number, sought in enumerate(marks):
        at = _following(source, at, sought)
        if at is None:
            at = _best(marks, number, source, places)
        if at is not None:
            found.add(at)
    return found


def _following(source: Sequence[SourceRecord], at: int | None, sought: bytes) -> int | None:
    """The next record if it is the one sought; optional ones between may be passed over."""
    if at is None:
        return None
    for index in range(at + 1, len(source)):
        if source[index].mark == sought:
            return index
        if not source[index].optional:
            return None
    return None


def _best(
    marks: Sequence[bytes], number: int, source: Sequence[SourceRecord], places: Mapping[bytes, Sequence[int]]
) -> int | None:
    """Of the places that a run may begin at the one it fits longest; of equals the first, which loses nothing."""
    best, longest = None, 0
    for index in places.get(marks[number], ()):
        length = _run(marks, number, source, index)
        if length > longest:
            best, longest = index, length
        if length == _LOOK_AHEAD:
            break
    return best


def _run(marks: Sequence[bytes], number: int, source: Sequence[SourceRecord], index: int) -> int:
    at: int | None = index
    length = 1
    for sought in islice(marks, number + 1, number + _LOOK_AHEAD):
        at = _following(source, at, sought)
        if at is None:
            break
        length += 1
    return length
