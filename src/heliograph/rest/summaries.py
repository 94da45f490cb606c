"""Flows, topics and lanes as REST and the page show them, computed from the scene when somebody asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from heliograph.metrics.picture import lag_of
from heliograph.model.lanes import LaneState
from heliograph.replication.bottleneck import bottleneck, held_words

if TYPE_CHECKING:
    from heliograph.rest.scene import Scene

Row = dict[str, Any]
_PAUSED = "paused"
_CUT_OFF = "this run cannot say that it holds the flow, and carries none of its lanes until it can"
_UNKNOWN: Row = {"lag_records": None, "lag_ms": None}
"""Of a flow whose lanes this run does not see: another one carries it, or a cluster is out of reach. That is not zero."""
_COUNTED = ("records", "bytes", "raw_batches", "rebuilt_batches")


def flow_summary(scene: Scene, name: str) -> Row:
    """One flow, with the sums of its lanes."""
    flow = scene.flows[name]
    rows = scene.lanes_of(name)
    states = Counter(row["state"] for row in rows)
    holds = scene.holds(name)
    sums = _sums(rows) if flow["opened"] else _sums(rows) | _UNKNOWN
    return {
        "flow": name,
        "source": flow["source"],
        "target": flow["target"],
        "origin": _origin(scene, name),
        **_state(flow, holds, rows, states),
        "topics": len(flow["topics"]),
        "lanes": len(rows),
        "lanes_by_state": dict(states),
        **sums,
        "at_risk_records": sums["lag_records"],
        "at_risk_seconds": None if sums["lag_ms"] is None else sums["lag_ms"] / 1000,
        "bottleneck": _bottleneck(scene, name, rows) if flow["opened"] else "",
        "latency_ms": flow["latency_ms"],
        "carried_by": _carried_by(scene.run, flow),
        "standbys": flow.get("standbys", []),
        "throttle_bytes_per_s": flow["throttle"],
        "holds": [_shown(hold) for hold in holds],
        "changes": [change for change in scene.part("holds").get("changes", []) if _is_of(change, name)],
    }


def _carried_by(run: Row, flow: Row) -> Row | None:
    """The run that holds the flow; None where that is not known, or nobody does."""
    if flow.get("held"):
        return {name: run.get(name) for name in ("host", "process", "since_ms")}
    other: Row | None = flow.get("carried_by")
    return other


def _is_of(change: Row, flow: str) -> bool:
    """A topic's change names its flow, an option begins with it: aliases may hold dots."""
    is_options: bool = not change["flow"] and change["what"].startswith(f"{flow}.")
    return is_options or change["flow"] == flow


def _origin(scene: Scene, flow: str) -> str:
    """Whether connectors made it, or the file has it."""
    made = scene.part("connectors").get("connectors", {}).values()
    return "rest" if any((one["flow"], one["origin"]) == (flow, "rest") for one in made) else "file"


def _bottleneck(scene: Scene, name: str, rows: Sequence[Row]) -> str:
    """In words; nothing to do where nothing was measured yet."""
    window = scene.part("meters").get("flows", {}).get(name, {}).get("window", {})
    lag_ms = max((row["lag_ms"] for row in rows if row["state"] == LaneState.FOLLOWING), default=0)
    is_paused = any(row["state"] == _PAUSED for row in rows)
    rate = sum(row["records_per_s"] for row in rows)
    return str(bottleneck(window.get("time", {}), lag_ms / 1000, rate, is_paused))


def _sums(rows: Sequence[Row]) -> Row:
    totals = [row["totals"] for row in rows]
    return {
        "records_per_s": round(sum(row["records_per_s"] for row in rows)),
        "bytes_per_s": round(sum(row["bytes_per_s"] for row in rows)),
        "lag_records": sum(lag_of(row) for row in rows),
        "lag_ms": max((row["lag_ms"] for row in rows), default=0),
        **{name: sum(total[name] for total in totals) for name in _COUNTED},
        "dropped_batches": sum(sum(total["dropped"].values()) for total in totals),
    }


def _state(flow: Row, holds: Iterable[Row], rows: Sequence[Row], states: Counter[str]) -> Row:
    """What a flow does as a whole, in one word, with the reason; of one that runs, what of it is paused."""
    whole = next((hold for hold in holds if not hold["topic"]), None)
    if flow["trouble"]:
        return {"state": "trouble", "reason": flow["trouble"], "since_ms": flow["trouble_since_ms"]}
    if flow.get("standing_by"):
        by = flow["carried_by"]
        why = f"carried by {by['host']}, process {by['process']}" if by else _CUT_OFF
        return {"state": "standby", "reason": why, "since_ms": 0}
    if not flow["opened"]:
        return {"state": "opening", "reason": "both clusters are read", "since_ms": 0}
    if whole is not None:
        draining = states["draining"] > 0
        return {"state": "draining" if draining else _PAUSED, "reason": whole["reason"], "since_ms": whole["since_ms"]}
    return {"state": "running", "reason": held_words((row["topic"], row["state"]) for row in rows), "since_ms": 0}


def _shown(hold: Row) -> Row:
    """Without the end of every lane, which a drain of thousands keeps."""
    return {"subject": _subject(hold), **{name: value for name, value in hold.items() if name != "ends"}}


def _subject(hold: Row) -> str:
    parts = [hold["flow"], hold["topic"], str(hold["partition"])]
    return "/".join(parts[: 1 + bool(hold["topic"]) + (hold["partition"] >= 0)])


def topic_rows(scene: Scene, name: str) -> list[Row]:
    """The topics of a flow, with the sums of their lanes."""
    flow = scene.flows[name]
    lanes: dict[str, list[Row]] = {}
    for row in scene.lanes_of(name):
        lanes.setdefault(row["topic"], []).append(row)
    return [_topic(scene, flow, topic, lanes.get(topic, [])) for topic in sorted(flow["topics"])]


def _topic(scene: Scene, flow: Row, topic: str, rows: Sequence[Row]) -> Row:
    hold = next((hold for hold in scene.holds(flow["flow"]) if hold["topic"] == topic and hold["partition"] < 0), None)
    sums = _sums(rows)
    return {
        "topic": topic,
        "remote_topic": flow["topics"][topic],
        "partitions": len(rows),
        "lag": sums["lag_records"],
        **{name: sums[name] for name in ("lag_ms", "records_per_s", "bytes_per_s")},
        "states": dict(Counter(row["state"] for row in rows)),
        "throttle_bytes_per_s": flow["throttle_topics"].get(topic, 0),
        "hold": hold,
    }
