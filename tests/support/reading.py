"""What a partition holds, as a client reads it that shares no code with Heliograph."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.support.topics import ANSWER_SECONDS, ends, starts


def messages(bootstrap: str, topic: str, partition: int = 0) -> list[Any]:
    """Every record of a partition, from its start to the end that it has now."""
    client = Consumer({"bootstrap.servers": bootstrap, "group.id": "by-hand", "enable.auto.commit": False})
    start, end = starts(bootstrap, topic)[partition], ends(bootstrap, topic)[partition]
    client.assign([TopicPartition(topic, partition, start)])
    found: list[Any] = []
    try:
        while start < end and (not found or found[-1].offset() < end - 1):
            message = client.poll(ANSWER_SECONDS)
            assert message is not None and message.error() is None, f"{len(found)} of {end - start} records of {topic}"
            found.append(message)
    finally:
        client.close()
    return found


def values(bootstrap: str, topic: str, partition: int = 0) -> list[Any]:
    return [message.value() for message in messages(bootstrap, topic, partition)]


def committed_values(bootstrap: str, topic: str, offset: int, partition: int = 0) -> list[Any]:
    """What a reader who leaves out aborted records gets from an offset to the end; the last offset may be a marker."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "by-hand", "enable.auto.commit": False}
    client = Consumer({**settings, "enable.partition.eof": True, "isolation.level": "read_committed"})
    client.assign([TopicPartition(topic, partition, offset)])
    found: list[Any] = []
    try:
        while True:
            message = client.poll(ANSWER_SECONDS)
            assert message is not None, f"{topic} did not end"
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return found
            found.append(message.value())
    finally:
        client.close()
