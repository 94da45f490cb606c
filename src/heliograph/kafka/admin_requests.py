"""What kafka-python's admin client is asked, and what its answers say: requests that it gets wrong, errors that it passes over.

Used by `admin` alone, which translates the errors that come out of here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import kafka.errors as foreign
from kafka.admin import KafkaAdminClient
from kafka.admin._configs import ConfigSourceType
from kafka.protocol.admin import DescribeClusterRequest, DescribeConfigsRequest

from heliograph.kafka.config_changes import refusal
from heliograph.model.topics import ConfigValue
from heliograph.replication.topic_plan import CreateTopic

Partition = tuple[str, int]

UNKNOWN_TOPIC, _INVALID_TOPIC = 3, 17
UNAUTHORIZED = {29, 31}
_NEEDED = (
    ("list topics", "DESCRIBE on the topic"),
    ("list offsets", "DESCRIBE on the topic"),
    ("describe topic configs", "DESCRIBE_CONFIGS on the topic"),
    ("describe broker config", "DESCRIBE_CONFIGS on the cluster"),
    ("create topic", "CREATE on the topic"),
    ("add partitions", "ALTER on the topic"),
)
"""What is done, by the beginning of its sentence, to the permission that it needs."""


def described_cluster(client: KafkaAdminClient) -> dict[str, Any]:
    """The library's own describe_cluster fails on an answer of brokers before 3.7, so the request is sent from here."""
    request = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)
    response = client._manager.run(client._manager.send, request)
    if response.error_code:
        raise foreign.for_code(response.error_code)(response.error_message or "describe the cluster")
    found: dict[str, Any] = response.to_dict()
    return found


def unfenced_brokers(client: KafkaAdminClient) -> list[int]:
    """At least one: a broker that was slow for a while is fenced until the controller hears of it again."""
    rows = described_cluster(client)["brokers"]
    if found := [int(row["broker_id"]) for row in rows if not row.get("is_fenced", False)]:
        return found
    raise foreign.MetadataEmptyBrokerList("all brokers are fenced")


def described_topics(
    client: KafkaAdminClient, names: list[str] | None, hidden: set[str] | None = None
) -> list[dict[str, Any]]:
    """With `hidden` a topic that may not be seen goes there, instead of failing all others."""
    rows: list[dict[str, Any]] = client.describe_topics(names)
    for row in rows:
        if hidden is not None and row["error_code"] in UNAUTHORIZED:
            hidden.add(row["name"])
        elif row["error_code"] not in {0, UNKNOWN_TOPIC, _INVALID_TOPIC}:
            raise foreign.for_code(row["error_code"])(f"topic '{row['name']}'")
    return [row for row in rows if row["error_code"] == 0]


def described_configs(
    client: KafkaAdminClient,
    resources: Sequence[tuple[int, str, list[str] | None]],
    broker: int | None = None,
    refused: dict[str, str] | None = None,
    alias: str = "",
) -> dict[str, dict[str, ConfigValue]]:
    """By resource name. The library's own describe_configs passes over errors, so the request is sent from here."""
    request = DescribeConfigsRequest(resources=list(resources), include_synonyms=False, min_version=1)
    response = client._manager.run(client._manager.send, request, broker)
    for result in response.results:
        if result.error_code in {0, UNKNOWN_TOPIC}:
            continue
        if refused is None or result.error_code not in UNAUTHORIZED:
            raise foreign.for_code(result.error_code)(f"'{result.resource_name}': {result.error_message}")
        refused[result.resource_name] = refusal(result, "read", "DESCRIBE_CONFIGS", alias)
    return {
        result.resource_name: {config.name: _config_value(config) for config in result.configs}
        for result in response.results
        if result.error_code == 0
    }


def _config_value(config: Any) -> ConfigValue:
    source = ConfigSourceType(config.config_source).name
    return ConfigValue(config.value, source, bool(config.read_only), bool(config.is_sensitive))


def log_sizes(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Partition, int]]:
    """Every replica's size. A broker that may not tell (no DESCRIBE on the cluster) lists no topics."""
    topics = (topic for row in rows for directory in row["log_dirs"] for topic in directory["topics"])
    for topic in topics:
        for part in topic["partitions"]:
            yield (topic["name"], part["partition_index"]), part["partition_size"]


def check_created(answer: Mapping[str, Any]) -> None:
    for topic in answer["topics"]:
        if topic["error_code"]:
            raise foreign.for_code(topic["error_code"])(topic.get("error_message") or topic["name"])


def check_grown(answer: Any) -> None:
    for result in answer.results:
        if result.error_code:
            raise foreign.for_code(result.error_code)(result.error_message or result.name)


def check_ready(client: KafkaAdminClient, wanted: Mapping[str, int]) -> None:
    """A broker answers as soon as the controller has decided; leaders and metadata follow a little later.

    A topic that may not be seen is not waited for: whoever wants to use it is told so.
    """
    hidden: set[str] = set()
    led = {
        row["name"]: sum(1 for part in row["partitions"] if part["leader_id"] >= 0)
        for row in described_topics(client, list(wanted), hidden)
    }
    for name, count in wanted.items():
        if name not in hidden and led.get(name, 0) < count:
            raise foreign.LeaderNotAvailableError(f"topic '{name}' has not all its leaders yet")


def wish(actions: Sequence[CreateTopic]) -> dict[str, dict[str, Any]]:
    return {
        action.name: {
            "num_partitions": action.partitions,
            "replication_factor": action.replication_factor,
            "configs": dict(action.configs),
        }
        for action in actions
    }


def permission_needed(doing: str, code: int) -> str:
    """The permission that a refusal asks for, as the end of a sentence."""
    needed = next((need for begin, need in _NEEDED if doing.startswith(begin)), "")
    return f" (this needs {needed})" if needed and code in UNAUTHORIZED else ""
