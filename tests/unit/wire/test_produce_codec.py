"""Produce 9 to 13 agrees with kafka-python's messages, tagged fields included."""

from __future__ import annotations

import uuid

import pytest
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from heliograph.errors import HeliographError
from heliograph.wire.produce_codec import ProducedPartition, ProduceTopic, decode_produce, encode_produce

ID = uuid.UUID("0102030405060708090a0b0c0d0e0f10")
OTHER_ID = uuid.UUID(int=7)
ALL_VERSIONS = range(9, 14)
Topic = ProduceResponse.TopicProduceResponse
Partition = Topic.PartitionProduceResponse


def response(version: int, topics: list[Topic], **fields: object) -> bytes:
    """As it comes after the frame size: correlation id 77, no header tags."""
    message = ProduceResponse(responses=topics, **({"throttle_time_ms": 0} | fields))
    return (77).to_bytes(4, "big") + b"\0" + message.encode(version=version)


def partition(index: int, **fields: object) -> Partition:
    usual = {"error_code": 0, "base_offset": 1000, "log_append_time_ms": -1, "log_start_offset": 5}
    usual |= {"record_errors": [], "error_message": None}
    return Partition(index=index, **(usual | fields))


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_request_is_what_kafka_python_would_send(version: int) -> None:
    batches = [b"first batch", memoryview(b"..second." * 100)[2:], bytearray(b"third" * 5000)]
    topics = [
        ProduceTopic("A.orders", ID.bytes, [(0, batches[0]), (300, batches[1])]),
        ProduceTopic("t" * 249, OTHER_ID.bytes, [(1, batches[2])]),
    ]
    buffers = encode_produce(version, 12, "heliögraph", 30_000, topics)
    theirs = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic.name,
                topic_id=uuid.UUID(bytes=topic.topic_id),
                partition_data=[
                    ProduceRequest.TopicProduceData.PartitionProduceData(index=index, records=bytes(records))
                    for index, records in topic.partitions
                ],
            )
            for topic in topics
        ],
    )
    theirs.API_VERSION = version
    theirs.with_header(correlation_id=12, client_id="heliögraph")
    assert b"".join(buffers) == theirs.encode(version=version, header=True, framed=True)
    assert [buffer for buffer in buffers if any(buffer is batch for batch in batches)] == batches


def test_golden_request() -> None:
    topic = ProduceTopic("t", bytes(16), [(2, b"BATCH")])
    assert (
        b"".join(encode_produce(9, 3, "c", 1000, [topic])).hex()
        == (
            "00000024"  # frame
            "0000000900000003000163" + "00"  # key 0, version 9, correlation 3, client c, no tags
            "00" + "ffff" + "000003e8"  # no transactional id, all replicas, timeout
            "02" + "0274" + "02"  # one topic, its name, one partition
            "00000002" + "06" + "4241544348" + "00" + "00" + "00"
        )
    )


def test_request_without_topics_is_framed() -> None:
    [only] = encode_produce(13, 3, "c", 1000, [])
    assert int.from_bytes(only[:4], "big") == len(only) - 4


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_response_gives_every_field(version: int) -> None:
    refused = partition(
        300,
        error_code=87,
        base_offset=-1,
        error_message="One or more records have been rejected.",
        record_errors=[
            Partition.BatchIndexAndErrorMessage(batch_index=4, batch_index_error_message="no key"),
            Partition.BatchIndexAndErrorMessage(batch_index=9, batch_index_error_message=None),
        ],
        current_leader=Partition.LeaderIdAndEpoch(leader_id=2, leader_epoch=9),
    )
    topics = [
        Topic(name="A.orders", topic_id=ID, partition_responses=[partition(0, log_append_time_ms=1 << 41), refused]),
        Topic(name="tøpic", topic_id=OTHER_ID, partition_responses=[partition(1, base_offset=1 << 60)]),
    ]
    endpoints = [ProduceResponse.NodeEndpoint(node_id=2, host="broker", port=9092, rack=None)]
    result = decode_produce(
        version, memoryview(response(version, topics, throttle_time_ms=40, node_endpoints=endpoints))
    )
    names = ("A.orders", "tøpic") if version < 13 else (ID.bytes, OTHER_ID.bytes)
    leader = (2, 9) if version >= 10 else (-1, -1)
    message = "One or more records have been rejected. Record 4: no key Record 9:"
    assert (result.correlation_id, result.throttle_ms) == (77, 40)
    assert result.partitions == [
        ProducedPartition(names[0], 0, 0, 1000, 1 << 41, 5, "", -1, -1),
        ProducedPartition(names[0], 300, 87, -1, -1, 5, message, *leader),
        ProducedPartition(names[1], 1, 0, 1 << 60, -1, 5, "", -1, -1),
    ]


def test_unknown_tags_are_passed_over() -> None:
    plain = response(12, [Topic(name="t", topic_id=ID, partition_responses=[partition(0)])])
    strange = b"\x01\x63\x02hi"  # one field, tag 99, two bytes
    assert plain[-8:] == bytes(8)  # no message, two ends without tags, no throttle, no tags
    tagged = plain[:4] + strange + plain[5:-7] + strange * 2 + bytes(4) + strange
    assert decode_produce(12, tagged) == decode_produce(12, plain)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_answer_that_is_cut_short_is_refused(version: int) -> None:
    whole = response(version, [Topic(name="t", topic_id=ID, partition_responses=[partition(0)])])
    for end in range(len(whole)):
        with pytest.raises(HeliographError, match=f"Produce {version} response ends"):
            decode_produce(version, whole[:end])


@pytest.mark.parametrize("version", [3, 8, 14])
def test_other_versions_are_refused_with_the_allowed_ones(version: int) -> None:
    with pytest.raises(HeliographError, match=f"Produce version {version} .* 9 to 13"):
        encode_produce(version, 1, "c", 1, [])
    with pytest.raises(HeliographError, match="9 to 13"):
        decode_produce(version, b"")
