"""Series of consumer groups: what each would lose and repeat if the source died now, and MirrorMaker 2's latency of checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heliograph.metrics.picture import ALL_LANES, Row
from heliograph.metrics.sample import Sample
from heliograph.metrics.table import MM2_CHECKPOINT, MM2_KINDS


def group_series(
    flow: tuple[str, str, str], groups: Sequence[Row], lanes: Sequence[Row], most: int
) -> Iterator[Sample]:
    """`groups` has a row for each group and partition; `most` of them have series of their own."""
    name, source, target = flow
    places = {(row["topic"], row["partition"]): row for row in lanes}
    by_group: dict[str, list[Row]] = {}
    for row in groups:
        by_group.setdefault(row["group"], []).append(row)
    for group, rows in by_group.items():
        risks = [_at_risk(row, places.get((row["topic"], row["partition"]))) for row in rows]
        yield Sample("heliograph_group_at_risk_records", (name, group), sum(records for records, _ in risks))
        yield Sample("heliograph_group_at_risk_seconds", (name, group), max(waits for _, waits in risks))
        repeated = [row["repeat"] for row in rows if row["repeat"] is not None]
        if repeated:
            yield Sample("heliograph_group_repeat_records", (name, group), sum(repeated))
    for row in _slowest(groups, most):
        labels = (source, target, row["group"], row["remote_topic"], str(row["partition"]))
        for end, value in zip(MM2_KINDS, row["latency_ms"], strict=True):
            yield Sample(f"{MM2_CHECKPOINT}_checkpoint_latency_ms{end}", labels, value)


def _at_risk(row: Row, lane: Row | None) -> tuple[int, float]:
    """Records that a group has not read and that are not copied, and for how many seconds the oldest waits."""
    if lane is None or lane["position"] < 0:
        return 0, 0.0
    records = max(0, lane["source_end"] - max(lane["position"], row["committed"]))
    return records, lane["lag_ms"] / 1000 if records else 0.0


def _slowest(groups: Sequence[Row], most: int) -> list[Row]:
    told = [row for row in groups if row["latency_ms"] is not None]
    if most == ALL_LANES or len(told) <= most:
        return told
    return sorted(told, key=lambda row: row["latency_ms"][0], reverse=True)[:most]
