"""Judges a recorded history: valid, or the shortest anomaly of each kind. Shares no code with Heliograph.

The truth is the source's log as a read_committed reader gets it, partition by partition: an application may write a record
twice, and then the copy has it twice. What producers saw acknowledged only tells whether the source itself lost something,
which is no anomaly of the mirror. Lists in, findings out: no broker, no clock.

`python -m tests.histories.checker build/chaos/7/history.jsonl` judges a history again.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from tests.histories.history import Fault, History, Place, Row, load

LEDGER_SECONDS = 10.0
"""How much copying a crash may repeat on a compacted lane. The ledger is written once a second; a busy machine makes more of it."""
EFFECT_SECONDS = 30.0
"""After a fault is mended, how long an attempt that it hit may still copy before it ends without a last word.

It is the run's `takeover.wait.seconds`, after which such an attempt is known dead. What a broker of the target does takes less: 4 s until
the controller knows that it is gone, and 10 s until a request to it is given up.
"""
_SHOWN = 3
"""Records shown on each side of an anomaly."""


class Kind(StrEnum):
    LOST = "lost"
    LATE = "not delivered"
    REPEATED = "repeated"
    REORDERED = "reordered"
    CHANGED = "changed"
    PHANTOM = "phantom"
    GROUP = "group set past a record it never got"


class Anomaly(NamedTuple):
    kind: Kind
    place: Place
    records: int
    """How many records it is about: the smaller, the easier to understand."""
    sentence: str
    near: tuple[str, ...] = ()
    """Both logs around it."""


@dataclass
class Verdict:
    records: dict[str, int] = field(default_factory=dict)
    """On the source, by topic."""
    anomalies: list[Anomaly] = field(default_factory=list)
    rewinds: int = 0
    """Times that a compacted lane repeated as it is allowed to after a crash."""
    repeats: int = 0
    """Records that were repeated in that way."""
    failures: list[str] = field(default_factory=list)
    """What the mirror did beside the logs that it must not do."""
    group_looks: int = 0
    source_lost: list[str] = field(default_factory=list)
    """Labels that the source acknowledged and does not have. Not the mirror's doing."""

    @property
    def is_valid(self) -> bool:
        return not self.anomalies and not self.failures

    def shortest(self) -> list[Anomaly]:
        """One of each kind."""
        found: dict[Kind, Anomaly] = {}
        for anomaly in sorted(self.anomalies, key=lambda each: each.records):
            found.setdefault(anomaly.kind, anomaly)
        return [found[kind] for kind in Kind if kind in found]


def judge(history: History) -> Verdict:
    """Every partition of every topic, and every look at a group."""
    verdict = Verdict(failures=list(history.failures))
    origins: dict[Place, dict[int, int]] = {}
    for place in sorted(set(history.source) | set(history.target)):
        lane = _Lane(history, place)
        lane.walk()
        verdict.records[place[0]] = verdict.records.get(place[0], 0) + len(lane.source)
        verdict.anomalies += lane.anomalies
        verdict.rewinds += len(lane.rewinds)
        verdict.repeats += sum(each.records for each in lane.rewinds)
        origins[place] = lane.origin
    verdict.anomalies += _group_anomalies(history, origins)
    verdict.group_looks = len(history.groups)
    for place, labels in history.acked.items():
        there = {row.label for row in history.source.get(place, [])}
        verdict.source_lost += sorted(set(labels) - there)
    return verdict


class _Rewind(NamedTuple):
    at: float
    """When the first repeated record was seen on the target for the second time."""
    copied: tuple[float, float]
    """Between which moments it had been copied for the first time."""
    seconds: float
    """How long it had taken to copy what is repeated."""
    records: int


