"""Which faults are made when: a pure function of the seed and the length."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

LEAD_SECONDS = 5.0
"""Records flow for so long before the first fault."""
PAUSE_SECONDS = (4.0, 14.0)
"""Between the beginnings of two faults."""
BROKERS = (1, 2, 3)


@dataclass(frozen=True)
class Kind:
    """One kind of fault: on which part, how often beside others, and how long it lasts."""

    name: str
    part: str
    """What must not be hit twice at a time: a cluster or the mirror."""
    weight: int
    lasts: tuple[float, float]
    may_repeat: bool
    """Whether a compacted lane may repeat after it: an attempt ended without a last word."""


KINDS: Sequence[Kind] = (
    Kind("kill -9 of a source broker", "source", 3, (1.0, 6.0), False),
    Kind("a source broker frozen", "source", 3, (3.0, 15.0), False),
    Kind("clean restart of a source broker", "source", 2, (0.0, 1.0), False),
    Kind("leaders of the source moved", "source", 2, (0.0, 0.0), False),
    Kind("kill -9 of the source's controller", "source", 1, (1.0, 5.0), False),
    Kind("lines to a source broker cut", "source", 2, (0.0, 0.0), False),
    Kind("lines to a source broker silent", "source", 2, (3.0, 15.0), False),
    Kind("kill -9 of a target broker", "target", 3, (1.0, 6.0), True),
    Kind("a target broker frozen", "target", 3, (3.0, 15.0), True),
    Kind("clean restart of a target broker", "target", 2, (0.0, 1.0), True),
    Kind("leaders of the target moved", "target", 2, (0.0, 0.0), True),
    Kind("kill -9 of the target's controller", "target", 1, (1.0, 5.0), True),
    Kind("lines to a target broker cut", "target", 2, (0.0, 0.0), True),
    Kind("lines to a target broker silent", "target", 2, (3.0, 15.0), True),
    Kind("kill -9 of a Python worker", "mirror", 4, (0.0, 0.0), True),
    Kind("a Python worker frozen", "mirror", 3, (3.0, 15.0), True),
    Kind("kill -9 of the JVM", "mirror", 2, (0.0, 0.0), True),
    Kind("the JVM frozen", "mirror", 1, (3.0, 15.0), True),
    Kind("kill -9 of the driver", "mirror", 3, (0.0, 2.0), True),
    Kind("the driver frozen", "mirror", 2, (3.0, 15.0), True),
    Kind("clean restart of the mirror", "mirror", 1, (0.0, 1.0), False),
)
CLUSTER_KINDS: Sequence[Kind] = (
    *KINDS,
    Kind("kill -9 of an executor", "mirror", 4, (0.0, 0.0), True),
    Kind("an executor frozen", "mirror", 3, (3.0, 15.0), True),
    Kind("kill -9 of a Spark worker", "mirror", 3, (1.0, 6.0), True),
)
"""Where the mirror runs on a Spark cluster."""


@dataclass(frozen=True)
class Planned:
    """One fault: begins at a second of the run, is mended `lasts` seconds later."""

    at: float
    kind: Kind
    lasts: float
    broker: int
    """Which one, where the fault is a broker's."""
    pick: float
    """From 0 to 1: which of several processes that are there then."""

    @property
    def what(self) -> str:
        part = self.kind.part
        named = self.kind.name.replace(f"a {part} broker", f"{part} broker {self.broker}")
        return f"{named} for {self.lasts:.0f} s" if named.endswith(("frozen", "silent")) else named


def plan(
    seed: int, seconds: float, kinds: Sequence[Kind] = KINDS, pause: tuple[float, float] = PAUSE_SECONDS
) -> list[Planned]:
    """Faults until `seconds` are over. Two of one part never overlap; those of different parts may."""
    chance = random.Random(seed)
    free = {kind.part: 0.0 for kind in kinds}
    planned: list[Planned] = []
    at = LEAD_SECONDS
    while True:
        at += chance.uniform(*pause)
        kind = chance.choices(kinds, [kind.weight for kind in kinds])[0]
        lasts = chance.uniform(*kind.lasts)
        broker, pick = chance.choice(BROKERS), chance.random()
        if at + lasts > seconds:
            return planned
        if free[kind.part] <= at:
            planned.append(Planned(round(at, 1), kind, round(lasts, 1), broker, pick))
            free[kind.part] = at + lasts + pause[0]
