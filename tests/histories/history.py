"""A recorded history: what was written, what both logs hold, what was done to the parts. JSON lines, one event each.

Knows the form of the file only. Like the checker, which reads it, it must not import anything of Heliograph.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

Place = tuple[str, int]
"""A topic, by its name on the source, and a partition."""


class Row(NamedTuple):
    """One record of a log as the checker sees it."""

    offset: int
    label: str
    """What its producer called it: unique among all that producers wrote."""
    content: str
    """A digest of key, value, headers and timestamp."""


class Commit(NamedTuple):
    """An offset of a group, on the source as its application committed it, on the target as it was found there."""

    at: float
    group: str
    place: Place
    offset: int


class Arrival(NamedTuple):
    """At this moment a reader of the target had got everything up to this offset."""

    at: float
    place: Place
    offset: int


class Fault(NamedTuple):
    at: float
    kind: str
    what: str
    """The kind, and which broker or for how long."""
    may_repeat: bool
    """Whether it ends an attempt without a last word, after which a compacted lane may repeat."""
    mended: float | None = None
    """When what it hit was whole again."""


@dataclass
class History:
    """Everything that the checker may know."""

    seed: int = 0
    compacted: frozenset[str] = frozenset()
    """Topics whose lanes may repeat a little, in order, after a crash."""
    acked: dict[Place, dict[str, int]] = field(default_factory=dict)
    """Offsets that the source acknowledged, by label; of transactions only those that were committed."""
    acked_at: dict[str, float] = field(default_factory=dict)
    """When, by label."""
    aborted: set[str] = field(default_factory=set)
    source: dict[Place, list[Row]] = field(default_factory=dict)
    target: dict[Place, list[Row]] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)
    groups: list[Commit] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """Remarks about what the mirror must not do."""


class Recorder:
    """Writes a history while it happens. Safe in threads."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = path.open("w", encoding="utf-8")
        self._lock = threading.Lock()
        self._began = time.monotonic()

    def now(self) -> float:
        """Seconds since the history began."""
        return time.monotonic() - self._began

    def note(self, kind: str, **fields: Any) -> None:
        line = json.dumps({"kind": kind, "at": round(self.now(), 3)} | fields)
        with self._lock:
            if not self._file.closed:
                self._file.write(line + "\n")

    def log(self, side: str, place: Place, rows: list[Row]) -> None:
        self.note("log", side=side, topic=place[0], partition=place[1], rows=rows)

    def close(self) -> None:
        with self._lock:
            self._file.close()


def load(path: Path) -> History:
    """The history in a file."""
    history = History()
    with path.open(encoding="utf-8") as lines:
        for line in _events(lines):
            _READERS[line["kind"]](history, line)
    return history


def _events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        event = json.loads(line)
        if event["kind"] in _READERS:
            yield event


def _place(event: dict[str, Any]) -> Place:
    return event["topic"], event["partition"]


def _begin(history: History, event: dict[str, Any]) -> None:
    history.seed = event["seed"]
    history.compacted = frozenset(event["compacted"])


def _acked(history: History, event: dict[str, Any]) -> None:
    history.acked.setdefault(_place(event), {}).update(dict(event["rows"]))
    history.acked_at.update((label, event["at"]) for label, _ in event["rows"])


def _aborted(history: History, event: dict[str, Any]) -> None:
    history.aborted.update(event["labels"])


def _log(history: History, event: dict[str, Any]) -> None:
    side = history.source if event["side"] == "source" else history.target
    side[_place(event)] = [Row(*row) for row in event["rows"]]


def _commit(history: History, event: dict[str, Any]) -> None:
    history.commits.append(Commit(event["at"], event["group"], _place(event), event["offset"]))


def _group(history: History, event: dict[str, Any]) -> None:
    history.groups.append(Commit(event["at"], event["group"], _place(event), event["offset"]))


def _arrived(history: History, event: dict[str, Any]) -> None:
    history.arrivals.append(Arrival(event["at"], _place(event), event["offset"]))


def _fault(history: History, event: dict[str, Any]) -> None:
    history.faults.append(Fault(event["at"], event["fault"], event["what"], event["may_repeat"]))


def _mended(history: History, event: dict[str, Any]) -> None:
    for number, fault in enumerate(history.faults):
        if fault.what == event["what"] and fault.mended is None:
            history.faults[number] = fault._replace(mended=event["at"])
            return


def _remark(history: History, event: dict[str, Any]) -> None:
    said = history.failures if event.get("by_mirror") else history.remarks
    said.append(event["text"])


_READERS = {
    "begin": _begin,
    "acked": _acked,
    "aborted": _aborted,
    "log": _log,
    "commit": _commit,
    "group": _group,
    "arrived": _arrived,
    "fault": _fault,
    "mended": _mended,
    "remark": _remark,
}