class _Lane:
    """One partition: the target's records are followed through the source's."""

    def __init__(self, history: History, place: Place) -> None:
        self.place = place
        self.source = history.source.get(place, [])
        self.target = history.target.get(place, [])
        self.origin: dict[int, int] = {}
        """Source offset by target offset."""
        self.anomalies: list[Anomaly] = []
        self.rewinds: list[_Rewind] = []
        self._may_repeat = place[0] in history.compacted
        self._crashes = [fault for fault in history.faults if fault.may_repeat]
        """Those that have not excused a repeat yet."""
        self._aborted = history.aborted
        self._acked_at = history.acked_at
        self._arrivals = [(each.offset, each.at) for each in history.arrivals if each.place == place]
        self._where: dict[str, list[int]] = {}
        for index, row in enumerate(self.source):
            self._where.setdefault(row.content, []).append(index)
        self._labels = {row.label: index for index, row in enumerate(self.source)}
        self._first: dict[int, int] = {}
        """By index in the source, the target offset at which the record first arrived."""
        self._changed: set[int] = set()
        self._due = 0
        self._furthest = 0

    def walk(self) -> None:
        for number, row in enumerate(self.target):
            index = self._index_of(row)
            if index is None:
                self._stranger(number, row)
                continue
            self._step(number, row, index)
            self.origin[row.offset] = self.source[index].offset
            self._first.setdefault(index, row.offset)
            self._due = index + 1
            self._furthest = max(self._furthest, self._due)
        self._missing()

    def _index_of(self, row: Row) -> int | None:
        """Which record of the source this is; where several are equal, the one that makes sense here."""
        candidates = self._where.get(row.content)
        if not candidates:
            return None
        if self._due in candidates:
            return self._due
        unseen = [index for index in candidates if index not in self._first]
        return min(unseen, key=lambda index: (index < self._due, index)) if unseen else candidates[-1]

    def _step(self, number: int, row: Row, index: int) -> None:
        if index == self._due:
            return
        if index in self._first:
            self._again(number, row, index)
        elif index < self._furthest:
            before = self.source[self._furthest - 1].label
            self._say(Kind.REORDERED, 1, f"{row.label} comes after {before}, and before it on the source", number)
        elif self._due < self._furthest:
            left = self._furthest - self._due
            self._say(Kind.REORDERED, left, f"a repeat was broken off {left} records early before {row.label}", number)

    def _again(self, number: int, row: Row, index: int) -> None:
        """A record that is there already: once more by itself, or where a whole stretch begins again."""
        if self._due < self._furthest and index > self._due:
            self._say(Kind.REORDERED, index - self._due, f"a repeat leaves out what is before {row.label}", number)
            return
        again = 1
        while (
            number + again < len(self.target)
            and index + again < self._furthest
            and self.target[number + again].content == self.source[index + again].content
        ):
            again += 1
        copying = self._copying(index, self._furthest - 1)
        rewind = _Rewind(self._seen(row.offset), self._copied(index), copying, again)
        crash = self._excuse(rewind)
        refusal = self._refusal(rewind, crash)
        if refusal or crash is None:
            self._say(Kind.REPEATED, again, f"{row.label} and {again - 1} after it are there twice{refusal}", number)
        else:
            self._crashes.remove(crash)
            self.rewinds.append(rewind)

    def _excuse(self, rewind: _Rewind) -> Fault | None:
        """The crash that made the lane go back; of several the one whose effect ends first, which leaves most to later ones.

        The lane goes back to what the ledger had when the attempt ended. So what is repeated was copied from shortly before the
        crash until its effect ended. When it is repeated says little: after the wait for an attempt that may live.
        """
        fitting = [
            crash
            for crash in self._crashes
            if crash.at <= rewind.at
            and crash.at - LEDGER_SECONDS <= rewind.copied[1]
            and rewind.copied[0] <= _over(crash)
        ]
        return min(fitting, key=_over, default=None)

    def _refusal(self, rewind: _Rewind, crash: Fault | None) -> str:
        """Why a repeat is an anomaly; empty if the lane may do that."""
        if not self._may_repeat:
            return " on a lane that never repeats"
        if crash is None:
            return f": copied at {rewind.copied[1]:.1f} s, again at {rewind.at:.1f} s, and no crash that is left explains it"
        if rewind.seconds > LEDGER_SECONDS:
            return f": {rewind.seconds:.1f} s of copying, more than the ledger may be behind"
        return ""

    def _copying(self, first: int, last: int) -> float:
        """How long it can have taken to copy these: no longer than they took to arrive, or to be written on the source.

        What is on the target is seen late where its brokers cannot replicate it; what is caught up on was written slowly.
        """
        arriving = self._seen(self._first[last]) - self._seen(self._first[first])
        written = [self._acked_at.get(self.source[index].label) for index in (first, last)]
        return arriving if None in written else min(arriving, written[1] - written[0])

    def _copied(self, index: int) -> tuple[float, float]:
        """From when until when a record may have been copied: not before it was written, not after it was seen."""
        seen = self._seen(self._first[index])
        return min(seen, self._acked_at.get(self.source[index].label, seen)), seen

    def _seen(self, offset: int) -> float:
        """When a reader had got this record of the target; 0 if nobody looked."""
        place = bisect_left(self._arrivals, (offset, 0.0))
        return self._arrivals[place][1] if place < len(self._arrivals) else _last(self._arrivals)

    def _stranger(self, number: int, row: Row) -> None:
        index = self._labels.get(row.label)
        if index is not None:
            self._changed.add(index)
            self._first.setdefault(index, row.offset)
            self._due, self._furthest = index + 1, max(self._furthest, index + 1)
            self._say(Kind.CHANGED, 1, f"{row.label} has another key, value, header or timestamp", number)
        elif row.label in self._aborted:
            self._say(Kind.PHANTOM, 1, f"{row.label} was aborted on the source", number)
        else:
            self._say(Kind.PHANTOM, 1, f"{row.label} is nowhere on the source", number)

    def _missing(self) -> None:
        offsets = [row.offset for row in self.target]
        for first, beyond in _stretches([i for i in range(len(self.source)) if i not in self._first]):
            what = f"{self.source[first].label} to {self.source[beyond - 1].label}"
            if beyond == len(self.source):
                kind, sentence = Kind.LATE, f"the last {beyond - first} records, {what}, did not come in time"
            else:
                kind, sentence = Kind.LOST, f"{beyond - first} records, {what}, are not on the target"
            after = self._first.get(first - 1, -1)
            number = bisect_left(offsets, after + 1)
            self.anomalies.append(Anomaly(kind, self.place, beyond - first, sentence, self._near(number, first)))

    def _say(self, kind: Kind, records: int, sentence: str, number: int) -> None:
        self.anomalies.append(Anomaly(kind, self.place, records, sentence, self._near(number, self._due)))

    def _near(self, number: int, index: int) -> tuple[str, ...]:
        source = self.source[max(0, index - _SHOWN) : index + _SHOWN]
        target = self.target[max(0, number - _SHOWN) : number + _SHOWN]
        return (
            "source: " + ", ".join(f"{row.offset}={row.label}" for row in source),
            "target: " + ", ".join(f"{row.offset}={row.label}" for row in target),
        )


