"""Two streams of records that should be equal: where they are not, and what happened there, in words.

Pure: records come in as chunks of (offset, content), sentences go out. Chunks are compared whole, so equal streams cost
almost nothing; only where they differ is a window of both looked at record by record. Must not know where records come
from. The counterpart is `compare`, which reads both sides from brokers.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

Headers = tuple[tuple[str, bytes | None], ...]
Content = tuple[int, bytes | None, bytes | None, Headers | None]
"""Timestamp, key, value, headers: all that must survive a copy."""
Chunk = tuple[Sequence[int], Sequence[Content]]
"""Offsets and contents, of equal length."""

FIELDS = ("timestamp", "key", "value", "headers")

_WINDOW = 256
"""How far ahead both sides are searched for the place where they agree again."""
_AGREE = 8
"""So many equal records in a row make a place of agreement; one could be chance."""
_REMEMBERED = 500
"""So many records back a repeat is recognised as one."""
_WINDOW_BYTES = 64 << 20
"""Large records make the window shorter."""


@dataclass(frozen=True)
class Record:
    """One record as a client saw it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None


@dataclass(frozen=True)
class Finding:
    """One difference: the source record's place in its partition (from 0), a sentence, and the records themselves."""

    index: int
    what: str
    source: Record | None
    target: Record | None


class Side:
    """One stream with a buffer in front: what is not yet compared."""

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self._chunks = chunks
        self.ended = False
        self.index = 0
        self.offsets: list[int] = []
        self.contents: list[Content] = []

    def fill(self, count: int) -> None:
        """Have `count` records in the buffer, or all that are left, or as many as memory allows."""
        while len(self.contents) < count and not self.ended and self._bytes() < _WINDOW_BYTES:
            chunk = next(self._chunks, None)
            if chunk is None:
                self.ended = True
            else:
                self.offsets.extend(chunk[0])
                self.contents.extend(chunk[1])

    def _bytes(self) -> int:
        return sum(len(value) for _, _, value, _ in self.contents if value)

    def drop(self, count: int) -> None:
        del self.offsets[:count]
        del self.contents[:count]
        self.index += count

    def record(self, place: int | None) -> Record | None:
        if place is None or place >= len(self.contents):
            return None
        return Record(self.offsets[place], *self.contents[place])


