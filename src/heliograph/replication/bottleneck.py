"""What keeps a flow from copying faster, and what of it somebody paused, in words. Decided from what its slots' time goes to, from
its lag, and from its lanes' states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

_BEHIND_SECONDS = 1.0
_PAUSED = "paused"


class Bottleneck(StrEnum):
    """The words that people read."""

    IDLE = "nothing to do"
    SOURCE = "waiting for source"
    TARGET = "waiting for target"
    THROTTLED = "throttled"
    BUSY = "the mirror itself is busy"
    PAUSED = "paused"


_WORDS = {
    "source": Bottleneck.SOURCE,
    "target": Bottleneck.TARGET,
    "throttled": Bottleneck.THROTTLED,
    "busy": Bottleneck.BUSY,
}


def bottleneck(shares: Mapping[str, float], lag_s: float, records_per_s: float, is_paused: bool = False) -> Bottleneck:
    """`shares` of a flow's time, by kind (metrics/meters.py); `lag_s` of those of its lanes that follow.

    A flow that keeps up waits for its source to get new records, or has nothing to do; where a part of it is paused, that is
    what keeps records back. One that is behind is held up by what takes most of its time.
    """
    if lag_s <= _BEHIND_SECONDS:
        if is_paused:
            return Bottleneck.PAUSED
        return Bottleneck.SOURCE if records_per_s > 0 else Bottleneck.IDLE
    kind = max(_WORDS, key=lambda name: shares.get(name, 0.0))
    return _WORDS[kind] if shares.get(kind, 0.0) > 0 else Bottleneck.IDLE


def held_words(lanes: Iterable[tuple[str, str]]) -> str:
    """What of a flow is paused, by the topic and the state of each of its lanes; empty: nothing.

    >>> held_words([("orders", "paused"), ("orders", "paused"), ("clicks", "following")])
    '1 topic paused'
    """
    states: dict[str, list[str]] = {}
    for topic, state in lanes:
        states.setdefault(topic, []).append(state)
    whole = [topic for topic, mine in states.items() if set(mine) == {_PAUSED}]
    if whole and len(whole) == len(states):
        return _PAUSED
    single = sum(mine.count(_PAUSED) for topic, mine in states.items() if topic not in whole)
    parts = [_many(len(whole), "topic")] * bool(whole) + [_many(single, "partition")] * bool(single)
    return f"{' and '.join(parts)} {_PAUSED}" if parts else ""


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
