"""Offsets in a checkpoint of Spark's Structured Streaming, as text: read, moved to other topics and offsets, written again.

A batch's file has a version, a line of the query's own, and a line for each source: where the batch ended. Spark's Kafka source
writes topic, partition and the offset to read next; what other sources wrote is carried as it is. Must not know files or folders.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from heliograph.errors import SetupError

Place = tuple[str, int, int]
"""Topic, partition, the offset to read next."""
Move = Callable[[Place], Place]

_VERSION = "v1"
_SOURCES_FROM = 2
_ZERO = b"\x00"
"""Spark 2.1 could not read the first byte of a source's own file, so all later ones write one that means nothing."""


class Batch:
    """The offsets of one batch; `about` names it in an error."""

    def __init__(self, text: str, about: str) -> None:
        self._lines = text.splitlines()
        if len(self._lines) <= _SOURCES_FROM or self._lines[0] != _VERSION:
            head = self._lines[0] if self._lines else "nothing"
            raise SetupError(f"{about} begins with {head[:20]!r}: expected Spark's offsets of version {_VERSION}")

    def places(self) -> Iterable[Place]:
        for line in self._lines[_SOURCES_FROM:]:
            yield from _places(_kafka_offsets(line))

    def moved(self, move: Move) -> str:
        """The same batch elsewhere."""
        lines = self._lines[:_SOURCES_FROM] + [_moved(line, move) for line in self._lines[_SOURCES_FROM:]]
        return "\n".join(lines)


class Initial:
    """A Kafka source's own file: where the query began. `read` gives None for what other sources keep there."""

    def __init__(self, line: str) -> None:
        self._line = line

    @classmethod
    def read(cls, content: bytes) -> Initial | None:
        version, newline, line = content.removeprefix(_ZERO).partition(b"\n")
        if version != _VERSION.encode() or not newline:
            return None
        text = line.decode(errors="replace")
        return None if _kafka_offsets(text) is None else cls(text)

    def places(self) -> Iterable[Place]:
        return _places(_kafka_offsets(self._line))

    def moved(self, move: Move) -> bytes:
        return _ZERO + f"{_VERSION}\n{_moved(self._line, move)}".encode()


def _kafka_offsets(line: str) -> Mapping[str, Mapping[str, int]] | None:
    """None: a source of another kind, or one that had nothing yet."""
    try:
        found: Any = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or not found:
        return None
    return found if all(_is_partitions(value) for value in found.values()) else None


def _is_partitions(value: Any) -> bool:
    return isinstance(value, dict) and all(
        number.isdecimal() and type(offset) is int and offset >= 0 for number, offset in value.items()
    )


def _places(offsets: Mapping[str, Mapping[str, int]] | None) -> Iterable[Place]:
    for topic, partitions in (offsets or {}).items():
        yield from ((topic, int(number), offset) for number, offset in partitions.items())


def _moved(line: str, move: Move) -> str:
    offsets = _kafka_offsets(line)
    if offsets is None:
        return line
    found: dict[str, dict[str, int]] = {}
    for place in _places(offsets):
        topic, partition, offset = move(place)
        found.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)