def _over(crash: Fault) -> float:
    """When nothing that the crash hit copies any more."""
    return (crash.at if crash.mended is None else crash.mended) + EFFECT_SECONDS


def _last(arrivals: list[tuple[int, float]]) -> float:
    return arrivals[-1][1] if arrivals else 0.0


def _stretches(indexes: list[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring indexes as (first, beyond)."""
    begin = 0
    for place in range(1, len(indexes) + 1):
        if place == len(indexes) or indexes[place] != indexes[place - 1] + 1:
            yield indexes[begin], indexes[place - 1] + 1
            begin = place


class _Reach:
    """Of one partition of the target: how far into the source one looks who skips everything below an offset."""

    def __init__(self, origin: dict[int, int]) -> None:
        self._offsets = sorted(origin)
        self._origin = origin
        self._furthest = list(accumulate((origin[offset] for offset in self._offsets), max))

    def never_got(self, offset: int, got: int) -> list[int]:
        """Target offsets below `offset` whose records lie at `got` or behind it on the source."""
        below = bisect_left(self._offsets, offset)
        if not below or self._furthest[below - 1] < got:
            return []
        return [each for each in self._offsets[:below] if self._origin[each] >= got]


def _group_anomalies(history: History, origins: dict[Place, dict[int, int]]) -> Iterator[Anomaly]:
    """What a group finds below its offset on the target, it must have got on the source."""
    reach = {place: _Reach(origin) for place, origin in origins.items()}
    commits: dict[tuple[str, Place], list[tuple[float, int]]] = {}
    for commit in history.commits:
        commits.setdefault((commit.group, commit.place), []).append((commit.at, commit.offset))
    for look in history.groups:
        made = commits.get((look.group, look.place), [])
        got = max((offset for at, offset in made if at <= look.at), default=0)
        never = reach[look.place].never_got(look.offset, got) if look.place in reach else []
        if never:
            label = next(row.label for row in history.target[look.place] if row.offset == never[0])
            sentence = (
                f"group {look.group} was set to {look.offset} on the target at {look.at:.1f} s, past {label} "
                f"at {never[0]}, when its commit on the source was {got}"
            )
            yield Anomaly(Kind.GROUP, look.place, len(never), sentence)


def report(history: History, verdict: Verdict) -> list[str]:
    """The verdict in words, the shortest anomaly of each kind."""
    lines = [f"remark: {text}" for text in history.remarks]
    if verdict.source_lost:
        some = ", ".join(verdict.source_lost[:_SHOWN])
        lines.append(
            f"the source lost {len(verdict.source_lost)} records that it had acknowledged (not the mirror): {some}"
        )
    for anomaly in verdict.shortest():
        topic, partition = anomaly.place
        count = sum(1 for each in verdict.anomalies if each.kind is anomaly.kind)
        lines.append(f"ANOMALY {anomaly.kind} ({count} of this kind), {topic}-{partition}: {anomaly.sentence}")
        lines += [f"  {line}" for line in anomaly.near]
    counts = ", ".join(f"{topic} {count:,}" for topic, count in sorted(verdict.records.items()))
    repeats = f"{verdict.repeats} records repeated in order after {verdict.rewinds} crashes on compacted lanes"
    lines.append(f"source records: {counts}; {repeats}; {verdict.group_looks} looks at groups")
    lines += [f"NOT VALID: {text}" for text in verdict.failures]
    if verdict.anomalies:
        lines.append(f"NOT VALID: {len(verdict.anomalies)} anomalies")
    return lines if verdict.failures or verdict.anomalies else [*lines, "VALID"]


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not Path(arguments[0]).is_file():
        sys.stderr.write("usage: python -m tests.histories.checker FILE, where FILE is a history.jsonl\n")
        return 2
    history = load(Path(arguments[0]))
    verdict = judge(history)
    sys.stdout.write("\n".join(report(history, verdict)) + "\n")
    return 0 if verdict.is_valid else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
