"""Offsets of a source connector in Kafka Connect's form, and what of them may be set.

Connect keeps the offset of the last record that was copied: the next one is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from heliograph.model.lanes import LaneId, LedgerEntry
from heliograph.replication.starts import Partition, Span

Begins = dict[str, int | None]
"""By lane: the source offset at which it is to begin anew; None: where a lane begins that was never copied."""


class BadOffset(Exception):
    """An offset that is not taken; the message says why."""


def shown(cluster: str, entries: Iterable[LedgerEntry]) -> list[dict[str, Any]]:
    """As MirrorMaker 2's source connector stores them; of a lane that copied nothing there is none."""
    known = sorted((entry.lane, entry.source_next) for entry in entries if entry.source_next > 0)
    return [
        {
            "partition": {"cluster": cluster, "partition": lane.partition, "topic": lane.topic},
            "offset": {"offset": position - 1},
        }
        for lane, position in known
    ]


def begins(rows: Sequence[Mapping[str, Any]], source: str, spans: Mapping[LaneId, Span]) -> Begins:
    """Where lanes are to begin by a request; BadOffset where one cannot. `spans` are all lanes of the flow."""
    lanes = {(lane.topic, lane.partition): lane for lane in spans}
    found: Begins = {}
    for row in rows:
        lane = _lane(row["partition"], source, lanes)
        found[lane.key] = _begin(row, lane, spans[lane])
    return found


def _lane(partition: Mapping[str, Any], source: str, lanes: Mapping[Partition, LaneId]) -> LaneId:
    for key in ("cluster", "topic", "partition"):
        if key not in partition:
            raise BadOffset(f"Source partition {_java(partition)} is missing the '{key}' key, which is required")
    number = partition["partition"]
    if isinstance(number, bool) or not isinstance(number, int):
        raise BadOffset(_invalid(partition, "partition", "must be an integer"))
    if number < 0:
        raise BadOffset(_invalid(partition, "partition", "cannot be negative"))
    if partition["cluster"] != source:
        raise BadOffset(_invalid(partition, "cluster", f"must be {source}, the connector's source"))
    lane = lanes.get((str(partition["topic"]), number))
    if lane is None:
        raise BadOffset(f"Source partition {_java(partition)} is none that this connector copies")
    return lane


def _begin(row: Mapping[str, Any], lane: LaneId, span: Span) -> int | None:
    offset, partition = row["offset"], _java(row["partition"])
    if offset is None:
        return None
    if "offset" not in offset:
        raise BadOffset(
            f"Source offset {_java(offset)} for source partition {partition} is missing the 'offset' key, which is required"
        )
    number = offset["offset"]
    of = f"Source offset {_java(offset)} for source partition {partition} has an invalid value {number} for the 'offset' key"
    if isinstance(number, bool) or not isinstance(number, int):
        raise BadOffset(f"{of}, which must be an integer")
    if number < 0:
        raise BadOffset(f"{of}, which cannot be negative")
    if number + 1 > span.end:
        raise BadOffset(
            f"{of}: {lane.topic}-{lane.partition} ends at {span.end}, so that its last record is {span.end - 1}"
        )
    return max(number + 1, span.start)


def _invalid(partition: Mapping[str, Any], key: str, why: str) -> str:
    return f"Source partition {_java(partition)} has an invalid value {partition[key]} for the '{key}' key, which {why}"


def _java(fields: Mapping[str, Any]) -> str:
    """As Java writes a map."""
    return f"{{{', '.join(f'{key}={fields[key]}' for key in sorted(fields))}}}"
