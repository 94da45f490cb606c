"""What a cluster allows this client, asked of its brokers and never done.

A broker tells the operations on a topic that exists. For one that does not exist yet, and for transactional ids, the
operation itself is asked for in a form that cannot succeed: brokers look at the permission first, so any other error
than a refusal of the permission says that it is granted. Nothing is created, written or initialised.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafka.protocol.consumer import HeartbeatRequest, HeartbeatResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from heliograph.errors import ConnectionLost, HeliographError
from heliograph.kafka.acls import OPERATIONS
from heliograph.kafka.client import ClusterClient
from heliograph.kafka.connections import CLIENT_ID, Buffer
from heliograph.kafka.topic_writer import PRODUCE_API
from heliograph.replication.topic_plan import CreateTopic
from heliograph.wire.plain_batch import plain_batch
from heliograph.wire.produce_codec import ProduceTopic, decode_produce, encode_produce

TOPIC_REFUSED, GROUP_REFUSED, CLUSTER_REFUSED, TRANSACTIONAL_ID_REFUSED = 29, 30, 31, 53
_REFUSED = {TOPIC_REFUSED, GROUP_REFUSED, CLUSTER_REFUSED, TRANSACTIONAL_ID_REFUSED}
_TOPIC_EXISTS = 36
_TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4
_NO_SUCH_PARTITION = 2**31 - 1
"""Kafka numbers partitions from 0 and refuses a topic of so many: nothing that is sent there can be kept."""
_NO_TIMEOUT = 0
"""A transaction timeout that every coordinator refuses before it looks at the transactional id."""
_TIMEOUT_MS = 10_000
_NAMES_PER_REQUEST = 500


@dataclass(frozen=True)
class TopicGrants:
    """What may be done with one topic name. `operations` of a topic that does not exist are those that were tried."""

    exists: bool
    topic_id: str = ""
    partitions: int = 0
    operations: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Refusal:
    """Why a topic could not be created, apart from the permission."""

    code: int
    message: str


async def visible_topics(client: ClusterClient) -> dict[str, TopicGrants]:
    """All topics that this client may describe; brokers leave the others out without a word."""
    return {name: grants for name, grants in (await _described(client, None)).items() if grants.exists}


async def topic_grants(client: ClusterClient, names: Iterable[str]) -> dict[str, TopicGrants]:
    """Each name's operations: told by the broker where the topic exists and may be seen, tried where not."""
    wanted = sorted(set(names))
    found: dict[str, TopicGrants] = {}
    for first in range(0, len(wanted), _NAMES_PER_REQUEST):
        found |= await _described(client, wanted[first : first + _NAMES_PER_REQUEST])
    missing = [name for name in wanted if not found[name].exists]
    for first in range(0, len(missing), _NAMES_PER_REQUEST):
        part = missing[first : first + _NAMES_PER_REQUEST]
        tried = {
            "READ": await _may_read(client, part),
            "WRITE": await _may_write(client, part),
            "ALTER": await _may_alter(client, part),
            "DELETE": await _may_delete(client, part),
            "DESCRIBE_CONFIGS": await may_describe_configs(client, part),
            "ALTER_CONFIGS": await _may_alter_configs(client, part),
        }
        for name in part:
            allowed = {operation for operation, names_allowed in tried.items() if name in names_allowed}
            found[name] = replace(found[name], operations=found[name].operations | allowed)
    return found


