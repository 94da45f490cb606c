"""Fetch and Produce round trips through kafka-python's messages, for any content; and the records of MirrorMaker 2."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.producer import ProduceRequest

from heliograph.errors import HeliographError
from heliograph.wire import mm2
from heliograph.wire.fetch_codec import FetchPartition, FetchSettings, FetchTopic, decode_fetch, encode_fetch
from heliograph.wire.produce_codec import ProduceTopic, decode_produce, encode_produce

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
names = st.text(st.sampled_from("abcXYZ019._-"), min_size=1, max_size=249)
topic_ids = st.binary(min_size=16, max_size=16).filter(any)
texts = st.text(max_size=20)

fetch_partitions = st.builds(FetchPartition, int32, int32, int64, int32, int32)
fetch_topics = st.builds(FetchTopic, names, topic_ids, st.lists(fetch_partitions, max_size=4))
fetch_settings = st.builds(
    FetchSettings,
    int32,
    int32,
    int32,
    st.booleans(),
    names,
    st.tuples(int32, int32),
    st.lists(fetch_topics, max_size=3),
)
produce_topics = st.builds(
    ProduceTopic, names, topic_ids, st.lists(st.tuples(int32, st.binary(max_size=200)), max_size=4)
)


@given(version=st.sampled_from([12, 13]), settings=fetch_settings, topics=st.lists(fetch_topics, max_size=4))
def test_fetch_request_is_understood_by_kafka_python(
    version: int, settings: FetchSettings, topics: list[FetchTopic]
) -> None:
    encoded = encode_fetch(version, 4, "client", settings, topics)
    read = FetchRequest.decode(encoded, version=version, header=True, framed=True)
    assert (read.max_wait_ms, read.min_bytes, read.max_bytes) == (
        settings.max_wait_ms,
        settings.min_bytes,
        settings.max_bytes,
    )
    assert (read.isolation_level, read.rack_id) == (int(settings.read_committed), settings.rack)
    assert (read.session_id, read.session_epoch) == settings.session
    for theirs, ours in zip(read.forgotten_topics_data, settings.forgotten, strict=True):
        assert (theirs.topic == ours.name) if version == 12 else (theirs.topic_id == uuid.UUID(bytes=ours.topic_id))
        assert list(theirs.partitions) == [part.partition for part in ours.partitions]
    assert len(read.topics) == len(topics)
    for theirs, ours in zip(read.topics, topics, strict=True):
        assert (theirs.topic == ours.name) if version == 12 else (theirs.topic_id == uuid.UUID(bytes=ours.topic_id))
        assert [
            (p.partition, p.current_leader_epoch, p.fetch_offset, p.last_fetched_epoch, p.partition_max_bytes)
            for p in theirs.partitions
        ] == [
            (p.partition, p.current_leader_epoch, p.offset, p.last_fetched_epoch, p.max_bytes) for p in ours.partitions
        ]


@given(version=st.integers(9, 13), topics=st.lists(produce_topics, max_size=4))
def test_produce_request_is_understood_by_kafka_python(version: int, topics: list[ProduceTopic]) -> None:
    encoded = b"".join(encode_produce(version, 4, "client", 1000, topics))
    read = ProduceRequest.decode(encoded, version=version, header=True, framed=True)
    assert (read.transactional_id, read.acks, read.timeout_ms) == (None, -1, 1000)
    for theirs, ours in zip(read.topic_data, topics, strict=True):
        assert (theirs.name == ours.name) if version < 13 else (theirs.topic_id == uuid.UUID(bytes=ours.topic_id))
        assert [(p.index, bytes(p.records)) for p in theirs.partition_data] == list(ours.partitions)


@given(
    version=st.sampled_from([12, 13]),
    offsets=st.tuples(int64, int64, int64),
    aborted=st.none() | st.lists(st.tuples(int64, int64), max_size=3),
    diverging=st.none() | st.tuples(int32, int64),
    leader=st.none() | st.tuples(int32, int32),
    records=st.none() | st.binary(max_size=300),
)
def test_fetch_response_of_kafka_python_is_understood(version, offsets, aborted, diverging, leader, records) -> None:  # type: ignore[no-untyped-def]
    topic = FetchResponse.FetchableTopicResponse
    data = topic.PartitionData
    fields = {}
    if diverging:
        fields["diverging_epoch"] = data.EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
    if leader:
        fields["current_leader"] = data.LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
    partition = data(
        partition_index=3,
        error_code=0,
        high_watermark=offsets[0],
        last_stable_offset=offsets[1],
        log_start_offset=offsets[2],
        aborted_transactions=None
        if aborted is None
        else [data.AbortedTransaction(producer_id=p, first_offset=o) for p, o in aborted],
        preferred_read_replica=-1,
        records=records,
        **fields,
    )
    responses = [topic(topic="t", topic_id=uuid.UUID(int=9), partitions=[partition])]
    message = FetchResponse(throttle_time_ms=0, error_code=0, session_id=0, responses=responses)
    buffer = bytes(4) + b"\0" + message.encode(version=version)
    [read] = decode_fetch(version, buffer).partitions
    assert (read.high_watermark, read.last_stable_offset, read.log_start_offset) == offsets
    assert read.aborted == (aborted or [])
    assert (read.diverging_epoch, read.diverging_end) == (diverging or (-1, -1))
    assert (read.leader_id, read.leader_epoch) == (leader or (-1, -1))
    assert buffer[read.start : read.end] == (records or b"")


@given(buffer=st.binary(max_size=200), version=st.sampled_from([12, 13]))
def test_any_bytes_are_decoded_or_refused(buffer: bytes, version: int) -> None:
    for decode in (decode_fetch, decode_produce):
        try:
            decode(version, buffer)
        except HeliographError as fault:
            assert "response ends before its last field" in str(fault)


@given(
    st.builds(mm2.OffsetSync, texts, int32, int64, int64),
    st.builds(mm2.Checkpoint, texts, texts, int32, int64, int64, texts),
    st.builds(mm2.Heartbeat, texts, texts, int64),
    st.builds(mm2.StoredOffset, texts, texts, texts, int32, st.none() | int64),
)
def test_records_of_mirrormaker_2_survive_a_round_trip(sync, checkpoint, heartbeat, stored) -> None:  # type: ignore[no-untyped-def]
    assert mm2.decode_offset_sync(*mm2.encode_offset_sync(sync)) == sync
    assert mm2.decode_checkpoint(*mm2.encode_checkpoint(checkpoint)) == checkpoint
    assert mm2.decode_heartbeat(*mm2.encode_heartbeat(heartbeat)) == heartbeat
    assert mm2.decode_stored_offset(*mm2.encode_stored_offset(stored)) == stored
