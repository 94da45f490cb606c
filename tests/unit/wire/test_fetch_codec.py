"""Fetch 12 and 13 agree with kafka-python's messages, tagged fields included."""

from __future__ import annotations

import uuid

import pytest
from kafka.protocol.consumer import FetchRequest, FetchResponse

from heliograph.errors import HeliographError
from heliograph.wire.fetch_codec import (
    FetchedPartition,
    FetchPartition,
    FetchSettings,
    FetchTopic,
    decode_fetch,
    encode_fetch,
)

ID = uuid.UUID("0102030405060708090a0b0c0d0e0f10")
OTHER_ID = uuid.UUID(int=7)
SETTINGS = FetchSettings(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, read_committed=True, rack="räck-1")
TOPICS = [
    FetchTopic("orders", ID.bytes, [FetchPartition(0, 5, 1 << 40, 4, 1 << 20), FetchPartition(300, -1, 0, -1, 1)]),
    FetchTopic("t" * 249, OTHER_ID.bytes, [FetchPartition(1, 0, 7, 0, 100)]),
]
Topic = FetchResponse.FetchableTopicResponse
Partition = Topic.PartitionData


def response(version: int, topics: list[Topic], throttle_ms: int = 0, error_code: int = 0) -> bytes:
    """As it comes after the frame size: correlation id 77, no header tags."""
    message = FetchResponse(throttle_time_ms=throttle_ms, error_code=error_code, session_id=4711, responses=topics)
    return (77).to_bytes(4, "big") + b"\0" + message.encode(version=version)


def partition(index: int, records: bytes | None, **fields: object) -> Partition:
    usual = {"error_code": 0, "high_watermark": 10, "last_stable_offset": 9, "log_start_offset": 1}
    usual |= {"aborted_transactions": None, "preferred_read_replica": -1}
    return Partition(partition_index=index, records=records, **(usual | fields))


