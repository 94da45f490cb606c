"""Every metric: its name, what it is, its unit, its labels and its meaning. What is not here is not told (series.py holds itself to it).

MirrorMaker 2's names and labels come as a JMX exporter makes them of its MBeans, so that dashboards for it work; ours are in base
units. docs/metrics.md is written from this table (manual.py).
"""

from __future__ import annotations

from dataclasses import dataclass

COUNTER, GAUGE, HISTOGRAM, UNTYPED = "counter", "gauge", "histogram", "untyped"

FLOW = ("flow",)
LANE = ("flow", "topic", "partition")
MM2_LANE = ("source", "target", "topic", "partition")
MM2_GROUP = ("source", "target", "group", "topic", "partition")

MM2_SOURCE = "kafka_connect_mirror_mirrorsourceconnector"
MM2_CHECKPOINT = "kafka_connect_mirror_mirrorcheckpointconnector"
MM2_KINDS = ("", "_min", "_max", "_avg")
"""Of a time: the last one, then over one to some ten seconds; the order of the figures that lanes report."""


@dataclass(frozen=True)
class Metric:
    """One row. `per_lane`: there may be thousands of series, which the option metrics.lanes limits."""

    name: str
    kind: str
    unit: str
    labels: tuple[str, ...]
    meaning: str
    per_lane: bool = False


def _of(labels: tuple[str, ...], *rows: tuple[str, str, str, str]) -> tuple[Metric, ...]:
    return tuple(Metric(name, kind, unit, labels, meaning) for name, kind, unit, meaning in rows)


def _per_lane(labels: tuple[str, ...], *rows: tuple[str, str, str, str]) -> tuple[Metric, ...]:
    return tuple(Metric(name, kind, unit, labels, meaning, per_lane=True) for name, kind, unit, meaning in rows)


_TIMES = {
    "": "the last one",
    "_min": "the least since the task that carries the lane began",
    "_max": "the most since then",
    "_avg": "the mean since then",
}


def _times(name: str, labels: tuple[str, ...], meaning: str) -> tuple[Metric, ...]:
    return tuple(
        Metric(f"{name}{end}", UNTYPED, "ms", labels, f"{meaning}: {_TIMES[end]}.", per_lane=True) for end in MM2_KINDS
    )


_RUN = (
    *_of(
        ("version", "host", "process"),
        ("heliograph_run_info", GAUGE, "", "1: the run whose metrics these are."),
    ),
    *_of(
        (),
        ("heliograph_run_start_time_seconds", GAUGE, "seconds", "When the run began, since 1970."),
        (
            "heliograph_run_silent_seconds",
            GAUGE,
            "seconds",
            "How long ago the run was last heard of by the server that tells these metrics: 1 to 2 while it lives.",
        ),
        ("heliograph_epoch", GAUGE, "", "The number of the epoch that goes on."),
        ("heliograph_epochs_total", COUNTER, "", "Epochs that ended."),
        ("heliograph_epoch_seconds_total", COUNTER, "seconds", "How long they lasted, in sum."),
        ("heliograph_epoch_duration_seconds", GAUGE, "seconds", "How long the last one lasted."),
        (
            "heliograph_events_dropped_total",
            COUNTER,
            "",
            "Events that no topic has: the target did not take them for too long.",
        ),
    ),
    *_of(
        ("flow", "kind"),
        ("heliograph_events_total", COUNTER, "", "Events of this run, by kind (`heliograph events FILE`)."),
    ),
)

