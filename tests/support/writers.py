"""Source data of every kind a mirror meets, each kind one small function. Topics must exist.

Written with confluent-kafka. Each function returns when everything is acknowledged.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from confluent_kafka import Producer

from tests.support.topics import wait_until_stable

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
DRAIN_SECONDS = 120.0
ODD_HEADERS: list[tuple[str, bytes | None]] = [
    ("", b"empty name"),
    ("x", None),
    ("x", b""),
    ("x", b"again"),
    ("é", b"1"),
]

Headers = list[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Sample:
    """One record to write. Without a partition the client chooses by key; without a timestamp, now."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers | None = None
    partition: int = -1
    timestamp_ms: int = 0


def samples(count: int, size: int = 100, partitions: int = 1, seed: int = 1) -> Iterator[Sample]:
    """Distinct records that compress about as text does, spread over the partitions by place."""
    chance = random.Random(seed)
    for place in range(count):
        noise = chance.randbytes(max(1, size // 8)).hex().encode()
        value = (b"%d:" % place + noise * 4)[:size]
        yield Sample(value, b"key-%d" % (place % 997), partition=place % partitions)


def producer(bootstrap: str, **settings: Any) -> Producer:
    """Setting names with `_` for `.`. An idempotent one needs half a second more to start."""
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    common = {
        "bootstrap.servers": bootstrap,
        "log_level": 2,
        "queue.buffering.max.messages": 1_000_000,
        "queue.buffering.max.kbytes": 512 << 10,
    }
    return Producer(common | dotted)


def send(client: Producer, topic: str, records: Iterable[Sample]) -> int:
    """Hand the records to the client and wait for their acknowledgements; how many there were."""
    refused: list[str] = []

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            refused.append(str(error))

    count = 0
    for record in records:
        headers: Any = record.headers or []
        client.produce(
            topic,
            value=record.value,
            key=record.key,
            headers=headers,
            partition=record.partition,
            timestamp=record.timestamp_ms,
            on_delivery=delivered,
        )
        count += 1
        if count % 1_000 == 0:
            client.poll(0)
    left = client.flush(DRAIN_SECONDS)
    assert not left and not refused, (
        f"{left} records of {topic} not acknowledged, {len(refused)} refused: {refused[:1]}"
    )
    return count


def write(bootstrap: str, topic: str, records: Iterable[Sample], codec: str = "none", **settings: Any) -> int:
    """Write with one codec; batches as large as `batch_size` and `linger_ms` make them."""
    return send(producer(bootstrap, compression_type=codec, **({"linger_ms": 20} | settings)), topic, records)


def write_dense(
    bootstrap: str, topic: str, records: Iterable[Sample], codec: str = "lz4", size: int = 256 << 10
) -> int:
    """Full batches of about `size` bytes before compression, with producer ids: what a busy producer writes."""
    # Long enough for a machine that stands still for a while: batches are cut by their size, and the last one by the flush.
    large = {"batch_size": size, "linger_ms": 5_000, "batch_num_messages": 100_000}
    return write(bootstrap, topic, records, codec, enable_idempotence=True, **large)


def write_every_codec(bootstrap: str, topic: str, count: int, partitions: int = 1) -> int:
    """`count` records with each of the five codecs, one after the other."""
    return sum(
        write(bootstrap, topic, samples(count, partitions=partitions, seed=seed), codec)
        for seed, codec in enumerate(CODECS)
    )


def write_odd_records(bootstrap: str, topic: str, count: int = 50, codec: str = "lz4") -> int:
    """Null and empty keys and values; headers with nulls, empty and repeated names; every combination."""
    choices: list[bytes | None] = [None, b"", b"x"]
    headers: list[Headers | None] = [None, ODD_HEADERS, list(reversed(ODD_HEADERS))]
    odd = [Sample(value, key, header) for value in choices for key in choices for header in headers]
    return write(bootstrap, topic, (odd[place % len(odd)] for place in range(max(count, len(odd)))), codec)


def write_single_record_batches(bootstrap: str, topic: str, count: int, partitions: int = 1) -> int:
    """A batch for every record."""
    return write(bootstrap, topic, samples(count, partitions=partitions), batch_num_messages=1, linger_ms=0)


def write_huge_batch(bootstrap: str, topic: str, megabytes: int = 10, codec: str = "none") -> int:
    """One batch of so many megabytes of noise, in records of 1 MB; the topic needs a raised `max.message.bytes`."""
    chance = random.Random(megabytes)
    size = (megabytes << 20) + (1 << 20)
    records = [Sample(chance.randbytes((1 << 20) - 64), b"%d" % place, partition=0) for place in range(megabytes)]
    return write(bootstrap, topic, records, codec, batch_size=size, message_max_bytes=size, linger_ms=20_000)


def write_old_records(bootstrap: str, topic: str, records: Iterable[Sample], now_ms: int, age: timedelta) -> int:
    """Records whose timestamps lie `age` back; the topic needs a retention that keeps them."""
    first = now_ms - int(age.total_seconds() * 1_000)
    old = (
        Sample(record.value, record.key, record.headers, record.partition, first + place)
        for place, record in enumerate(records)
    )
    return write(bootstrap, topic, old, "lz4")


def write_transactions(
    bootstrap: str, topic: str, transactional_id: str, transactions: int = 10, size: int = 20
) -> int:
    """Every third transaction is aborted after its records reached the broker; how many records were committed.

    Returns when the last marker is written, which a commit does not wait for.
    """
    client = producer(bootstrap, transactional_id=transactional_id, compression_type="lz4", linger_ms=5)
    client.init_transactions(DRAIN_SECONDS)
    committed = 0
    for number in range(transactions):
        client.begin_transaction()
        send(client, topic, samples(size, seed=number))
        if number % 3 == 2:
            client.abort_transaction(DRAIN_SECONDS)
        else:
            client.commit_transaction(DRAIN_SECONDS)
            committed += size
    wait_until_stable(bootstrap, topic)
    return committed


class OpenTransaction:
    """A transaction left hanging: its records are on the broker and hold the last stable offset back."""

    def __init__(self, bootstrap: str, topic: str, transactional_id: str, count: int = 10) -> None:
        self._place = (bootstrap, topic)
        settings = {"transactional_id": transactional_id, "transaction_timeout_ms": 600_000}
        self._client = producer(bootstrap, linger_ms=0, **settings)
        self._client.init_transactions(DRAIN_SECONDS)
        self._client.begin_transaction()
        send(self._client, topic, samples(count, seed=99))

    def commit(self) -> None:
        self._client.commit_transaction(DRAIN_SECONDS)
        wait_until_stable(*self._place)

    def abort(self) -> None:
        self._client.abort_transaction(DRAIN_SECONDS)
        wait_until_stable(*self._place)
