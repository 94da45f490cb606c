"""What a broker remembers of one reader (KIP-227), so that partitions that did not change are in neither request nor answer.

A full request opens a session; later ones name what is new, changed or no longer wanted, and answers hold only partitions with
something to say: records, an error, another end. Whenever it is not certain that both sides remember the same, the next
request is full again. A session that is no longer used is forgotten by the broker after two minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from heliograph.wire.fetch_codec import FetchPartition, FetchTopic

TopicKey = tuple[str, bytes]
"""Name and id: which of them is sent, the version decides."""

TopicPart = tuple[TopicKey, int]

_FIRST = 0
_LARGEST = 0x7FFF_FFFF
FORGOTTEN = frozenset({70, 71, 106})
"""FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR: the next request is full."""


@dataclass(frozen=True, slots=True)
class SessionStep:
    """One request of a session."""

    session_id: int
    epoch: int
    topics: list[FetchTopic]
    forgotten: list[FetchTopic]
    """Of each partition only its number counts."""


class FetchSession:
    """`step` gives the next request, `answered` or `lost` says what became of it."""

    def __init__(self) -> None:
        self._id = 0
        self._epoch = _FIRST
        self._known: dict[TopicPart, FetchPartition] = {}

    def step(self, wanted: Mapping[TopicPart, FetchPartition]) -> SessionStep:
        """A request after which the broker remembers exactly `wanted`, in this order where it is full."""
        if self._epoch == _FIRST:
            self._known = dict(wanted)
            return SessionStep(self._id, _FIRST, _by_topic(wanted.items()), [])
        return self.change(wanted, [key for key in self._known if key not in wanted])

    @property
    def is_new(self) -> bool:
        """The next request is full: the broker may remember something else than we do, or nothing."""
        return self._epoch == _FIRST

    def change(self, wanted: Mapping[TopicPart, FetchPartition], gone: Iterable[TopicPart]) -> SessionStep:
        """A request after which the broker remembers besides what it knows `wanted`, without `gone`; not where it is new."""
        known = self._known
        changed = [(key, part) for key, part in wanted.items() if (was := known.get(key)) is not part and was != part]
        left = [(key, known.pop(key)) for key in gone if key in known]
        known.update(changed)
        return SessionStep(self._id, self._epoch, _by_topic(changed), _by_topic(left))

    def answered(self, session_id: int) -> None:
        """The broker took the step; with id 0 it has no room for a session, and the next request is full too."""
        self._id = session_id
        self._epoch = _FIRST if session_id == 0 else self._epoch % _LARGEST + 1

    def __contains__(self, key: TopicPart) -> bool:
        return key in self._known

    def lost(self) -> None:
        """An answer did not come, or the broker has forgotten: begin again, in place of the old session."""
        self._epoch = _FIRST


def _by_topic(parts: Iterable[tuple[TopicPart, FetchPartition]]) -> list[FetchTopic]:
    grouped: dict[TopicKey, list[FetchPartition]] = {}
    for (topic, _), part in parts:
        grouped.setdefault(topic, []).append(part)
    return [FetchTopic(name, topic_id, several) for (name, topic_id), several in grouped.items()]
