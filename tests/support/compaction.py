"""Compacted topics that the broker's cleaner has really cleaned: offsets with gaps inside their batches."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.support.topics import ANSWER_SECONDS, ends, set_configs, starts
from tests.support.waiting import wait_until
from tests.support.writers import Sample, write

COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "100",
    "max.compaction.lag.ms": "100",
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": "60000",
}
"""Topic settings with which the cleaner comes within seconds."""
NEVER_CLEANED = {"cleanup.policy": "compact", "segment.bytes": str(1 << 30)}
"""Compacted, and yet not within a test: the cleaner leaves the newest segment alone."""

_STEADY_LOOKS = 4
_NEVER_MS = str((1 << 63) - 1)


def write_compacted(
    bootstrap: str, topic: str, rounds: int = 20, keys: int = 50, *, keep_cleaning: bool = False
) -> int:
    """Write the same keys again and again, wait until the cleaner has left gaps; how many records are still there.

    The topic has one partition and the settings COMPACTED. Afterwards the cleaner leaves it alone, so that it can be
    compared with a copy, unless `keep_cleaning`.
    """
    chunk = [Sample(b"", b"key-%d" % key) for key in range(keys)]
    # Of a producer id's last batch the cleaner keeps the header when every record of it is gone: an empty batch.
    write(bootstrap, topic, [Sample(b"soon gone", sample.key) for sample in chunk], enable_idempotence=True)
    for number in range(rounds):
        # A third of the keys sits out each round, so survivors are scattered over the batches.
        records = [Sample(b"round %d" % number, s.key) for place, s in enumerate(chunk) if (place + number) % 3]
        write(bootstrap, topic, records, "lz4")
    wait_until(lambda: _is_cleaned(bootstrap, topic), f"the cleaner has cleaned {topic}", every=0.5)
    if not keep_cleaning:
        leave_alone(bootstrap, topic)
    return count_records(bootstrap, topic)


def leave_alone(bootstrap: str, topic: str) -> None:
    """Stop cleaning, and wait: a cleaning that had begun goes on under the settings it began with."""
    stop_cleaning(bootstrap, topic)
    counts = [count_records(bootstrap, topic)]

    def is_steady() -> bool:
        counts.append(count_records(bootstrap, topic))
        return len(set(counts[-_STEADY_LOOKS:])) == 1 and len(counts) >= _STEADY_LOOKS

    wait_until(is_steady, f"{topic} is cleaned no more", every=0.7)


def _is_cleaned(bootstrap: str, topic: str) -> bool:
    # The active segment is never cleaned, and it is rolled only by the next record after segment.ms.
    write(bootstrap, topic, [Sample(b"tick", b"tick")])
    span = ends(bootstrap, topic)[0] - starts(bootstrap, topic)[0]
    return count_records(bootstrap, topic) < span // 2


def stop_cleaning(bootstrap: str, topic: str) -> None:
    """No record of the topic is old enough to be cleaned from now on."""
    lags = ("max.compaction.lag.ms", "min.compaction.lag.ms")
    set_configs(bootstrap, topic, dict.fromkeys(lags, _NEVER_MS))


def is_cleaned_away(bootstrap: str, topic: str, offset: int) -> bool:
    """Whether the cleaner took the record at this offset, behind which there are others: who asks for it gets a later one."""
    client = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "count", "enable.auto.commit": False, "fetch.wait.max.ms": 20}
    )
    client.assign([TopicPartition(topic, 0, offset)])
    try:
        message = client.poll(ANSWER_SECONDS)
        assert message is not None and message.error() is None, f"nothing of {topic} lies at {offset} or behind it"
        return message.offset() > offset
    finally:
        client.close()


def count_records(bootstrap: str, topic: str, partition: int = 0) -> int:
    """Records a client gets from the partition, which is less than its offsets span once it has been cleaned."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "count", "fetch.wait.max.ms": 20}
    # It commits nothing: the group would be one more that stands in the topic.
    client = Consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
    client.assign([TopicPartition(topic, partition, 0)])
    count = 0
    try:
        while True:
            message = client.poll(ANSWER_SECONDS)
            assert message is not None, f"{topic}-{partition} did not end within {ANSWER_SECONDS:.0f} s"
            error = message.error()
            if error is None:
                count += 1
            elif error.code() == KafkaError._PARTITION_EOF:
                return count
            else:
                raise AssertionError(error.str())
    finally:
        client.close()
