"""What keeps a flow from copying faster, in words. Decided from what its slots' time goes to and from its lag."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

_BEHIND_SECONDS = 1.0


class Bottleneck(StrEnum):
    """The words that people read."""

    IDLE = "nothing to do"
    SOURCE = "waiting for source"
    TARGET = "waiting for target"
    THROTTLED = "throttled"
    BUSY = "the mirror itself is busy"


_WORDS = {
    "source": Bottleneck.SOURCE,
    "target": Bottleneck.TARGET,
    "throttled": Bottleneck.THROTTLED,
    "busy": Bottleneck.BUSY,
}


def bottleneck(shares: Mapping[str, float], lag_s: float, records_per_s: float) -> Bottleneck:
    """`shares` of a flow's time, by kind (metrics/meters.py); `lag_s` of those of its lanes that follow.

    A flow that keeps up waits for its source to get new records, or has nothing to do. One that is behind is held up by what
    takes most of its time.
    """
    if lag_s <= _BEHIND_SECONDS:
        return Bottleneck.SOURCE if records_per_s > 0 else Bottleneck.IDLE
    kind = max(_WORDS, key=lambda name: shares.get(name, 0.0))
    return _WORDS[kind] if shares.get(kind, 0.0) > 0 else Bottleneck.IDLE