@dataclass
class Alignment:
    """Walks two streams in step. `records` counts the source records compared, `findings` what was not equal."""

    source: Side
    target: Side
    limit: int = 20
    prefix: bool = False
    """The target may go on after the source's last record: a mirror that still runs."""
    records: int = 0
    findings: list[Finding] = field(default_factory=list)
    _memory: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def step(self) -> bool:
        """Compare what is in both buffers; False at the end of both, or when `limit` findings are made."""
        source, target = self.source, self.target
        source.fill(1)
        target.fill(1)
        at_end = not source.contents and (self.prefix or not target.contents)
        if at_end or len(self.findings) >= self.limit:
            return False
        equal = _equal_prefix(source.contents, target.contents)
        if equal:
            self._advance(equal, equal)
        else:
            source.fill(_WINDOW + _AGREE)
            target.fill(_WINDOW + _AGREE)
            self._explain_difference()
        return True

    def _advance(self, of_source: int, of_target: int) -> None:
        source = self.source
        for place in range(max(0, of_source - _REMEMBERED), of_source):
            # The hash and not the record: what is remembered must not hold memory.
            self._memory.append((source.index + place, source.offsets[place], hash(_hashable(source.contents[place]))))
        source.drop(of_source)
        self.target.drop(of_target)
        self.records += of_source

    def _explain_difference(self) -> None:
        agreed = self._agree_again()
        if agreed is None:
            of_source, of_target = min(_WINDOW, len(self.source.contents)), min(_WINDOW, len(self.target.contents))
            self._find(0, self._describe_stretch(of_source, of_target), 0, 0)
        else:
            of_source, of_target = agreed
            self._explain(
                [_hashable(content) for content in self.source.contents[:of_source]],
                [_hashable(content) for content in self.target.contents[:of_target]],
            )
        self._advance(of_source, of_target)

    def _describe_stretch(self, of_source: int, of_target: int) -> str:
        if not of_source:
            return f"the target has records from offset {self.target.offsets[0]} on that the source does not have"
        if not of_target:
            return f"source record {self._name(0)} and the {of_source - 1} after it are missing on the target"
        return f"from source record {self._name(0)} on, {of_source} records have no counterpart in order on the target"

    def _agree_again(self) -> tuple[int, int] | None:
        """How many records to pass on either side, as few as possible, so that both agree from there."""
        ours, theirs = len(self.source.contents), len(self.target.contents)
        for passed in range(1, min(2 * _WINDOW, ours + theirs) + 1):
            for of_source in range(max(0, passed - min(theirs, _WINDOW)), min(passed, ours, _WINDOW) + 1):
                if self._agree(of_source, passed - of_source):
                    return of_source, passed - of_source
        return None

    def _agree(self, of_source: int, of_target: int) -> bool:
        ours = self.source.contents[of_source : of_source + _AGREE]
        length = len(ours) if self.prefix and self.source.ended else _AGREE
        return ours == self.target.contents[of_target : of_target + length]

    def _explain(self, ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> None:
        if len(ours) != len(theirs):
            self._explain_lengths(ours, theirs)
        elif Counter(ours) == Counter(theirs):
            self._explain_order(ours, theirs)
        else:
            for place in range(len(ours)):
                if ours[place] != theirs[place]:
                    self._changed(place)

    def _explain_order(self, ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> None:
        moved = [place for place in range(len(ours)) if ours[place] != theirs[place]]
        first, last = self._name(moved[0]), self._name(moved[-1])
        if len(moved) == 2:
            what = f"source records {first} and {last} are swapped on the target"
        else:
            what = f"source records {first} to {last} are in another order on the target"
        self._find(moved[0], what, moved[0], moved[0])

    def _changed(self, place: int) -> None:
        pair = zip(FIELDS, self.source.contents[place], self.target.contents[place], strict=True)
        fields = " and ".join(name for name, ours, theirs in pair if ours != theirs)
        at = self.target.offsets[place]
        self._find(place, f"source record {self._name(place)} has another {fields} on the target", place, place, at)

    def _explain_lengths(self, ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> None:
        left = Counter(theirs)
        for place, content in enumerate(ours):
            if left[content]:
                left[content] -= 1
            else:
                self._find(place, f"source record {self._name(place)} is missing on the target", place, None)
        known = Counter(ours)
        for place, content in enumerate(theirs):
            if known[content]:
                known[content] -= 1
            else:
                self._extra(place, content, ours)

    def _extra(self, place: int, content: Hashable, ours: Sequence[Hashable]) -> None:
        at = self.target.offsets[place]
        original = self._seen_before(content)
        if original is None and content in ours:
            original = self._name(ours.index(content))
        if original is None:
            what = f"the target has a record at offset {at} that the source does not have here"
        else:
            what = f"source record {original} is repeated on the target at offset {at}"
        self._find(0, what, None, place)

    def _seen_before(self, content: Hashable) -> str | None:
        wanted = hash(content)
        for index, offset, remembered in reversed(self._memory):
            if remembered == wanted:
                return _place_name(index, offset)
        return None

    def _name(self, place: int) -> str:
        return _place_name(self.source.index + place, self.source.offsets[place])

    def _find(self, place: int, what: str, source: int | None, target: int | None, at: int | None = None) -> None:
        if len(self.findings) < self.limit:
            sentence = what if at is None else f"{what} (offset {at} there)"
            pair = self.source.record(source), self.target.record(target)
            self.findings.append(Finding(self.source.index + place, sentence, *pair))


def _equal_prefix(ours: list[Content], theirs: list[Content]) -> int:
    count = min(len(ours), len(theirs))
    if ours[:count] == theirs[:count]:
        return count
    return next(place for place in range(count) if ours[place] != theirs[place])


def _hashable(content: Content) -> Hashable:
    timestamp, key, value, headers = content
    return (timestamp, key, value, None if headers is None else tuple(headers))


def _place_name(index: int, offset: int) -> str:
    return f"{index} (offset {offset})"
