"""One cluster's topics, configs and offsets: kafka-python's admin client, behind our own values and errors.

Runs on the driver only and blocks. Foreign errors are translated here and nowhere else: no answer in time is
ClusterUnreachable, an answer with an error code is BrokerRefused, what only a person can change is SetupError.
Every call ends within about twice the time it was given: once for the retries, once for the last request.
Counterpart: `replication.topic_plan` decides what is applied here. How the client is made: `admin_client`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeVar

import kafka.errors as foreign
from kafka.admin import KafkaAdminClient
from kafka.protocol.consumer import IsolationLevel, OffsetSpec
from kafka.structs import TopicPartition

from heliograph.errors import AccessRefused, BrokerRefused, ClusterUnreachable, HeliographError, SetupError
from heliograph.kafka.admin_client import client_settings, connect
from heliograph.kafka.admin_requests import (
    UNAUTHORIZED,
    UNKNOWN_TOPIC,
    check_created,
    check_grown,
    check_ready,
    described_cluster,
    described_configs,
    described_topics,
    log_sizes,
    permission_needed,
    unfenced_brokers,
    wish,
)
from heliograph.kafka.config_changes import ConfigChange, altered
from heliograph.kafka.ledger import EVENTS_TOPIC, FLOWS_TOPIC, LEDGER_TOPIC, TELEMETRY_TOPIC
from heliograph.kafka.topic_writer import BATCH_BYTES
from heliograph.kafka.unreachable import is_refused, unreachable
from heliograph.model.clusters import Cluster
from heliograph.model.security import PLAINTEXT
from heliograph.model.topics import ConfigValue, Topic
from heliograph.replication.topic_plan import AddPartitions, CreateTopic

INTERNAL_REPLICATION_OPTION = "heliograph.topics.replication.factor"

Partition = tuple[str, int]
Answer = TypeVar("Answer")

_RETRY_PAUSE_S = 0.1
_UNKNOWN_TOPIC_PATIENCE_S = 2.0
_PATIENCE_MS = 10_000
"""A new topic is not known to all brokers at once; a topic that is still unknown after this does not exist."""
_CONFIG_RESOURCES_PER_REQUEST = 500
_TOPICS_PER_REQUEST = 100
_TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4
_LEADER_NOT_AVAILABLE = 5
_TOPIC_EXISTS, _INVALID_PARTITIONS, _INVALID_REPLICATION_FACTOR = 36, 37, 38
_ISOLATION = {"read_committed": IsolationLevel.READ_COMMITTED, "read_uncommitted": IsolationLevel.READ_UNCOMMITTED}


class ClusterAdmin:
    """Asks and changes one cluster. Connects with the first call, and anew after every loss of the connection."""

    def __init__(self, cluster: Cluster, request_timeout_ms: int | None = None) -> None:
        self._cluster = cluster
        self._request_ms = cluster.request_timeout_ms if request_timeout_ms is None else request_timeout_ms
        self._timeout_ms = min(self._request_ms, _PATIENCE_MS) if request_timeout_ms is None else request_timeout_ms
        """For how long what may go away by itself is tried again: a single answer may take longer."""
        self._settings = client_settings(cluster)
        self._client: KafkaAdminClient | None = None
        self._was_reached = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Idempotent; the next call connects again."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def cluster_id(self) -> str:
        return str(self._call("describe the cluster", described_cluster)["cluster_id"])

    def brokers(self) -> int:
        """How many brokers are up: a replication factor cannot be larger."""
        return len(self._broker_ids())

    def topics(
        self,
        names: Iterable[str] | None = None,
        with_configs: bool = False,
        hidden: set[str] | None = None,
        unread: dict[str, str] | None = None,
    ) -> dict[str, Topic]:
        """All topics, or those of `names` that exist; with `hidden` those that may not be seen go there.

        With `unread` those whose configs may not be read are named there, with a sentence, and have none.
        """
        wanted = None if names is None else sorted(set(names))
        if wanted == []:
            return {}
        rows = self._call("list topics", lambda client: described_topics(client, wanted, hidden))
        configs = self.topic_configs((row["name"] for row in rows), unread) if with_configs else {}
        return {
            row["name"]: Topic(row["name"], str(row["topic_id"]), len(row["partitions"]), configs.get(row["name"], {}))
            for row in sorted(rows, key=lambda row: str(row["name"]))
            if not with_configs or row["name"] in configs or row["name"] in (unread or ())
        }

    def topic_configs(
        self, names: Iterable[str], refused: dict[str, str] | None = None
    ) -> dict[str, dict[str, ConfigValue]]:
        """All configs of these topics, defaults too; a topic that does not exist is left out.

        With `refused` a topic whose configs may not be read goes there, with a sentence, instead of failing all others.
        """
        found: dict[str, dict[str, ConfigValue]] = {}
        for part in _parts(sorted(set(names))):
            resources = [(_TOPIC_RESOURCE, name, None) for name in part]
            ask = partial(described_configs, resources=resources, refused=refused, alias=self._cluster.alias)
            found.update(self._call("describe topic configs", ask))
        return found

    def alter_configs(self, changes: Mapping[str, ConfigChange]) -> dict[str, str]:
        """Change configs of topics and leave their others as they are; a sentence for each topic where it was refused."""
        refused: dict[str, str] = {}
        for part in _parts(sorted(changes)):
            rows = {name: changes[name] for name in part}
            refused |= self._call("alter topic configs", partial(altered, changes=rows, alias=self._cluster.alias))
        return refused

    def broker_config(self, name: str) -> str | None:
        """A broker's setting, asked of the broker with the lowest id; None if it is not set or not known there."""
        return self._config_of(min(self._broker_ids()), name)

    def least_broker_config(self, name: str) -> int | None:
        """The smallest number that any broker has; None if no broker knows it. One that does not answer is left out."""
        found: list[str | None] = []
        for last, broker in enumerate(brokers := self._broker_ids(), 1):
            try:
                found.append(self._config_of(broker, name))
            except ClusterUnreachable:
                if last == len(brokers) and not found:
                    raise
        return min((int(value) for value in found if value), default=None)

    def _config_of(self, broker: int, name: str) -> str | None:
        resources = [(_BROKER_RESOURCE, str(broker), [name])]
        found = self._call(
            f"describe broker config '{name}'", lambda client: described_configs(client, resources, broker)
        )
        config = found.get(str(broker), {}).get(name)
        return None if config is None else config.value

    def create(self, action: CreateTopic, option: str = "replication.factor") -> bool:
        """Create a topic and wait until it can be used, also where it was there already: then False.

        `option` is the one that chose the replication factor: the error names it.
        """
        doing = f"create topic '{action.name}'"
        try:
            self._call(doing, lambda client: check_created(client.create_topics(wish([action]), raise_errors=False)))
        except BrokerRefused as refusal:
            if refusal.code == _TOPIC_EXISTS:
                # Another run of the same flow made it a moment ago: the controller knows it before the brokers do.
                self._wait_for_leaders(doing, {action.name: 1})
                return False
            if refusal.code == _INVALID_REPLICATION_FACTOR:
                raise self._too_few_brokers(action, option) from refusal
            raise
        self._wait_for_leaders(doing, {action.name: action.partitions})
        return True

    def create_all(self, actions: Sequence[CreateTopic]) -> dict[str, BrokerRefused]:
        """As `create`, many in a request; what brokers refuse, by name. The rest is made."""
        refused: dict[str, BrokerRefused] = {}
        for first in range(0, len(actions), _TOPICS_PER_REQUEST):
            refused |= self._create_some(actions[first : first + _TOPICS_PER_REQUEST])
        return refused

    def _create_some(self, actions: Sequence[CreateTopic]) -> dict[str, BrokerRefused]:
        doing = f"create topics '{actions[0].name}' and {len(actions) - 1} more"
        answer = self._call(doing, lambda client: client.create_topics(wish(actions), raise_errors=False))
        failed = {row["name"]: row for row in answer["topics"] if row["error_code"]}
        self._wait_for_leaders(doing, {one.name: one.partitions for one in actions if one.name not in failed})
        told = ((action.name, self._alone(action, failed[action.name])) for action in actions if action.name in failed)
        return {name: refusal for name, refusal in told if refusal is not None}

    def _alone(self, action: CreateTopic, row: Mapping[str, Any]) -> BrokerRefused | None:
        """What was refused among others is tried alone, which says why; a missing permission says it already."""
        if row["error_code"] in UNAUTHORIZED:
            error = foreign.for_code(row["error_code"])(row.get("error_message") or action.name)
            return self._refused(f"create topic '{action.name}'", error)
        try:
            self.create(action)
        except BrokerRefused as refusal:
            return refusal
        return None

    def _wait_for_leaders(self, doing: str, wanted: Mapping[str, int]) -> None:
        if wanted:
            self._call(f"{doing}, wait for leaders", partial(check_ready, wanted=wanted))

    def add_partitions(self, action: AddPartitions) -> bool:
        """Grow a topic and wait until it can be used; False if it had that many already."""
        doing = f"add partitions to topic '{action.name}'"
        wish = {action.name: action.want}
        try:
            self._call(doing, lambda client: check_grown(client.create_partitions(wish, raise_errors=False)))
        except BrokerRefused as refusal:
            # Somebody else was faster: another run of the same flow, or this one before an answer that was lost.
            if refusal.code == _INVALID_PARTITIONS and self._partitions(action.name) >= action.want:
                return False
            raise
        self._wait_for_leaders(doing, {action.name: action.want})
        return True

    def ends(self, partitions: Iterable[Partition], isolation: str = "read_committed") -> dict[Partition, int]:
        """Where each partition ends: the last stable offset if `read_committed`, else the high watermark."""
        return self._offsets(partitions, OffsetSpec.LATEST, _ISOLATION[isolation])

    def starts(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset of each partition."""
        return self._offsets(partitions, OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED)

    def sizes(self, topics: Iterable[str]) -> dict[str, int]:
        """Bytes of each topic on disk, one replica of each partition; topics that no broker tells of are left out."""
        wanted = sorted(set(topics))
        if not wanted:
            return {}
        rows = self._call("describe log directories", lambda client: client.describe_log_dirs(wanted))
        largest = dict(sorted(log_sizes(rows)))  # of a partition's replicas the last, which is the largest, stays
        totals: Counter[str] = Counter()
        for (topic, _), size in largest.items():
            totals[topic] += size
        return dict(totals)

    def ensure_internal_topics(self, replication_factor: int = 0) -> None:
        """Create Heliograph's own topics where they are missing; 0: as many replicas as brokers, at most 3."""
        existing = self.topics([LEDGER_TOPIC, TELEMETRY_TOPIC, EVENTS_TOPIC], with_configs=True)
        for action in self.missing_internal_topics(existing, replication_factor):
            self.create(action, INTERNAL_REPLICATION_OPTION)
        ledger = existing.get(LEDGER_TOPIC)
        if ledger is not None and ledger.config("cleanup.policy") != "compact":
            raise SetupError(
                f"topic '{LEDGER_TOPIC}' on cluster '{self._cluster.alias}' has "
                f"cleanup.policy={ledger.config('cleanup.policy')}: it must be compact, or positions get lost"
            )

    def ensure_ledger(self, replication_factor: int = 0) -> None:
        """Create the ledger alone where it is missing, for a flow that only reads it here."""
        for action in self.missing_internal_topics(self.topics([LEDGER_TOPIC]), replication_factor):
            if action.name == LEDGER_TOPIC:
                self.create(action, INTERNAL_REPLICATION_OPTION)

    def missing_internal_topics(self, existing: Iterable[str], replication_factor: int = 0) -> list[CreateTopic]:
        replicas = replication_factor or min(3, self.brokers())
        return [action for action in internal_topics(replicas) if action.name not in set(existing)]

    def ensure_flows_topic(self, replication_factor: int = 0) -> None:
        """Create the topic that keeps what REST changed."""
        if not self.topics([FLOWS_TOPIC]):
            replicas = replication_factor or min(3, self.brokers())
            configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"}
            action = CreateTopic(FLOWS_TOPIC, 1, replicas, configs, "it keeps what REST changed")
            self.create(action, INTERNAL_REPLICATION_OPTION)

    def _broker_ids(self) -> list[int]:
        return self._call("find a broker that is not fenced", unfenced_brokers)

    def _partitions(self, name: str) -> int:
        topic = self.topics([name]).get(name)
        return 0 if topic is None else topic.partitions

    def _offsets(self, partitions: Iterable[Partition], spec: OffsetSpec, isolation: Any) -> dict[Partition, int]:
        wanted = {TopicPartition(topic, partition): spec for topic, partition in partitions}
        if not wanted:
            return {}
        found = self._call("list offsets", lambda client: client.list_partition_offsets(wanted, isolation))
        return {(at.topic, at.partition): int(answer.offset) for at, answer in found.items()}

    def _too_few_brokers(self, action: CreateTopic, option: str) -> SetupError:
        return SetupError(
            f"{option}={action.replication_factor} is not possible for topic '{action.name}': "
            f"cluster '{self._cluster.alias}' has {self.brokers()} broker(s)"
        )

    def _call(self, doing: str, ask: Callable[[KafkaAdminClient], Answer]) -> Answer:
        """Ask until there is an answer, the error is one that stays, or the time is over."""
        began = time.monotonic()
        while True:
            try:
                return ask(self._connected(began))
            except (foreign.KafkaError, OSError, RuntimeError) as error:
                if not _is_answer(error):
                    # The library keeps asking the controller it knows, also when that broker is gone or frozen.
                    self.close()
                if time.monotonic() - began >= self._patience_s(error):
                    raise self._translated(doing, error) from error
            time.sleep(_RETRY_PAUSE_S)

    def _connected(self, began: float) -> KafkaAdminClient:
        """The client, made with the first address that serves; each address has its share of the time that is left."""
        if self._client is not None:
            return self._client
        faults: dict[str, Exception] = {}
        for tried, address in enumerate(self._cluster.bootstrap):
            left_ms = self._timeout_ms - int((time.monotonic() - began) * 1000)
            share_ms = max(100, left_ms // (len(self._cluster.bootstrap) - tried))
            try:
                security = self._cluster.security
                self._client = connect(address, self._settings, security, self._request_ms, share_ms)
                self._was_reached = True
                return self._client
            except AccessRefused as error:
                faults[address] = AccessRefused(f"cluster {self._cluster.alias}: {error}")
            except (foreign.KafkaError, OSError) as error:
                faults[address] = error
        if not self._was_reached and faults and all(map(is_refused, faults.values())):
            # A broker that restarts is waited for; where nobody ever listened nobody is.
            raise unreachable(self._cluster.alias, faults)
        raise next(reversed(faults.values()), OSError("no address"))

    def _patience_s(self, error: Exception) -> float:
        """For how long this error may go away by itself."""
        if _code(error) == UNKNOWN_TOPIC:
            return min(_UNKNOWN_TOPIC_PATIENCE_S, self._timeout_ms / 1000)
        passes = not isinstance(error, foreign.KafkaError) or error.retriable
        return self._timeout_ms / 1000 if passes or isinstance(error, foreign.UnknownBrokerIdError) else 0.0

    def _translated(self, doing: str, error: Any) -> HeliographError:
        alias = self._cluster.alias
        if isinstance(error, foreign.IncompatibleBrokerVersion):
            return SetupError(f"the brokers of cluster '{alias}' are too old to {doing}: {error}")
        if isinstance(error, foreign.UnknownBrokerIdError):
            return BrokerRefused(_LEADER_NOT_AVAILABLE, f"cluster '{alias}', {doing}: a partition has no leader")
        if _is_answer(error):
            return self._refused(doing, error)
        if isinstance(error, foreign.KafkaError) and not error.retriable:
            return SetupError(f"cluster '{alias}', {doing}: {error}")
        addresses = ", ".join(self._cluster.bootstrap)
        why = f": {error}" if isinstance(error, OSError) and self._cluster.security != PLAINTEXT else ""
        return ClusterUnreachable(
            f"cluster {alias} at {addresses} did not answer within {self._timeout_ms / 1000:g} s ({doing}){why}"
        )

    def _refused(self, doing: str, error: Any) -> BrokerRefused:
        said = f"{error.message}, {', '.join(map(str, error.args))}"
        what = f"cluster '{self._cluster.alias}', {doing}: {said}{permission_needed(doing, _code(error))}"
        return BrokerRefused(_code(error), what)


def internal_topics(replication_factor: int) -> tuple[CreateTopic, ...]:
    """Heliograph's own topics on the target of a flow."""
    reason = "Heliograph keeps its own state on the target"
    ledger = {
        "cleanup.policy": "compact",
        "max.message.bytes": str(2 * BATCH_BYTES),
        "message.timestamp.type": "LogAppendTime",  # its answers tell the brokers' time
        "min.cleanable.dirty.ratio": "0.1",
        "min.insync.replicas": "2" if replication_factor >= 3 else "1",
        "segment.bytes": "1048576",
        "unclean.leader.election.enable": "false",
    }
    telemetry = {"cleanup.policy": "delete", "retention.ms": "600000", "segment.ms": "60000"}
    events = {"cleanup.policy": "delete", "retention.ms": "2592000000"}
    return (
        CreateTopic(LEDGER_TOPIC, 16, replication_factor, ledger, reason),
        CreateTopic(TELEMETRY_TOPIC, 1, replication_factor, telemetry, reason),
        CreateTopic(EVENTS_TOPIC, 1, replication_factor, events, reason),
    )


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(names), _CONFIG_RESOURCES_PER_REQUEST):
        yield names[first : first + _CONFIG_RESOURCES_PER_REQUEST]


def _is_answer(error: Exception) -> bool:
    """A broker said so. A time-out is none, whoever noticed it: the library has one class for both sides."""
    return isinstance(error, foreign.BrokerResponseError) and not isinstance(error, foreign.RequestTimedOutError)


def _code(error: Any) -> int:
    return int(error.errno) if _is_answer(error) else 0
