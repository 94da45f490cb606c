"""Both logs as a read_committed client gets them, through confluent-kafka. Shares no code with Heliograph."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.histories.history import Row

LABEL = "label"
"""The header in which a producer names its record."""
_SILENCE_SECONDS = 60.0
_TURN_SECONDS = 0.3
"""A turn ends with so many records or after this time, whichever comes first."""


def row_of(message: Any) -> Row:
    """A message of confluent-kafka, as the checker sees it."""
    headers = message.headers() or []
    label = next((value.decode() for name, value in headers if name == LABEL and value), "")
    parts = (message.key(), message.value(), headers, message.timestamp()[1])
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()
    return Row(message.offset(), label or f"a record without a name at {message.offset()}", digest)


def read(bootstrap: str, topic: str, partition: int) -> list[Row]:
    """Every committed record of a partition, from its start to the end that it has now."""
    client = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "the-checker",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # Else a log whose beginning was deleted would look empty, and two empty ones are equal.
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "log_level": 2,
        }
    )
    client.assign([TopicPartition(topic, partition, 0)])
    rows: list[Row] = []
    heard = time.monotonic()
    try:
        while time.monotonic() - heard < _SILENCE_SECONDS:
            for message in client.consume(1_000, _TURN_SECONDS):
                heard = time.monotonic()
                error: Any = message.error()
                if error is None:
                    rows.append(row_of(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    return rows
                elif not error.retriable():
                    raise RuntimeError(f"{topic}-{partition}: {error}")
        raise TimeoutError(f"{topic}-{partition} gave {len(rows)} records and no end")
    finally:
        client.close()
