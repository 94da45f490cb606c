"""Writes a case's data to the source, and warms up the brokers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from confluent_kafka import Consumer, TopicPartition

from tests.bench.cases import Load
from tests.bench.lab import Ends, Lab
from tests.support.topics import create_topic
from tests.support.writers import producer

_DIFFERENT = 20_000
_KEYS = 9_973
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WARM_UP = (
    Load(200_000, codec="lz4"),
    Load(200_000, codec="zstd"),
    # A JVM compiles what it has done ten thousand times, and 256 KB batches make few requests: a gigabyte only a thousand.
    Load(150_000, batch_records=1),
)
_SMALL_FETCH = 4 << 10


def fill(bootstrap: str, topic: str, load: Load) -> float:
    """Write the load; how many megabytes of keys and values it has. Returns when everything is acknowledged."""
    client = producer(
        bootstrap,
        compression_type=load.codec,
        linger_ms=200 if load.batch_records > 1 else 0,
        batch_size=load.batch_bytes,
        batch_num_messages=load.batch_records,
        acks="all",
    )
    values = list(_values(load.size))
    written = 0
    for place in range(load.records):
        key, value = b"%d" % (place % _KEYS), values[place % _DIFFERENT]
        written += len(key) + len(value)
        while True:
            try:
                client.produce(topic, value=value, key=key)
                break
            except BufferError:
                client.poll(0.05)
        if not place % 1_000:
            client.poll(0)
    client.flush()
    found = Ends(bootstrap, topic).total()
    if found != load.records:
        raise AssertionError(f"{topic} has {found} records instead of {load.records}")
    return written / 1e6


def warm_up(lab: Lab, scale: float) -> None:
    """Write to both brokers and read from both, so that their JVMs have compiled what every case needs.

    Else the shorter of two copies pays for most of that: a mirror that is done in 3 s shares the cores with the compiler all
    the time, one that takes 13 s for a quarter of it.
    """
    for cluster in (lab.source, lab.target):
        for number, load in enumerate(_WARM_UP):
            topic = create_topic(cluster.bootstrap, f"warm-up-{number}", load.partitions)
            fill(cluster.bootstrap, topic, load.scaled(scale))
            _read(cluster.bootstrap, topic, load.scaled(scale))
    lab.clear()


def _read(bootstrap: str, topic: str, load: Load) -> None:
    more = {"fetch.max.bytes": _SMALL_FETCH, "message.max.bytes": _SMALL_FETCH} if load.batch_records == 1 else {}
    client = Consumer({"bootstrap.servers": bootstrap, "group.id": "warm-up", "enable.auto.commit": False, **more})
    client.assign([TopicPartition(topic, number, 0) for number in range(load.partitions)])
    left = load.records
    while left:
        got = client.consume(min(left, 10_000), 10.0)
        if not got:
            raise AssertionError(f"{left} records of {topic} did not come within 10 s")
        left -= len(got)
    client.close()


def _values(size: int) -> Iterator[bytes]:
    chance = random.Random(1)
    names = ["".join(chance.choice(_LETTERS) for _ in range(8)) for _ in range(2_000)]
    for place in range(_DIFFERENT):
        value = json.dumps(_document(chance, names, place)).encode()
        yield (value * 3)[:size] if size else value


def _document(chance: random.Random, names: list[str], place: int) -> dict[str, object]:
    def name() -> str:
        return chance.choice(names)

    return {
        "id": chance.getrandbits(48),
        "user": name(),
        "ts": 1_700_000_000_000 + place * 37,
        "event": chance.choice(["click", "view", "buy", "scroll"]),
        "url": f"https://example.com/{name()}/{name()}",
        "agent": f"Mozilla/5.0 (X11; Linux x86_64) {name()}",
        "price": chance.random() * 100,
        "tags": [name() for _ in range(8)],
        "session": f"{chance.getrandbits(128):032x}",
        "geo": {"lat": chance.random() * 180, "lon": chance.random() * 180},
        "note": " ".join(name() for _ in range(8)),
    }