_FLOWS = (
    *_of(("flow", "source", "target"), ("heliograph_flow_info", GAUGE, "", "1: the flows of the run.")),
    *_of(
        ("flow", "state"),
        ("heliograph_flow_state", GAUGE, "", "1 for the state that the flow is in, 0 for the others."),
        ("heliograph_flow_lanes", GAUGE, "", "Lanes by state."),
    ),
    *_of(
        ("flow", "bottleneck"),
        (
            "heliograph_flow_bottleneck",
            GAUGE,
            "",
            "1 for what keeps the flow from copying faster, in words, 0 for the other words.",
        ),
    ),
    *_of(
        FLOW,
        ("heliograph_flow_trouble", GAUGE, "", "1 while the flow cannot be planned or a cluster does not answer."),
        ("heliograph_flow_topics", GAUGE, "", "Topics that the flow copies."),
        ("heliograph_flow_lag_records", GAUGE, "records", "Records that the source has and the target has not."),
        (
            "heliograph_flow_lag_seconds",
            GAUGE,
            "seconds",
            "How long the oldest record waits that is not copied yet; 0 when there is none.",
        ),
        (
            "heliograph_flow_at_risk_records",
            GAUGE,
            "records",
            "Records that would be lost if the source died now: all that is not on the target yet.",
        ),
        (
            "heliograph_flow_at_risk_seconds",
            GAUGE,
            "seconds",
            "How far the target would be behind the source in time, if that died now.",
        ),
        ("heliograph_flow_records_total", COUNTER, "records", "Records that the target acknowledged."),
        ("heliograph_flow_bytes_total", COUNTER, "bytes", "Bytes of batches that the target acknowledged."),
        ("heliograph_flow_records_per_second", GAUGE, "records", "Of the last seconds."),
        ("heliograph_flow_bytes_per_second", GAUGE, "bytes", "Of the last seconds."),
        ("heliograph_flow_attaches_total", COUNTER, "", "How often lanes found out where to go on."),
        ("heliograph_refused_batches_total", COUNTER, "batches", "Batches that the target refused."),
        (
            "heliograph_foreign_offsets_total",
            COUNTER,
            "offsets",
            "Offsets of remote partitions that somebody else took.",
        ),
        ("heliograph_throttle_bytes_per_second", GAUGE, "bytes", "The flow's limit; 0: none."),
        (
            "heliograph_wan_bytes_total",
            COUNTER,
            "bytes",
            "Bytes that came from the source, compressed as they are there, with what Kafka's protocol adds.",
        ),
        (
            "heliograph_wan_cost_total",
            COUNTER,
            "",
            "What they cost, by `wan.cost.per.gb`, in its currency; only where that is set.",
        ),
        (
            "heliograph_replication_latency_seconds",
            HISTOGRAM,
            "seconds",
            "From the timestamp of the newest record of a batch to its acknowledgement by the target, counted in records.",
        ),
        (
            "heliograph_handover_gap_seconds",
            HISTOGRAM,
            "seconds",
            "How long a lane was read by nobody when it passed from a task to the next, counted in lanes.",
        ),
    ),
    *_of(
        ("flow", "path"),
        (
            "heliograph_batches_total",
            COUNTER,
            "batches",
            "Batches that were acknowledged, by path: `raw` as they are on the source, `rebuilt` anew.",
        ),
    ),
    *_of(
        ("flow", "reason"),
        ("heliograph_rebuilt_batches_total", COUNTER, "batches", "Batches of the source that took the record path."),
        ("heliograph_dropped_batches_total", COUNTER, "batches", "Batches of the source that are not to be copied."),
    ),
    *_of(
        ("flow", "how"),
        (
            "heliograph_skipped_records_total",
            COUNTER,
            "records",
            "Records that the target does not take, by what became of them: skip, dead-letter.",
        ),
    ),
    *_of(
        ("flow", "spent_on"),
        (
            "heliograph_flow_time_seconds_total",
            COUNTER,
            "seconds",
            "What the time of the flow's slots went to: waiting for `source` or `target`, `throttled`, or `busy`.",
        ),
    ),
)

_READING = _of(
    FLOW,
    ("heliograph_fetch_requests_total", COUNTER, "requests", "Answers of the source to requests for records."),
    ("heliograph_fetch_bytes_total", COUNTER, "bytes", "Bytes of records in them."),
    ("heliograph_fetch_requests_per_second", GAUGE, "requests", "Of the last 15 s (Kafka's `fetch-rate`)."),
    ("heliograph_fetch_size_avg_bytes", GAUGE, "bytes", "The mean of the last 15 s (`fetch-size-avg`)."),
    ("heliograph_fetch_size_max_bytes", GAUGE, "bytes", "The most of the last 30 to 60 s (`fetch-size-max`)."),
    (
        "heliograph_fetch_throttle_avg_seconds",
        GAUGE,
        "seconds",
        "How long brokers held answers back by a quota, the mean of the last 15 s (`fetch-throttle-time-avg`).",
    ),
    (
        "heliograph_fetch_throttle_max_seconds",
        GAUGE,
        "seconds",
        "The same, the most of the last 30 to 60 s (`fetch-throttle-time-max`).",
    ),
)

_WRITING = (
    *_of(
        FLOW,
        ("heliograph_batch_size_avg_bytes", GAUGE, "bytes", "The mean of the last 15 s (`batch-size-avg`)."),
        ("heliograph_batch_size_max_bytes", GAUGE, "bytes", "The most of the last 30 to 60 s (`batch-size-max`)."),
        (
            "heliograph_record_retries_total",
            COUNTER,
            "records",
            "Records that were sent and not acknowledged: they are sent again, or found on the target.",
        ),
        ("heliograph_record_retries_per_second", GAUGE, "records", "Of the last 15 s (`record-retry-rate`)."),
    ),
    *_of(
        ("target",),
        ("heliograph_produce_requests_total", COUNTER, "requests", "Answers of the target to requests with batches."),
        ("heliograph_produce_request_seconds_total", COUNTER, "seconds", "From sending to answer, in sum."),
        ("heliograph_produce_request_avg_seconds", GAUGE, "seconds", "The mean of the last 15 s."),
        ("heliograph_produce_request_max_seconds", GAUGE, "seconds", "The most of the last 30 to 60 s."),
        (
            "heliograph_produce_requests_in_flight",
            GAUGE,
            "requests",
            "Requests on their way, the mean of the last 15 s (`requests-in-flight`).",
        ),
        (
            "heliograph_produce_throttle_avg_seconds",
            GAUGE,
            "seconds",
            "How long brokers held answers back by a quota, the mean of the last 15 s (`produce-throttle-time-avg`).",
        ),
    ),
)

