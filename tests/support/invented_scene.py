"""A scene that nobody mirrors: clusters under load with thousands of lanes, invented, for looking at the page and for its size.

Views are made as the driver makes them, so that the page's server merges them as it merges real ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]

SHAPES: dict[str, dict[str, int]] = {
    "load": {
        "frankfurt->dublin": 1900,
        "dublin->frankfurt": 1100,
        "frankfurt->virginia": 1200,
        "virginia->frankfurt": 500,
        "dublin->virginia": 300,
    },
    "standby": {"primary->standby": 60},
    "both": {"east->west": 40, "west->east": 40},
    "hub": {
        **{f"{edge}->hub": 20 for edge in ("berlin", "madrid", "oslo", "rome", "wien")},
        **{f"hub->{edge}": 20 for edge in ("berlin", "madrid", "oslo", "rome", "wien")},
    },
    "collect": {f"{edge}->central": 12 for edge in ("store-1", "store-2", "store-3", "store-4")},
    "fan": {f"origin->{edge}": 12 for edge in ("asia", "europe", "america")},
    "chain": {"a->b": 9, "b->c": 9, "c->d": 9},
    "mesh": {f"{one}->{two}": 24 for one in "ABC" for two in "ABC" if one != two},
    "empty": {},
}
"""Flows and their lanes, by the name of a topology."""
SHAPES["all"] = {flow: 3 for shape in SHAPES if shape != "load" for flow in SHAPES[shape]}
SHAPES["turns"] = {"north->south": 12, "south->north": 0, "east->north": 24, "west->north": 0, "south->west": 0}
"""Who carries and who waits: in the order of `_TURNS`, with one flow of which a topic is paused."""

_NOUNS = (
    "orders",
    "payments",
    "clicks",
    "inventory",
    "shipments",
    "sessions",
    "invoices",
    "prices",
    "carts",
    "refunds",
)
_KINDS = ("created", "changed", "events", "audit", "v2", "enriched", "raw", "dlq", "snapshots", "commands")
_TEAMS = ("shop", "billing", "search", "logistics", "fraud", "crm", "ads", "iot")
_PARKED = "the target refuses records: MESSAGE_TOO_LARGE, a batch of 1,310,720 bytes and max.message.bytes is 1,048,588"
_WAITING = [
    {"host": "mirror-2", "process": 4912, "since_ms": -8_000_000},
    {"host": "mirror-3", "process": 77, "since_ms": -600_000},
]
_TURNS: dict[str, Row] = {
    "north->south": {"standbys": _WAITING},
    "south->north": {
        "opened": False, "held": False, "standing_by": True, "standbys": _WAITING[1:],
        "carried_by": {"host": "mirror-2", "process": 4912, "since_ms": -8_000_000},
    },
    "west->north": {"opened": False, "held": False, "trouble": "cluster west: connection refused at west-1:9092", "trouble_since_ms": -94_000},
    "south->west": {"opened": False, "held": False, "standing_by": True, "carried_by": None},
}  # fmt: skip
"""As the driver shows flows that are not simply its own; times are those before now."""


@dataclass
class InventedLane:
    row: Row
    rate: float
    record_bytes: int
    moved: float = 0.0


@dataclass
class InventedRun:
    """Makes one view after another; `steps` of a second."""

    shape: str
    now_ms: int
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    lanes: list[InventedLane] = field(default_factory=list)
    holds: list[Row] = field(default_factory=list)
    throttles: dict[str, int] = field(default_factory=dict)
    started_ms: int = 0
    news: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.started_ms = self.now_ms - 9_240_000
        self.sizes = SHAPES[self.shape]
        for flow, count in self.sizes.items():
            self.lanes += self._lanes(flow, count)
        self._special()
        if self.shape == "turns":
            topic = next(lane.row["topic"] for lane in self.lanes if lane.row["flow"] == "east->north")
            about = {"flow": "east->north", "topic": topic, "partition": -1, "kind": "pause"}
            said = {"reason": "the shop moves house", "who": "ann@desk", "since_ms": self.now_ms - 720_000}
            self.holds.append(about | said)
        self.news = list(self._old_events())

    # -- making -----------------------------------------------------------------------------------------------------

    def _lanes(self, flow: str, count: int) -> Iterator[InventedLane]:
        source = flow.split("->")[0]
        made = 0
        names = [f"{team}.{noun}.{kind}" for team in _TEAMS for noun in _NOUNS for kind in _KINDS]
        self.chance.shuffle(names)
        while made < count:
            topic, partitions = names.pop(), min(self.chance.choice((1, 3, 6, 6, 12, 24)), count - made)
            heat = self.chance.lognormvariate(2.2, 1.3)
            for partition in range(partitions):
                yield self._lane(flow, source, topic, partition, heat)
            made += partitions

    def _lane(self, flow: str, source: str, topic: str, partition: int, heat: float) -> InventedLane:
        position = self.chance.randrange(10_000, 90_000_000)
        delta = self.chance.choice((0, 0, 0, 0, self.chance.randrange(-400, 900)))
        records = self.chance.randrange(1_000, position)
        size = self.chance.choice((180, 350, 720, 1400))
        row = {
            "lane": f"{flow}/{topic}/{partition}", "flow": flow, "topic": topic, "partition": partition, "remote_topic": f"{source}.{topic}",
            "state": "following", "reason": "", "since_ms": self.started_ms + self.chance.randrange(60_000), "position": position, "source_end": position,
            "high_watermark": position, "log_start": 0, "target_next": position + delta, "generation": 1, "producer_id": 4000, "producer_epoch": 0,
            "guard": "broker", "finished": False, "lag_ms": 0,
            "totals": {"records": records, "bytes": records * size, "raw_batches": records // 40, "rebuilt_batches": records // 9000, "refused": 0, "attaches": 1,
                       "dropped": {"control": records // 50_000} if delta else {}, "rebuilt": {"tiny": records // 9000}, "foreign": 0, "skipped": {}},
        }  # fmt: skip
        return InventedLane(row, heat * self.chance.uniform(0.5, 1.6), size)

    def _special(self) -> None:
        """One lane is parked, one topic catches up, a few lanes attach."""
        if len(self.lanes) < 20 or self.shape == "turns":
            return
        parked = self.lanes[11].row
        parked.update(state="parked", reason=_PARKED, since_ms=self.now_ms - 260_000)
        behind = self.lanes[len(self.lanes) * 2 // 3].row
        for lane in self.lanes:
            if lane.row["topic"] == behind["topic"] and lane.row["flow"] == behind["flow"]:
                lane.row["source_end"] += self.chance.randrange(2_000_000, 4_000_000)
                lane.rate = 5200.0
        for lane in self.lanes[-4:]:
            lane.row.update(state="attaching", reason="", since_ms=self.now_ms - 2_000)

    def _old_events(self) -> Iterator[Row]:
        flows = list(self.sizes)
        if not flows:
            return
        ago = ((7_900_000, "trouble", flows[-1], "the target does not answer: connection refused by 3 of 3 brokers", "is it running?"),
               (7_812_000, "recovered", flows[-1], "the trouble is over after 88 s", ""),
               (5_400_000, "batch-again", flows[0], "a batch of 412 records was damaged on its way and is sent once more", ""),
               (2_700_000, "certificate", flows[0], "the certificate of broker 3 ends on 2026-11-21, in 5 days", "renew it: the flow stops when it has ended"),
               (1_300_000, "generation", flows[min(1, len(flows) - 1)], "records are numbered anew: the remote topic was made again", ""))  # fmt: skip
        for back, kind, flow, reason, to_do in ago:
            subject = flow if kind in ("trouble", "recovered", "certificate") else f"{self.lanes[3].row['topic']}-0"
            yield self._event(self.now_ms - back, flow, subject, kind, reason, to_do)
        parked = next((lane.row for lane in self.lanes if lane.row["state"] == "parked"), None)
        if parked is not None:
            subject = f"{parked['topic']}-{parked['partition']}"
            yield self._event(
                self.now_ms - 260_000, parked["flow"], subject, "parked", _PARKED,
                "raise max.message.bytes of the remote topic, or set on.bad.record; the lane is tried again by itself",
            )  # fmt: skip

    def _event(self, time_ms: int, flow: str, subject: str, kind: str, reason: str, to_do: str = "") -> Row:
        return {
            "version": 1, "time_ms": time_ms, "flow": flow, "subject": subject, "kind": kind, "reason": reason, "what_to_do": to_do,
        }  # fmt: skip

    # -- living -----------------------------------------------------------------------------------------------------

    def is_held(self, row: Row) -> bool:
        return any(
            hold["flow"] == row["flow"]
            and hold["topic"] in ("", row["topic"])
            and hold["partition"] in (-1, row["partition"])
            for hold in self.holds
        )

    def step(self, seconds: float = 1.0) -> Row:
        """Let time pass; the view of what changed."""
        self.now_ms += round(seconds * 1000)
        swell = {flow: self.chance.uniform(0.8, 1.2) for flow in self.sizes}
        rows = [lane.row for lane in self.lanes if self._move(lane, seconds, swell[lane.row["flow"]])]
        events, self.news = self.news, []
        return {
            "parts": self.parts(),
            "flows": {flow: self.flow(flow) for flow in self.sizes},
            "lanes": rows,
            "events": events,
        }

    def _move(self, lane: InventedLane, seconds: float, swell: float) -> bool:
        row = lane.row
        lane.moved += lane.rate * swell * seconds * self.chance.uniform(0.6, 1.4)
        count, lane.moved = int(lane.moved), lane.moved % 1
        behind = row["source_end"] - row["position"] > 100_000
        row["source_end"] += count // 4 if behind else count
        held = self.is_held(row)
        if row["state"] != "parked":
            row["state"] = "paused" if held else "attaching" if row["state"] == "attaching" else "following"
        if row["state"] == "following":
            before = row["position"]
            row["position"] = (
                min(row["source_end"], before + count)
                if behind
                else row["source_end"] - int(count * self.chance.random() * 0.02)
            )
            done = max(0, row["position"] - before)
            row["target_next"] += done
            totals = row["totals"]
            totals["records"] += done
            totals["bytes"] += done * lane.record_bytes
            totals["raw_batches"] += done // 40
        row["lag_ms"] = round(1000 * (row["source_end"] - row["position"]) / max(lane.rate, 0.5))
        return True

    def flow(self, name: str) -> Row:
        source, target = name.split("->")
        topics = {lane.row["topic"]: lane.row["remote_topic"] for lane in self.lanes if lane.row["flow"] == name}
        told: Row = {
            "flow": name, "source": source, "target": target, "state": "running", "reason": "", "since_ms": self.started_ms, "trouble": "", "trouble_since_ms": 0,
            "opened": True, "held": True, "bootstrap": {one: f"{one}-1:9092,{one}-2:9092" for one in (source, target)}, "origin": "rest" if name.endswith("virginia") else "file", "topics": topics, "jobs": [],
            "latency_ms": {"p50": round(self.chance.uniform(9, 14), 1), "p99": round(self.chance.uniform(38, 70), 1)},
            "throttle": self.throttles.get(name, 0), "throttle_topics": {}, "standing_by": False, "carried_by": None, "standbys": [],
        }  # fmt: skip
        apart = self._dated(_TURNS.get(name, {})) if self.shape == "turns" else {}
        nothing = {} if apart.get("opened", True) else {"latency_ms": {"p50": None, "p99": None}}
        return told | apart | nothing

    def _dated(self, said: Any) -> Any:
        """With moments where it has times before now."""
        if isinstance(said, list):
            return [self._dated(one) for one in said]
        if not isinstance(said, dict):
            return said
        moments = {
            name: self.started_ms + 9_240_000 + value for name, value in said.items() if name.endswith("since_ms")
        }
        return {name: self._dated(value) for name, value in said.items()} | moments

    def parts(self) -> Row:
        run = {
            "version": "0.1.0", "host": "mirror-1", "process": 4711, "run": "d41d8cd9", "since_ms": self.started_ms, "time_ms": self.now_ms, "epoch": 152,
            "spark": {"master": "local[4]"}, "events_dropped": 0, "listeners": [],
        }  # fmt: skip
        meters = {flow: {"window": {"time": {"source": 0.2, "target": 0.6, "busy": 0.2}}} for flow in self.sizes}
        return {"run": run, "holds": {"holds": list(self.holds)}, "meters": {"flows": meters}}
