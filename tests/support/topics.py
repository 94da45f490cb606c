"""Topics on a test cluster through confluent-kafka: create, grow, ends, DeleteRecords."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.support.waiting import wait_until

ANSWER_SECONDS = 30.0
_LOOKS = 150
_ANOTHER_LEADS = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError._NOENT,  # librdkafka's own: none of the partitions has a leader now
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


def admin(bootstrap: str) -> AdminClient:
    """Keep the client in a variable until the futures it gave are done: they never end once it is collected."""
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})


def create_topic(
    bootstrap: str, topic: str, partitions: int = 1, replicas: int = 1, config: Mapping[str, str] | None = None
) -> str:
    """Create the topic, return its name once every partition has a leader."""
    client = admin(bootstrap)
    wanted = NewTopic(topic, partitions, replicas, config=dict(config or {}))
    client.create_topics([wanted])[topic].result(ANSWER_SECONDS)
    wait_until(lambda: _led(client, topic) == partitions, f"all {partitions} partitions of {topic} have a leader")
    return topic


def _led(client: AdminClient, topic: str) -> int:
    found = client.list_topics(timeout=ANSWER_SECONDS).topics.get(topic)
    return sum(1 for partition in found.partitions.values() if partition.leader >= 0) if found else 0


def topic_names(bootstrap: str) -> set[str]:
    return set(admin(bootstrap).list_topics(timeout=ANSWER_SECONDS).topics)


def partition_count(bootstrap: str, topic: str, within: float = ANSWER_SECONDS) -> int:
    """0 while the topic does not exist."""
    found = admin(bootstrap).list_topics(timeout=within).topics.get(topic)
    return len(found.partitions) if found else 0


def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    client = admin(bootstrap)
    client.create_partitions([NewPartitions(topic, total)])[topic].result(ANSWER_SECONDS)
    wait_until(lambda: _led(client, topic) == total, f"all {total} partitions of {topic} have a leader")


def set_configs(bootstrap: str, topic: str, configs: Mapping[str, str]) -> None:
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in configs.items()]
    client = admin(bootstrap)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    for future in client.incremental_alter_configs([resource]).values():
        future.result(ANSWER_SECONDS)
    # The controller has it; the broker that goes by it hears of it a moment later.
    wait_until(lambda: overrides(bootstrap, topic).items() >= configs.items(), f"{dict(configs)} are in force")


def set_broker_config(bootstrap: str, broker: int, name: str, value: str) -> None:
    """Of one broker, while it runs."""
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)]
    client = admin(bootstrap)
    resource = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=entries)
    client.incremental_alter_configs([resource])[resource].result(ANSWER_SECONDS)


def broker_config(bootstrap: str, broker: int, name: str) -> str | None:
    """As that broker itself tells it."""
    client = admin(bootstrap)
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    found = client.describe_configs([resource])[resource].result(ANSWER_SECONDS)
    return found[name].value


def overrides(bootstrap: str, topic: str) -> dict[str, str]:
    """What is set for the topic itself."""
    client = admin(bootstrap)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = client.describe_configs([resource])[resource].result(ANSWER_SECONDS)
    return {entry.name: entry.value for entry in found.values() if entry.source == 1}


def delete_topic(bootstrap: str, topic: str) -> None:
    client = admin(bootstrap)
    client.delete_topics([topic])[topic].result(ANSWER_SECONDS)
    wait_until(lambda: topic not in topic_names(bootstrap), f"{topic} is gone")


def starts(bootstrap: str, topic: str) -> dict[int, int]:
    """Log start offsets by partition."""
    return _offsets(bootstrap, topic, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)


def ends(bootstrap: str, topic: str, within: float = ANSWER_SECONDS) -> dict[int, int]:
    """High watermarks by partition."""
    return _offsets(bootstrap, topic, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED, within)


def stable_ends(bootstrap: str, topic: str) -> dict[int, int]:
    """Last stable offsets by partition."""
    return _offsets(bootstrap, topic, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)


def wait_until_stable(bootstrap: str, topic: str) -> None:
    """No transaction is open: a commit is answered before its markers are written, and until then its records are not seen."""
    wanted = ends(bootstrap, topic)

    def has_reached() -> bool:
        found = stable_ends(bootstrap, topic)
        return all(found[partition] >= end for partition, end in wanted.items())

    wait_until(has_reached, f"the markers of {topic} are written")


def _offsets(
    bootstrap: str, topic: str, spec: OffsetSpec, isolation: IsolationLevel, within: float = ANSWER_SECONDS
) -> dict[int, int]:
    for _ in range(_LOOKS):
        count = partition_count(bootstrap, topic, within)
        wanted = {TopicPartition(topic, partition): spec for partition in range(count)}
        if not wanted:
            return {}
        client = admin(bootstrap)  # a new one each time: what it learnt of leaders it would believe for a while
        found = client.list_offsets(wanted, isolation_level=isolation, request_timeout=within)
        try:
            return {where.partition: future.result(within).offset for where, future in found.items()}
        except KafkaException as error:
            # A topic that was made just now, or a leader that moves: metadata names one that does not know of it yet, or no more.
            if error.args[0].code() not in _ANOTHER_LEADS:
                raise
        time.sleep(0.2)
    raise AssertionError(f"{topic} has no leader that knows of it")


def delete_records(bootstrap: str, topic: str, partition: int, before: int) -> None:
    """Move the log start to `before`, which may lie in the middle of a batch."""
    client = admin(bootstrap)
    for future in client.delete_records([TopicPartition(topic, partition, before)]).values():
        future.result(ANSWER_SECONDS)
