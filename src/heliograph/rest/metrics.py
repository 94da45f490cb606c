"""/metrics: the series of the run in Prometheus' text, or in OpenMetrics where the client asks for that.

The client library writes the text; the registry is made for one answer and holds nothing but a picture of the scene.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from math import inf

from fastapi import APIRouter, Request
from fastapi.responses import Response
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

from heliograph.errors import Refused
from heliograph.metrics.picture import FlowPicture, Picture
from heliograph.metrics.sample import Buckets, Sample
from heliograph.metrics.series import series
from heliograph.metrics.table import COUNTER, GAUGE, HISTOGRAM, METRICS
from heliograph.rest.scene import Scene
from heliograph.rest.summaries import flow_summary

_FAMILIES = {COUNTER: CounterMetricFamily, GAUGE: GaugeMetricFamily, HISTOGRAM: HistogramMetricFamily}


def router(scene: Scene, lanes: int) -> APIRouter:
    """`lanes` of each flow have series of their own; -1: all."""
    api = APIRouter(tags=["metrics"])

    @api.get("/metrics", summary="All metrics, for Prometheus", response_class=Response)
    def metrics(request: Request) -> Response:
        """Not on the event loop: thousands of lanes take a while, and others ask meanwhile."""
        text, kind = text_of(picture_of(scene, time.monotonic()), lanes, request.headers.get("accept", ""))
        return Response(text, media_type=kind)

    return api


def text_of(picture: Picture, lanes: int, accept: str = "") -> tuple[bytes, str]:
    """The text in the format that a client accepts, and that format's name."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Shown(series(picture, lanes)))
    encode, kind = choose_encoder(accept)
    return encode(registry), kind


def picture_of(scene: Scene, now: float) -> Picture:
    """What metrics are made of; Refused before the run showed itself."""
    run = scene.run
    if not run:
        raise Refused(503, "the run has not shown itself yet")
    meters, groups = scene.part("meters"), scene.part("groups")
    flows = [
        FlowPicture(
            summary=flow_summary(scene, name),
            lanes=scene.lanes_of(name),
            jobs=flow["jobs"],
            meters=meters.get("flows", {}).get(name),
            gone=meters.get("gone", {}).get(name, {}),
            groups=groups.get(name, ()),
            wan_cost_per_gb=flow["wan_cost_per_gb"],
        )
        for name, flow in list(scene.flows.items())
    ]
    return Picture(run, max(0.0, now - scene.merged_at), flows, meters)


class _Shown(Collector):
    """The series of one moment."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for sample in self._samples:
            family = families.get(sample.metric)
            if family is None:
                family = families[sample.metric] = _family(sample.metric)
            _add(family, sample)
        return iter(families.values())


def _family(name: str) -> Metric:
    metric = METRICS[name]
    family: Metric = _FAMILIES.get(metric.kind, UntypedMetricFamily)(name, metric.meaning, labels=metric.labels)
    return family


def _add(family: Metric, sample: Sample) -> None:
    if isinstance(sample.value, Buckets):
        assert isinstance(family, HistogramMetricFamily)  # noqa: S101  the table says so
        found = [("+Inf" if bound == inf else str(bound), float(count)) for bound, count in sample.value.cumulated()]
        family.add_metric(sample.labels, found, sample.value.total)
    else:
        family.add_metric(sample.labels, sample.value)  # type: ignore[attr-defined]  # every family of one number has it