@pytest.mark.parametrize("version", [12, 13])
def test_request_is_what_kafka_python_would_send(version: int) -> None:
    theirs = FetchRequest(
        replica_id=-1,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 << 20,
        isolation_level=1,
        session_id=0,
        session_epoch=-1,
        topics=[
            FetchRequest.FetchTopic(
                topic=topic.name,
                topic_id=uuid.UUID(bytes=topic.topic_id),
                partitions=[
                    FetchRequest.FetchTopic.FetchPartition(
                        partition=wanted.partition,
                        current_leader_epoch=wanted.current_leader_epoch,
                        fetch_offset=wanted.offset,
                        last_fetched_epoch=wanted.last_fetched_epoch,
                        log_start_offset=-1,
                        partition_max_bytes=wanted.max_bytes,
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in TOPICS
        ],
        forgotten_topics_data=[],
        rack_id="räck-1",
    )
    theirs.API_VERSION = version
    theirs.with_header(correlation_id=-5, client_id="heliögraph")
    ours = encode_fetch(version, -5, "heliögraph", SETTINGS, TOPICS)
    assert ours == theirs.encode(version=version, header=True, framed=True)


def test_golden_request() -> None:
    settings = FetchSettings(max_wait_ms=100, min_bytes=1, max_bytes=1024, read_committed=False)
    request = encode_fetch(12, 3, "c", settings, [FetchTopic("t", bytes(16), [FetchPartition(2, 6, 40, 5, 512)])])
    assert (
        request.hex()
        == (
            "0000004e"  # frame
            "0001000c00000003000163" + "00"  # key 1, version 12, correlation 3, client c, no tags
            "ffffffff00000064000000010000040000"  # consumer, wait, bytes, read_uncommitted
            "00000000ffffffff"  # no session
            "02" + "0274" + "02"  # one topic, its name, one partition
            "00000002000000060000000000000028" + "00000005ffffffffffffffff00000200" + "00" + "00"
            "01" + "01" + "00"  # nothing forgotten, no rack
        )
    )


@pytest.mark.parametrize("version", [12, 13])
def test_response_gives_every_field_and_the_place_of_the_records(version: int) -> None:
    aborted = [Partition.AbortedTransaction(producer_id=p, first_offset=o) for p, o in ((1 << 50, 4), (2, 8))]
    records = b"r" * 300
    full = partition(
        300,
        records,
        error_code=74,
        high_watermark=1 << 60,
        aborted_transactions=aborted,
        preferred_read_replica=3,
        diverging_epoch=Partition.EpochEndOffset(epoch=6, end_offset=66),
        current_leader=Partition.LeaderIdAndEpoch(leader_id=2, leader_epoch=9),
        snapshot_id=Partition.SnapshotId(end_offset=1, epoch=1),
    )
    topics = [
        Topic(topic="orders", topic_id=ID, partitions=[full, partition(1, None)]),
        Topic(topic="tøpic", topic_id=OTHER_ID, partitions=[partition(0, b"last")]),
    ]
    buffer = bytearray(response(version, topics, throttle_ms=12, error_code=0))
    result = decode_fetch(version, memoryview(buffer))
    names = ("orders", "tøpic") if version == 12 else (ID.bytes, OTHER_ID.bytes)
    assert (result.correlation_id, result.throttle_ms, result.error_code, result.session_id) == (77, 12, 0, 4711)
    first, empty, last = result.partitions
    assert first == FetchedPartition(
        topic=names[0],
        partition=300,
        error_code=74,
        high_watermark=1 << 60,
        last_stable_offset=9,
        log_start_offset=1,
        diverging_epoch=6,
        diverging_end=66,
        leader_id=2,
        leader_epoch=9,
        preferred_replica=3,
        aborted=[(1 << 50, 4), (2, 8)],
        start=first.start,
        end=first.start + 300,
    )
    assert buffer[first.start : first.end] == records
    assert (empty.partition, empty.end - empty.start, empty.aborted) == (1, 0, [])
    assert (empty.diverging_epoch, empty.diverging_end, empty.leader_id, empty.leader_epoch) == (-1, -1, -1, -1)
    assert (last.topic, buffer[last.start : last.end]) == (names[1], b"last")


def test_request_level_error_and_no_topics_are_read() -> None:
    result = decode_fetch(13, response(13, [], error_code=100))
    assert (result.error_code, result.partitions) == (100, [])


def test_unknown_tags_are_passed_over() -> None:
    plain = response(12, [Topic(topic="t", topic_id=ID, partitions=[partition(0, b"abc")])])
    strange = b"\x01\x63\x02hi"  # one field, tag 99, two bytes
    at = plain.index(b"abc") + 3
    assert plain[at:] == bytes(3)
    tagged = plain[:4] + strange + plain[5:at] + strange * 3
    before, after = decode_fetch(12, plain).partitions[0], decode_fetch(12, tagged).partitions[0]
    assert tagged[after.start : after.end] == b"abc"
    after.start, after.end = before.start, before.end
    assert after == before


@pytest.mark.parametrize("version", [12, 13])
def test_answer_that_is_cut_short_is_refused(version: int) -> None:
    aborted = [Partition.AbortedTransaction(producer_id=1, first_offset=4)]
    topic = Topic(topic="t", topic_id=ID, partitions=[partition(0, b"abc", aborted_transactions=aborted)])
    whole = response(version, [topic])
    for end in range(len(whole)):
        with pytest.raises(HeliographError, match=f"Fetch {version} response ends"):
            decode_fetch(version, whole[:end])


@pytest.mark.parametrize("version", [4, 11, 14, 18])
def test_other_versions_are_refused_with_the_allowed_ones(version: int) -> None:
    with pytest.raises(HeliographError, match=f"Fetch version {version} .* 12 to 13"):
        encode_fetch(version, 1, "c", SETTINGS, TOPICS)
    with pytest.raises(HeliographError, match="12 to 13"):
        decode_fetch(version, b"")
