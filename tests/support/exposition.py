"""Prometheus' text format (0.0.4), read by its grammar alone and as strictly as it is written down; shares no code with the writer.

Raises `Malformed` with the line for anything that a scraper might stumble over: order, doubles, names, escapes, histograms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_HELP = re.compile(rf"# HELP ({_NAME}) ((?:[^\\\n]|\\\\|\\n)*)")
_TYPE = re.compile(rf"# TYPE ({_NAME}) (counter|gauge|histogram|summary|untyped)")
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)')
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Inf)|NaN")
_ENDS = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}

Labels = frozenset[tuple[str, str]]


class Malformed(Exception):
    """A line that a scraper would refuse."""


@dataclass
class Family:
    name: str
    help: str
    kind: str = ""
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)

    def value(self, end: str = "", **labels: str) -> float | None:
        """The one sample that has these labels among its own; None if there is none."""
        found = [
            value
            for (name, have), value in self.samples.items()
            if name == self.name + end and set(labels.items()) <= have
        ]
        if len(found) > 1:
            raise Malformed(f"{self.name}{end} {labels}: {len(found)} samples")
        return found[0] if found else None

    def label_names(self) -> set[frozenset[str]]:
        return {frozenset(name for name, _ in labels if name != "le") for _, labels in self.samples}


def read_exposition(text: str) -> dict[str, Family]:
    """Families by name."""
    if not text.endswith("\n"):
        raise Malformed("the last line has no end")
    families: dict[str, Family] = {}
    now: Family | None = None
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            now = _begin(line, families)
        elif line.startswith("# TYPE "):
            _type(line, now)
        else:
            _sample(line, now)
    for family in families.values():
        if not family.kind:
            raise Malformed(f"{family.name} has no type")
        if family.kind == "histogram":
            _check_histogram(family)
    return families


def _begin(line: str, families: dict[str, Family]) -> Family:
    found = _HELP.fullmatch(line)
    if found is None or found[1] in families:
        raise Malformed(line)
    families[found[1]] = Family(found[1], found[2])
    return families[found[1]]


def _type(line: str, now: Family | None) -> None:
    found = _TYPE.fullmatch(line)
    if found is None or now is None or found[1] != now.name or now.kind or now.samples:
        raise Malformed(line)
    now.kind = found[2]
    if (now.kind == "counter") != now.name.endswith("_total"):
        raise Malformed(f"{line}: counters, and no others, end with _total")


def _sample(line: str, now: Family | None) -> None:
    found = _SAMPLE.fullmatch(line)
    if found is None or now is None or not _NUMBER.fullmatch(found[3]):
        raise Malformed(line)
    if found[1] not in [now.name + end for end in _ENDS.get(now.kind, ("",))]:
        raise Malformed(f"{line}: within {now.name}")
    labels = list(_labels(found[2] or "", line))
    if len({name for name, _ in labels}) < len(labels):
        raise Malformed(f"{line}: a label stands twice")
    key = (found[1], frozenset(labels))
    if key in now.samples:
        raise Malformed(f"{line}: told twice")
    now.samples[key] = float(found[3].replace("Inf", "inf"))


def _labels(text: str, line: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        found = _LABEL.match(text, at)
        if found is None:
            raise Malformed(line)
        yield found[1], re.sub(r"\\(.)", lambda one: {"n": "\n"}.get(one[1], one[1]), found[2])
        at = found.end()


def _check_histogram(family: Family) -> None:
    series: dict[Labels, list[tuple[float, float]]] = {}
    for (name, labels), value in family.samples.items():
        if name.endswith("_bucket"):
            bound = next((text for label, text in labels if label == "le"), None)
            if bound is None:
                raise Malformed(f"{family.name}: a bucket without le")
            rest = frozenset(one for one in labels if one[0] != "le")
            series.setdefault(rest, []).append((float(bound.replace("Inf", "inf")), value))
    for labels, buckets in series.items():
        if buckets != sorted(buckets) or [count for _, count in buckets] != sorted(count for _, count in buckets):
            raise Malformed(f"{family.name} {set(labels)}: buckets out of order")
        count = family.samples.get((f"{family.name}_count", labels))
        if buckets[-1] != (float("inf"), count) or (f"{family.name}_sum", labels) not in family.samples:
            raise Malformed(f"{family.name} {set(labels)}: no +Inf, count or sum")
