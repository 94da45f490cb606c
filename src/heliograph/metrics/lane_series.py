"""Series of single lanes: ours, and those that MirrorMaker 2 has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from heliograph.metrics.picture import Row, lag_of
from heliograph.metrics.sample import Sample
from heliograph.metrics.table import MM2_KINDS, MM2_SOURCE

_TIMES = ("record_age_ms", "replication_latency_ms")


def lane_series(flow: tuple[str, str, str], lanes: Iterable[Row]) -> Iterator[Sample]:
    """`flow` is its name, its source and its target."""
    name, source, target = flow
    for row in lanes:
        partition = str(row["partition"])
        yield from _ours((name, row["topic"], partition), row)
        yield from _mm2((source, target, row["remote_topic"], partition), row)


def _ours(labels: tuple[str, ...], row: Row) -> Iterator[Sample]:
    yield Sample("heliograph_lane_state", (*labels, row["state"]), 1)
    yield Sample("heliograph_lane_lag_records", labels, lag_of(row))
    yield Sample("heliograph_lane_lag_seconds", labels, row["lag_ms"] / 1000)
    for path in ("raw", "rebuilt"):
        yield Sample("heliograph_lane_batches_total", (*labels, path), row["totals"][f"{path}_batches"])
    if row["position"] < 0:
        return
    yield Sample("heliograph_lane_position", labels, row["position"])
    yield Sample("heliograph_lane_source_end", labels, row["source_end"])
    if row["target_next"] >= 0:
        yield Sample("heliograph_lane_delta", labels, row["target_next"] - row["position"])


def _mm2(labels: tuple[str, ...], row: Row) -> Iterator[Sample]:
    yield Sample(f"{MM2_SOURCE}_record_count", labels, row["totals"]["records"])
    yield Sample(f"{MM2_SOURCE}_record_rate", labels, row["records_per_s"])
    yield Sample(f"{MM2_SOURCE}_byte_count", labels, row["totals"]["bytes"])
    yield Sample(f"{MM2_SOURCE}_byte_rate", labels, row["bytes_per_s"])
    for name in _TIMES:
        for end, value in zip(MM2_KINDS, row.get(name) or (), strict=False):
            yield Sample(f"{MM2_SOURCE}_{name}{end}", labels, value)
