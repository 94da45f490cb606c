"""From a picture of a run to its series: names of the table, values of labels, numbers. Pure; rest/metrics.py makes text of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heliograph.metrics.group_series import group_series
from heliograph.metrics.histogram import LATENCY_BOUNDS_MS
from heliograph.metrics.lane_series import lane_series
from heliograph.metrics.meters import KINDS
from heliograph.metrics.picture import FlowPicture, Picture, Row, top
from heliograph.metrics.sample import Buckets, Sample
from heliograph.replication.bottleneck import Bottleneck

GAP_BOUNDS_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Of hand-overs, which take some ten ms, up to what a lost task costs."""
LANE_STATES = ("waiting", "attaching", "following", "draining", "parked", "paused", "done")
FLOW_STATES = ("running", "standby", "opening", "paused", "draining", "trouble")
_GB = 1e9


@dataclass(frozen=True)
class _Named:
    """A field of what tasks measured, and the metric that tells it; `per` divides it into base units."""

    metric: str
    field: str
    per: float = 1.0


_FLOW_TOTALS = (
    _Named("heliograph_flow_records_total", "records"),
    _Named("heliograph_flow_bytes_total", "batch_bytes"),
    _Named("heliograph_wan_bytes_total", "wan_bytes"),
    _Named("heliograph_fetch_requests_total", "fetches"),
    _Named("heliograph_fetch_bytes_total", "fetched_bytes"),
    _Named("heliograph_record_retries_total", "retried"),
)
_FLOW_WINDOW = (
    _Named("heliograph_flow_records_per_second", "records_per_s"),
    _Named("heliograph_flow_bytes_per_second", "bytes_per_s"),
    _Named("heliograph_fetch_requests_per_second", "fetch_rate"),
    _Named("heliograph_fetch_size_avg_bytes", "fetch_size_avg"),
    _Named("heliograph_fetch_size_max_bytes", "fetch_size_max"),
    _Named("heliograph_fetch_throttle_avg_seconds", "fetch_throttle_avg_ms", 1000),
    _Named("heliograph_fetch_throttle_max_seconds", "fetch_throttle_max_ms", 1000),
    _Named("heliograph_batch_size_avg_bytes", "batch_size_avg"),
    _Named("heliograph_batch_size_max_bytes", "batch_size_max"),
    _Named("heliograph_record_retries_per_second", "retry_rate"),
)
_TARGET_TOTALS = (
    _Named("heliograph_produce_requests_total", "requests"),
    _Named("heliograph_produce_request_seconds_total", "request_seconds"),
)
_TARGET_WINDOW = (
    _Named("heliograph_produce_request_avg_seconds", "request_seconds_avg"),
    _Named("heliograph_produce_request_max_seconds", "request_seconds_max"),
    _Named("heliograph_produce_requests_in_flight", "requests_in_flight"),
    _Named("heliograph_produce_throttle_avg_seconds", "throttle_avg_ms", 1000),
)
_SUMMARY = (
    _Named("heliograph_flow_topics", "topics"),
    _Named("heliograph_flow_lag_records", "lag_records"),
    _Named("heliograph_flow_lag_seconds", "lag_ms", 1000),
    _Named("heliograph_flow_at_risk_records", "at_risk_records"),
    _Named("heliograph_flow_at_risk_seconds", "at_risk_seconds"),
    _Named("heliograph_throttle_bytes_per_second", "throttle_bytes_per_s"),
)
_COUNTED = (
    _Named("heliograph_flow_attaches_total", "attaches"),
    _Named("heliograph_refused_batches_total", "refused"),
    _Named("heliograph_foreign_offsets_total", "foreign"),
)
_BY_REASON = (
    _Named("heliograph_rebuilt_batches_total", "rebuilt"),
    _Named("heliograph_dropped_batches_total", "dropped"),
    _Named("heliograph_skipped_records_total", "skipped"),
)


def series(picture: Picture, most_lanes: int) -> Iterator[Sample]:
    """All of them; `most_lanes` of each flow have series of their own."""
    yield from _run(picture)
    yield from _targets(picture.meters.get("targets", {}))
    yield from _slots(picture.meters.get("slots", {}))
    for flow in picture.flows:
        yield from _flow(flow)
        yield from _jobs(flow)
        name, source, target = (flow.summary[field] for field in ("flow", "source", "target"))
        yield from lane_series((name, source, target), top(flow.lanes, most_lanes))
        yield from group_series((name, source, target), flow.groups, flow.lanes, most_lanes)


def _named(names: Sequence[_Named], labels: tuple[str, ...], found: Mapping[str, Any]) -> Iterator[Sample]:
    """What is not known has no sample: it is not zero."""
    for one in names:
        if (value := found[one.field]) is not None:
            yield Sample(one.metric, labels, value / one.per)


# -- the run ------------------------------------------------------------------------------------------------------------


def _run(picture: Picture) -> Iterator[Sample]:
    run = picture.run
    yield Sample("heliograph_run_info", (run["version"], run["host"], str(run["process"])), 1)
    yield Sample("heliograph_run_start_time_seconds", (), run["since_ms"] / 1000)
    yield Sample("heliograph_run_silent_seconds", (), picture.silent_s)
    yield Sample("heliograph_epoch", (), run["epoch"])
    yield Sample("heliograph_events_dropped_total", (), run["events_dropped"])
    epochs = picture.meters.get("epochs")
    if epochs:
        yield Sample("heliograph_epochs_total", (), epochs["ended"])
        yield Sample("heliograph_epoch_seconds_total", (), epochs["seconds"])
        yield Sample("heliograph_epoch_duration_seconds", (), epochs["last_s"])
    for flow, kind, count in picture.meters.get("events", ()):
        yield Sample("heliograph_events_total", (flow, kind), count)


