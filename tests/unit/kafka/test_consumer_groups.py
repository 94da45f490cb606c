"""What a broker says of a group's offsets."""

from __future__ import annotations

from typing import Any

from kafka.protocol.consumer import OffsetFetchResponse

from heliograph.kafka.consumer_groups import Committed, _offsets

GROUP = OffsetFetchResponse.OffsetFetchResponseGroup
TOPIC = GROUP.OffsetFetchResponseTopics
PART = TOPIC.OffsetFetchResponsePartitions


def part(number: int, offset: int, metadata: str | None = "", code: int = 0) -> Any:
    return PART(
        partition_index=number,
        committed_offset=offset,
        committed_leader_epoch=-1,
        metadata=metadata,
        error_code=code,
    )


def test_a_partition_without_an_offset_or_with_an_error_is_left_out() -> None:
    """testNoCheckpointForTopicWithNullOffsetAndMetadata: brokers say -1 where nothing is committed."""
    parts = [part(0, 7, "noted"), part(1, -1), part(2, 5, code=3), part(3, 0, None)]
    group = GROUP(group_id="g", topics=[TOPIC(name="orders", partitions=parts)], error_code=0)
    assert dict(_offsets(group)) == {("orders", 0): Committed(7, "noted"), ("orders", 3): Committed(0)}