_SLOTS = (
    *_of(
        ("slot", "spent_on"),
        (
            "heliograph_slot_time_seconds_total",
            COUNTER,
            "seconds",
            "What a slot's time went to: waiting for `source` or `target`, `throttled`, or `busy`.",
        ),
    ),
    *_of(
        ("slot",),
        ("heliograph_slot_seconds_total", COUNTER, "seconds", "For how long tasks were in the slot."),
        (
            "heliograph_slot_io_ratio",
            GAUGE,
            "ratio",
            (
                "CPU time of the slot's process in the operating system, as a share of the last 15 s. Stands in for Kafka's "
                "`io-ratio`: reads and writes of sockets are not timed one by one, and other system calls are in it too."
            ),
        ),
        (
            "heliograph_slot_io_wait_ratio",
            GAUGE,
            "ratio",
            "Share of the last 15 s in which its event loop slept: for a socket, or for a limit's next bytes (`io-wait-ratio`).",
        ),
        ("heliograph_slot_memory_peak_bytes", GAUGE, "bytes", "The most that batches took in its memory, this epoch."),
    ),
)

_LANES = (
    *_per_lane(
        LANE,
        ("heliograph_lane_lag_records", GAUGE, "records", "Source end minus position."),
        ("heliograph_lane_lag_seconds", GAUGE, "seconds", "How long its oldest record waits that is not copied yet."),
        ("heliograph_lane_position", GAUGE, "offset", "The source offset before which everything is on the target."),
        ("heliograph_lane_source_end", GAUGE, "offset", "Where the source partition ends, as its reader last heard."),
        ("heliograph_lane_delta", GAUGE, "offsets", "Target offset minus source offset."),
    ),
    *_per_lane((*LANE, "state"), ("heliograph_lane_state", GAUGE, "", "1 for the state that the lane is in.")),
    *_per_lane(
        (*LANE, "path"),
        ("heliograph_lane_batches_total", COUNTER, "batches", "As `heliograph_batches_total`, of one lane."),
    ),
    *_per_lane(
        MM2_LANE,
        (f"{MM2_SOURCE}_record_count", UNTYPED, "records", "Records that the target acknowledged."),
        (f"{MM2_SOURCE}_record_rate", UNTYPED, "records/s", "Of the last seconds."),
        (f"{MM2_SOURCE}_byte_count", UNTYPED, "bytes", "Bytes of batches that the target acknowledged."),
        (f"{MM2_SOURCE}_byte_rate", UNTYPED, "bytes/s", "Of the last seconds."),
    ),
    *_times(f"{MM2_SOURCE}_record_age_ms", MM2_LANE, "How old records were when they were read"),
    *_times(f"{MM2_SOURCE}_replication_latency_ms", MM2_LANE, "How old records were when the target acknowledged them"),
)

_GROUPS = (
    *_of(
        ("flow", "group"),
        (
            "heliograph_group_at_risk_records",
            GAUGE,
            "records",
            "Records that the group would never read if the source died now: not read by it and not on the target.",
        ),
        (
            "heliograph_group_at_risk_seconds",
            GAUGE,
            "seconds",
            "How long the oldest of them waits to be copied.",
        ),
        (
            "heliograph_group_repeat_records",
            GAUGE,
            "offsets",
            "What the group would read again on the target: its newest checkpoints there against its commits on the source.",
        ),
    ),
    *_times(
        f"{MM2_CHECKPOINT}_checkpoint_latency_ms",
        MM2_GROUP,
        "From a look at a group's offsets to its written checkpoint",
    ),
)

_JOBS = (
    *_of(
        ("flow", "job"),
        ("heliograph_job_trouble", GAUGE, "", "1 while something keeps the job from its work."),
        (
            "heliograph_job_last_success_timestamp_seconds",
            GAUGE,
            "seconds",
            "When its last good turn ended, since 1970.",
        ),
        ("heliograph_job_duration_seconds", GAUGE, "seconds", "How long its last turn took."),
        ("heliograph_job_actions_total", COUNTER, "", "Changes that it made."),
        ("heliograph_job_late_turns_total", COUNTER, "", "Turns that took longer than its interval."),
    ),
    *_of(
        FLOW,
        ("heliograph_canary_sent_total", COUNTER, "", "Events that the canary sent (`canary.enabled`)."),
        ("heliograph_canary_arrived_total", COUNTER, "", "Those that were read on the target."),
        ("heliograph_canary_latency_seconds", GAUGE, "seconds", "How long the last one took."),
        ("heliograph_canary_waiting_seconds", GAUGE, "seconds", "For how long the oldest one is awaited; 0: none is."),
        ("heliograph_canary_late", GAUGE, "", "1 while it takes longer than `canary.limit.ms`."),
    ),
)

SECTIONS: dict[str, tuple[Metric, ...]] = {
    "The run": _RUN,
    "Flows": _FLOWS,
    "Reading from the source": _READING,
    "Writing to the target": _WRITING,
    "Slots": _SLOTS,
    "Lanes": _LANES,
    "Consumer groups": _GROUPS,
    "Jobs and the canary": _JOBS,
}
METRICS: dict[str, Metric] = {metric.name: metric for rows in SECTIONS.values() for metric in rows}
