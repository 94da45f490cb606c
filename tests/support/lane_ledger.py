"""What the ledger has said of one lane, entry by entry, in the order in which it was written: also what its cleaner takes out later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from heliograph.kafka.ledger import LEDGER_TOPIC
from heliograph.model.lanes import LedgerEntry
from heliograph.replication.generations import decode_entry
from heliograph.replication.ledger_keys import EntryKey, parse_key
from tests.support.topics import ANSWER_SECONDS, partition_count


class LaneLedger:
    """Reads on from where the last look ended. A lane's records all lie in one partition, so their order is that of the writing."""

    def __init__(self, bootstrap: str, topic: str, partition: int = 0) -> None:
        self._bootstrap = bootstrap
        self._lane = (topic, partition)
        self._client: Consumer | None = None
        self._partitions = 0
        self._entries: list[LedgerEntry] = []

    def look(self) -> list[LedgerEntry]:
        """All entries up to now, first one first; tombstones and claims are left out."""
        if self._client is None:
            self._partitions = partition_count(self._bootstrap, LEDGER_TOPIC)
            if not self._partitions:
                return []
            self._client = self._assigned()
        for message in self._until_the_ends(self._client):
            key = parse_key(message.key().decode())
            is_ours = isinstance(key, EntryKey) and (key.lane.topic, key.lane.partition) == self._lane
            if is_ours and message.value() is not None:
                self._entries.append(decode_entry(message.value()))
        return self._entries

    def position(self) -> int:
        """The furthest source offset that any entry names as the next one; 0 before the first."""
        return max((entry.source_next for entry in self.look()), default=0)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _assigned(self) -> Consumer:
        client = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "lane-ledger",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,
                "log_level": 2,
            }
        )
        client.assign([TopicPartition(LEDGER_TOPIC, number, 0) for number in range(self._partitions)])
        return client

    def _until_the_ends(self, client: Consumer) -> Iterator[Any]:
        places = [TopicPartition(LEDGER_TOPIC, number) for number in range(self._partitions)]
        ends = {
            place.partition: client.get_watermark_offsets(place, ANSWER_SECONDS, cached=False)[1] for place in places
        }
        reached = {place.partition: max(0, place.offset) for place in client.position(places)}
        while any(reached[number] < end for number, end in ends.items()):
            message = client.poll(ANSWER_SECONDS)
            assert message is not None, f"{LEDGER_TOPIC} did not end within {ANSWER_SECONDS:.0f} s"
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error.str()
                reached[message.partition()] = max(reached[message.partition()], message.offset())
            else:
                reached[message.partition()] = message.offset() + 1
                yield message
