"""Our text against the client library's, letter for letter, in every format that it knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf, nan

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    UntypedMetricFamily,
)
from prometheus_client.registry import Collector

from heliograph.metrics.picture import ALL_LANES
from heliograph.metrics.sample import Buckets, Sample
from heliograph.metrics.series import series
from heliograph.metrics.table import COUNTER, GAUGE, HISTOGRAM, METRICS
from heliograph.rest.exposition import content_type_of, exposition
from heliograph.rest.metrics import picture_of
from tests.unit.rest.test_metrics import many, stage

_FAMILIES = {COUNTER: CounterMetricFamily, GAUGE: GaugeMetricFamily, HISTOGRAM: HistogramMetricFamily}
ACCEPTED = (
    "",
    "text/plain",
    "text/plain;version=1.0.0",
    "text/plain;version=1.0.0;escaping=allow-utf-8",
    "application/openmetrics-text",
    "application/openmetrics-text;version=1.0.0;escaping=underscores",
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8",
    "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
)
STRANGE = 'a "quoted\\ näme\nin two lines, {with="braces"} 🔥'


class Shown(Collector):
    """The same series, as the library wants them."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for name, labels, value in self._samples:
            row = METRICS[name]
            if name not in families:
                families[name] = _FAMILIES.get(row.kind, UntypedMetricFamily)(name, row.meaning, labels=row.labels)
            if isinstance(value, Buckets):
                found = [("+Inf" if bound == inf else str(bound), float(count)) for bound, count in value.cumulated()]
                families[name].add_metric(labels, found, value.total)  # type: ignore[attr-defined]  # a histogram has it
            else:
                families[name].add_metric(labels, value)  # type: ignore[attr-defined]  # every family of one number has it
        return iter(families.values())


def assert_same(samples: list[Sample], accept: str) -> None:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Shown(samples))
    encode, kind = choose_encoder(accept)
    assert content_type_of(accept) == kind.replace("allow-utf-8", "underscores")
    assert exposition(iter(samples), kind).decode() == encode(registry).decode(), kind


@pytest.mark.parametrize("accept", ACCEPTED)
def test_every_metric_is_written_as_the_library_writes_it(accept: str) -> None:
    samples = list(series(picture_of(stage(), 103.5), ALL_LANES))
    assert {name for name, _, _ in samples} == METRICS.keys()
    assert_same(samples, accept)


@pytest.mark.parametrize("accept", ACCEPTED)
def test_strange_names_and_numbers_too(accept: str) -> None:
    numbers = (0, 1, -1, 1.5, -2.5e-9, 999_999, 1_000_000, 9_999_999, 12_345_678, 1 << 62, 1e300, inf, -inf, nan, nan)
    assert_same(
        [
            *(
                Sample("heliograph_events_total", (STRANGE, f"{place}{STRANGE}"), at)
                for place, at in enumerate(numbers)
            ),
            Sample("heliograph_handover_gap_seconds", (STRANGE,), Buckets((0.5, 2.0), (0, 3, 1), 7.25)),
            Sample("heliograph_epoch", (), 3),
        ],
        accept,
    )


def test_nothing_is_an_empty_text_and_an_end() -> None:
    assert_same([], "")
    assert_same([], "application/openmetrics-text;version=1.0.0")


def test_hundreds_of_lanes_are_written_as_the_library_writes_them() -> None:
    assert_same(list(series(picture_of(many(300), 103.5), ALL_LANES)), "")


def test_a_meaning_with_quotes_is_escaped_as_the_format_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(METRICS["heliograph_epoch"], meaning=STRANGE)
    monkeypatch.setitem(METRICS, "heliograph_epoch", row)
    for accept in ACCEPTED:
        assert_same([Sample("heliograph_epoch", (), 1)], accept)


@pytest.mark.parametrize("kind", ["text/plain", "application/openmetrics-text"])
@pytest.mark.parametrize("escaping", ["dots", "values"])
def test_who_wants_names_escaped_otherwise_is_told_that_they_need_none(kind: str, escaping: str) -> None:
    told = content_type_of(f"{kind};version=1.0.0;escaping={escaping}")
    assert told.startswith(kind) and told.endswith("escaping=underscores")