async def _described(client: ClusterClient, names: Sequence[str] | None) -> dict[str, TopicGrants]:
    kind = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=None if names is None else [kind(topic_id=uuid.UUID(int=0), name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    answer = await client.ask_any(request, MetadataResponse, 12)
    return {topic.name: _grants(topic) for topic in answer.topics}


def _grants(topic: Any) -> TopicGrants:
    if topic.error_code == TOPIC_REFUSED:
        return TopicGrants(exists=False)
    if topic.error_code:
        return TopicGrants(exists=False, operations=frozenset({"DESCRIBE"}))
    operations = frozenset(OPERATIONS.get(code, str(code)) for code in topic.authorized_operations or ())
    return TopicGrants(True, str(topic.topic_id), len(topic.partitions), operations)


async def _reachable(client: ClusterClient) -> int:
    """The first broker that can be reached: each answers for the whole cluster."""
    fault: HeliographError = ConnectionLost(f"cluster {client.cluster.alias} names no broker")
    for node in sorted(client.brokers):
        try:
            await client.connection(node)
        except HeliographError as error:
            fault = error
        else:
            return node
    raise fault


async def _may_read(client: ClusterClient, names: Sequence[str]) -> set[str]:
    """DescribeProducers, which needs READ as Fetch does, and which attach needs too."""
    node = await _reachable(client)
    answers = await client.producers(node, [(name, _NO_SUCH_PARTITION) for name in names])
    return {name for (name, _), answer in answers.items() if answer != TOPIC_REFUSED}


async def _may_write(client: ClusterClient, names: Sequence[str]) -> set[str]:
    """Produce into a partition that cannot exist."""
    connection = await client.connection(await _reachable(client))
    batch = plain_batch([(b"", None)], 0)
    # By name: a topic that does not exist has no id.
    version = connection.version(PRODUCE_API, 12)
    topics = [ProduceTopic(name, bytes(16), [(_NO_SUCH_PARTITION, batch)]) for name in names]
    answer = await connection.exchange(partial(_encode, version, topics))
    return {str(part.topic) for part in decode_produce(version, answer).partitions if part.error_code != TOPIC_REFUSED}


def _encode(version: int, topics: Sequence[ProduceTopic], correlation: int) -> Sequence[Buffer]:
    return encode_produce(version, correlation, CLIENT_ID, _TIMEOUT_MS, topics)


async def _may_alter(client: ClusterClient, names: Sequence[str]) -> set[str]:
    kind = CreatePartitionsRequest.CreatePartitionsTopic
    request = CreatePartitionsRequest(
        topics=[kind(name=name, count=1, assignments=None) for name in names],
        timeout_ms=_TIMEOUT_MS,
        validate_only=True,
    )
    answer = await client.ask_controller(request, CreatePartitionsResponse, 3)
    return {result.name for result in answer.results if result.error_code not in _REFUSED}


async def _may_delete(client: ClusterClient, names: Sequence[str]) -> set[str]:
    """DeleteRecords from a partition that cannot exist; DeleteTopics would take a topic that is made at this moment."""
    kind = DeleteRecordsRequest.DeleteRecordsTopic
    part = kind.DeleteRecordsPartition(partition_index=_NO_SUCH_PARTITION, offset=0)
    request = DeleteRecordsRequest(
        topics=[kind(name=name, partitions=[part]) for name in names], timeout_ms=_TIMEOUT_MS
    )
    connection = await client.connection(await _reachable(client))
    answer = await connection.ask(request, DeleteRecordsResponse, connection.version(request.API_KEY, 2))
    told = {topic.name: part.error_code for topic in answer.topics for part in topic.partitions}
    return {name for name, code in told.items() if code not in _REFUSED}


async def may_describe_configs(client: ClusterClient, names: Sequence[str]) -> set[str]:
    answers = await _config_answers(client, [(_TOPIC_RESOURCE, name) for name in names])
    return {name for name, code in answers.items() if code not in _REFUSED}


async def _may_alter_configs(client: ClusterClient, names: Sequence[str]) -> set[str]:
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    resources = [kind(resource_type=_TOPIC_RESOURCE, resource_name=name, configs=[]) for name in names]
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=True)
    answer = await client.ask_controller(request, IncrementalAlterConfigsResponse, 1)
    return {result.resource_name for result in answer.responses if result.error_code not in _REFUSED}


async def may_describe_broker_configs(client: ClusterClient) -> bool:
    """DESCRIBE_CONFIGS on the cluster: a broker's own settings are told by that broker."""
    node = await _reachable(client)
    answers = await _config_answers(client, [(_BROKER_RESOURCE, str(node))])
    return answers[str(node)] not in _REFUSED


async def _config_answers(client: ClusterClient, resources: Sequence[tuple[int, str]]) -> dict[str, int]:
    kind = DescribeConfigsRequest.DescribeConfigsResource
    wanted = [kind(resource_type=what, resource_name=name, configuration_keys=[]) for what, name in resources]
    request = DescribeConfigsRequest(resources=wanted, include_synonyms=False, include_documentation=False)
    connection = await client.connection(await _reachable(client))
    answer = await connection.ask(request, DescribeConfigsResponse, connection.version(request.API_KEY, 4))
    return {result.resource_name: result.error_code for result in answer.results}


async def try_create(client: ClusterClient, wishes: Sequence[CreateTopic]) -> dict[str, Refusal | None]:
    """By name: None where the topic could be created (or was made meanwhile), else the broker's refusal."""
    kind = CreateTopicsRequest.CreatableTopic
    topics = [
        kind(
            name=wish.name,
            num_partitions=wish.partitions,
            replication_factor=wish.replication_factor,
            assignments=[],
            configs=[kind.CreatableTopicConfig(name=name, value=value) for name, value in wish.configs.items()],
        )
        for wish in wishes
    ]
    if not topics:
        return {}
    request = CreateTopicsRequest(topics=topics, timeout_ms=_TIMEOUT_MS, validate_only=True)
    answer = await client.ask_controller(request, CreateTopicsResponse, 7)
    return {
        topic.name: None
        if topic.error_code in (0, _TOPIC_EXISTS)
        else Refusal(topic.error_code, topic.error_message or "")
        for topic in answer.topics
    }


async def may_use_transactional_id(client: ClusterClient, transactional_id: str) -> bool:
    """WRITE on the transactional id: InitProducerId with a timeout that is refused once the permission was looked at."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=_NO_TIMEOUT, producer_id=-1, producer_epoch=-1
    )
    answer = await client.ask_any(request, InitProducerIdResponse, 4)
    return answer.error_code not in _REFUSED


async def may_describe_groups(client: ClusterClient, names: Iterable[str]) -> dict[str, bool]:
    """DESCRIBE on each group; whoever is asked says it, also if another broker looks after the group."""
    wanted = sorted(set(names))
    found: dict[str, bool] = {}
    for first in range(0, len(wanted), _NAMES_PER_REQUEST):
        part = wanted[first : first + _NAMES_PER_REQUEST]
        request = DescribeGroupsRequest(groups=part, include_authorized_operations=False)
        answer = await client.ask_any(request, DescribeGroupsResponse, 5)
        found |= {group.group_id: group.error_code not in _REFUSED for group in answer.groups}
    return found


async def may_read_groups(client: ClusterClient, names: Iterable[str]) -> dict[str, bool]:
    """READ on each group, which a commit in its name needs: a heartbeat of nobody, which no group takes."""
    found: dict[str, bool] = {}
    for name in sorted(set(names)):
        request = HeartbeatRequest(group_id=name, generation_id=-1, member_id="", group_instance_id=None)
        answer = await client.ask_any(request, HeartbeatResponse, 4)
        found[name] = answer.error_code not in _REFUSED
    return found


async def cluster_operations(client: ClusterClient) -> Mapping[str, bool]:
    """DESCRIBE, ALTER and DESCRIBE_CONFIGS on the cluster. A broker tells no operations to who may not describe the cluster."""
    request = DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=1)
    answer = await client.ask_any(request, DescribeClusterResponse, 1)
    told = {OPERATIONS.get(code, str(code)) for code in answer.authorized_operations or ()}
    return {
        "DESCRIBE": "DESCRIBE" in told,
        "ALTER": "ALTER" in told,
        "DESCRIBE_CONFIGS": await may_describe_broker_configs(client),
    }
