"""Series as text: Prometheus' own format, or OpenMetrics. Letter for letter what the client library's encoders write.

Those make a dictionary and some strings for every label of every series: at thousands of lanes more than a second of CPU for each
scrape. Here the labels of a lane become text once for all its metrics. The library still says which format a client accepts and how
numbers are written; a test holds both texts against each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf

from prometheus_client.exposition import choose_encoder
from prometheus_client.utils import floatToGoString

from heliograph.metrics.sample import Buckets, Sample
from heliograph.metrics.table import COUNTER, METRICS, UNTYPED, Metric

_OPENMETRICS = "application/openmetrics-text"
_ESCAPING = re.compile(r"escaping=[a-z0-9-]+")


class _LabelTexts(dict[tuple[str, ...], str]):
    """By the values of some labels: those labels as they stand in a line."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self._names = [(name, names.index(name)) for name in sorted(names)]

    def __missing__(self, values: tuple[str, ...]) -> str:
        inside = ",".join([f'{name}="{_quoted(values[place])}"' for name, place in self._names])
        text = self[values] = f"{{{inside}}}" if inside else ""
        return text


class _Numbers(dict[float, str]):
    """As the library writes them: most of those of thousands of lanes are the same few."""

    def __missing__(self, value: float) -> str:
        text: str = floatToGoString(value)  # type: ignore[no-untyped-call]  # the library says no types here
        self[value] = text
        return text


@dataclass
class _Family:
    """The lines of one metric."""

    name: str
    labels: _LabelTexts
    bounds: _LabelTexts
    """The same with the bound of a bucket."""
    lines: list[str] = field(default_factory=list)


class _Page:
    """Families in the order of their first series."""

    def __init__(self, is_openmetrics: bool) -> None:
        self._is_openmetrics = is_openmetrics
        self._families: dict[str, _Family] = {}
        self._labels: dict[tuple[str, ...], _LabelTexts] = {}
        self._numbers = _Numbers()

    def add(self, samples: Iterable[Sample]) -> None:
        families, numbers = self._families, self._numbers
        for name, values, value in samples:
            family = families.get(name) or self._begin(METRICS[name])
            if isinstance(value, Buckets):
                family.lines += self._histogram(family, values, value)
            else:
                family.lines.append(f"{family.name}{family.labels[values]} {numbers[value]}\n")

    def text(self) -> bytes:
        lines = [line for family in self._families.values() for line in family.lines]
        return "".join([*lines, "# EOF\n" if self._is_openmetrics else ""]).encode()

    def _begin(self, metric: Metric) -> _Family:
        made = _Family(metric.name, self._texts(metric.labels), self._texts((*metric.labels, "le")))
        made.lines += _head(metric, self._is_openmetrics)
        self._families[metric.name] = made
        return made

    def _texts(self, labels: tuple[str, ...]) -> _LabelTexts:
        if labels not in self._labels:
            self._labels[labels] = _LabelTexts(labels)
        return self._labels[labels]

    def _histogram(self, family: _Family, values: tuple[str, ...], found: Buckets) -> Iterator[str]:
        count = 0
        for bound, count in found.cumulated():
            at = "+Inf" if bound == inf else str(bound)
            yield f"{family.name}_bucket{family.bounds[*values, at]} {self._numbers[count]}\n"
        yield f"{family.name}_count{family.labels[values]} {self._numbers[count]}\n"
        yield f"{family.name}_sum{family.labels[values]} {self._numbers[found.total]}\n"


def content_type_of(accept: str) -> str:
    """What is given to a client that accepts this. Whatever escaping of names it asks for, ours need none."""
    return _ESCAPING.sub("escaping=underscores", choose_encoder(accept)[1])


def exposition(samples: Iterable[Sample], content_type: str) -> bytes:
    """All of them as text."""
    page = _Page(content_type.startswith(_OPENMETRICS))
    page.add(samples)
    return page.text()


def _head(metric: Metric, is_openmetrics: bool) -> Iterator[str]:
    """OpenMetrics has another name for a counter and another word for untyped, and escapes more."""
    name, kind, meaning = metric.name, metric.kind, metric.meaning.replace("\\", r"\\").replace("\n", r"\n")
    if is_openmetrics:
        name = name.removesuffix("_total") if kind == COUNTER else name
        kind = "unknown" if kind == UNTYPED else kind
        meaning = _quoted(metric.meaning)
    yield f"# HELP {name} {meaning}\n"
    yield f"# TYPE {name} {kind}\n"


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
