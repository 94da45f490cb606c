"""What metrics are made of: a run at one moment, as plain values. Which lanes are told of, where not all are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]

ALL_LANES = -1
LANES_EXPECTED = "all, none or top:N with N from 1 to 100,000"
_TOP = re.compile(r"top:([1-9][0-9]{0,5})")
_MOST = 100_000


@dataclass(frozen=True)
class FlowPicture:
    """One flow: what REST says of it, its lanes, what its tasks measured (control/meters.py), its groups."""

    summary: Row
    lanes: Sequence[Row] = ()
    jobs: Sequence[Row] = ()
    meters: Row | None = None
    gone: Row = field(default_factory=dict)
    """What lanes carried that are carried no more."""
    groups: Sequence[Row] = ()
    wan_cost_per_gb: float = 0.0


@dataclass(frozen=True)
class Picture:
    run: Row
    silent_s: float
    """For how long nothing was heard of it."""
    flows: Sequence[FlowPicture] = ()
    meters: Row = field(default_factory=dict)


def lanes_told(text: str) -> int:
    """The value of `metrics.lanes`: how many lanes of a flow are told of, `ALL_LANES` for all; ValueError if it is none."""
    if text in ("all", "none"):
        return ALL_LANES if text == "all" else 0
    found = _TOP.fullmatch(text)
    if found is None or int(found[1]) > _MOST:
        raise ValueError(LANES_EXPECTED)
    return int(found[1])


def top(lanes: Iterable[Row], most: int) -> list[Row]:
    """Those that need a look first: what does not follow, then by lag, then by traffic."""
    rows = list(lanes)
    if most == ALL_LANES or len(rows) <= most:
        return rows
    return sorted(rows, key=_urgency, reverse=True)[:most]


def _urgency(row: Row) -> tuple[bool, int, float]:
    return row["state"] not in ("following", "done"), lag_of(row), row["bytes_per_s"]


def lag_of(row: Row) -> int:
    """Records that the source has and the target has not; nothing is known before a lane was attached."""
    return max(0, row["source_end"] - row["position"]) if row["position"] >= 0 else 0