def _targets(targets: Mapping[str, Row]) -> Iterator[Sample]:
    for name, found in targets.items():
        yield from _named(_TARGET_TOTALS, (name,), found["totals"])
        yield from _named(_TARGET_WINDOW, (name,), found["window"])


def _slots(slots: Mapping[str, Row]) -> Iterator[Sample]:
    for number, found in slots.items():
        for kind in KINDS:
            yield Sample("heliograph_slot_time_seconds_total", (number, kind), found["time"][kind])
        yield Sample("heliograph_slot_seconds_total", (number,), found["seconds"])
        yield Sample("heliograph_slot_io_ratio", (number,), found["io_ratio"])
        yield Sample("heliograph_slot_io_wait_ratio", (number,), found["io_wait_ratio"])
        yield Sample("heliograph_slot_memory_peak_bytes", (number,), found["memory_peak"])


# -- flows --------------------------------------------------------------------------------------------------------------


def _flow(flow: FlowPicture) -> Iterator[Sample]:
    summary = flow.summary
    name = summary["flow"]
    yield Sample("heliograph_flow_info", (name, summary["source"], summary["target"]), 1)
    for state in FLOW_STATES:
        yield Sample("heliograph_flow_state", (name, state), int(summary["state"] == state))
    for state in LANE_STATES:
        yield Sample("heliograph_flow_lanes", (name, state), summary["lanes_by_state"].get(state, 0))
    for words in Bottleneck:
        yield Sample("heliograph_flow_bottleneck", (name, words), int(summary["bottleneck"] == words))
    yield Sample("heliograph_flow_trouble", (name,), int(summary["state"] == "trouble"))
    yield from _named(_SUMMARY, (name,), summary)
    yield from _carried(name, [*(row["totals"] for row in flow.lanes), *([flow.gone] if flow.gone else [])])
    if flow.meters is not None:
        yield from _measured(name, flow.meters, flow.wan_cost_per_gb)


def _carried(flow: str, totals: Sequence[Row]) -> Iterator[Sample]:
    """Sums over all lanes, those that are gone too: a counter must not go back."""
    for path in ("raw", "rebuilt"):
        yield Sample("heliograph_batches_total", (flow, path), sum(total[f"{path}_batches"] for total in totals))
    for one in _COUNTED:
        yield Sample(one.metric, (flow,), sum(total[one.field] for total in totals))
    for one in _BY_REASON:
        reasons: Counter[str] = Counter()
        for total in totals:
            reasons.update(total[one.field])
        for reason, count in sorted(reasons.items()):
            yield Sample(one.metric, (flow, reason), count)


def _measured(flow: str, meters: Row, wan_cost_per_gb: float) -> Iterator[Sample]:
    totals, gaps = meters["totals"], meters["gaps"]
    yield from _named(_FLOW_TOTALS, (flow,), totals)
    yield from _named(_FLOW_WINDOW, (flow,), meters["window"])
    if wan_cost_per_gb:
        yield Sample("heliograph_wan_cost_total", (flow,), totals["wan_bytes"] / _GB * wan_cost_per_gb)
    for kind in KINDS:
        yield Sample("heliograph_flow_time_seconds_total", (flow, kind), totals.get("time", {}).get(kind, 0.0))
    bounds = [bound / 1000 for bound in LATENCY_BOUNDS_MS]
    latency = Buckets(bounds, totals["latency"], totals["latency_ms"] / 1000)
    yield Sample("heliograph_replication_latency_seconds", (flow,), latency)
    yield Sample("heliograph_handover_gap_seconds", (flow,), Buckets(GAP_BOUNDS_S, gaps["counts"], gaps["seconds"]))


# -- jobs ---------------------------------------------------------------------------------------------------------------


def _jobs(flow: FlowPicture) -> Iterator[Sample]:
    name = flow.summary["flow"]
    for job in flow.jobs:
        labels = (name, job["name"])
        yield Sample("heliograph_job_trouble", labels, int(bool(job["trouble"])))
        if job["ended_ms"]:
            yield Sample("heliograph_job_last_success_timestamp_seconds", labels, job["ended_ms"] / 1000)
        yield Sample("heliograph_job_duration_seconds", labels, job["took_ms"] / 1000)
        yield Sample("heliograph_job_actions_total", labels, job["actions"])
        yield Sample("heliograph_job_late_turns_total", labels, job["late"])
        if job["name"] == "canary" and job.get("detail"):
            yield from _canary(name, job["detail"])


def _canary(flow: str, found: Row) -> Iterator[Sample]:
    yield Sample("heliograph_canary_sent_total", (flow,), found["sent"])
    yield Sample("heliograph_canary_arrived_total", (flow,), found["arrived"])
    if found["last_ms"] is not None:
        yield Sample("heliograph_canary_latency_seconds", (flow,), found["last_ms"] / 1000)
    yield Sample("heliograph_canary_waiting_seconds", (flow,), found["waiting_ms"] / 1000)
    yield Sample("heliograph_canary_late", (flow,), int(found["late"]))
