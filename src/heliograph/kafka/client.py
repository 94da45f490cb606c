"""A cluster seen from a task or the driver: who leads what, and the questions that attach and the ledger ask.

Every method is one question to the right broker. Connections are kept by (broker, purpose), because a long poll or a produce
occupies its connection. Foreign answers are translated here; callers see values, ConnectionLost, BrokerRefused or
ClusterUnreachable.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import DescribeProducersRequest, DescribeProducersResponse
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from heliograph.errors import AccessRefused, BrokerRefused, ClusterUnreachable, ConnectionLost
from heliograph.kafka.connections import Connection
from heliograph.kafka.leaders import Leader, Leaders, TopicView, Views, newest
from heliograph.kafka.sockets import DEFAULT_BUFFERS, Buffers
from heliograph.kafka.unreachable import unreachable
from heliograph.model.clusters import Cluster
from heliograph.model.lanes import Identity

__all__ = ["EARLIEST", "LATEST", "ClusterClient", "Leader", "Partition", "ProducerState", "TopicView", "address_of"]

EARLIEST, LATEST = -2, -1
_COORDINATOR_BUSY = {14, 15, 16, 51}
_GROUP, _TRANSACTION = 0, 1  # kinds of keys that coordinators look after
_NOT_ALLOWED = 53
_TRANSACTION_TIMEOUT_MS = 60_000
_REFUSAL_SECONDS = 5.0
_IDLE_SECONDS = 240.0
"""Brokers close what is idle for ten minutes (connections.max.idle.ms), what stands between may do it sooner."""
_SECOND_OPINIONS = 3
_METADATA_SECONDS = 5.0

Partition = tuple[str, int]


@dataclass(frozen=True)
class ProducerState:
    """What a leader remembers of one producer id."""

    epoch: int
    last_sequence: int
    last_timestamp: int
    transaction_start: int = -1
    """The first offset of its open transaction, -1 without one."""


class ClusterClient:
    """Asks one cluster. Lives in one asyncio loop; opens nothing before the first question."""

    def __init__(self, cluster: Cluster, timeout_s: float | None = None, idle_s: float = _IDLE_SECONDS) -> None:
        self.cluster = cluster
        self.timeout_s = cluster.request_timeout_ms / 1000 if timeout_s is None else timeout_s
        self._idle_s = idle_s
        self.cluster_id = ""
        self._brokers: dict[int, tuple[str, int]] = {}
        self._connections: dict[tuple[int, str], Connection] = {}
        self._closed = False
        self._dialling = asyncio.Lock()
        self._opening: dict[tuple[int, str], asyncio.Lock] = {}
        self._refusals: dict[tuple[str, int], tuple[float, str]] = {}
        self._leaders = Leaders(time.monotonic)
        self._asked, self._doubted = "", frozenset[str]()
        """The address of the broker that was last asked for metadata, and of those that others are asked before."""

    @property
    def brokers(self) -> Mapping[int, tuple[str, int]]:
        """The addresses of all brokers, by node, as the last metadata had them."""
        return dict(self._brokers)

    # -- connections ------------------------------------------------------------------------------------------------

    async def connection(self, node: int, purpose: str = "ask") -> Connection:
        """The kept connection to a broker for a purpose; opened when there is none."""
        key = (node, purpose)
        lock = self._opening.setdefault(key, asyncio.Lock())
        async with lock:
            kept = self._connections.get(key)
            if kept is not None and self._is_good(kept):
                return kept
            return self._keep(key, await self.dial(node))

    async def dial(self, node: int, buffers: Buffers = DEFAULT_BUFFERS) -> Connection:
        """A connection of the caller's own."""
        if node not in self._brokers:
            await self.metadata([])
        if node not in self._brokers:
            raise ConnectionLost(f"cluster {self.cluster.alias}: broker {node} is not in the metadata")
        return await self._open(self._brokers[node], buffers)

    async def _open(self, address: tuple[str, int], buffers: Buffers = DEFAULT_BUFFERS) -> Connection:
        """One try. A refusal holds for a while: many lanes ask, and accounts are locked for less."""
        now = asyncio.get_running_loop().time()
        kept = self._refusals.get(address)
        if kept is not None and now < kept[0]:
            raise AccessRefused(kept[1])
        try:
            return await Connection.open(*address, self.timeout_s, self.cluster.security, buffers)
        except AccessRefused as error:
            self._refusals[address] = (now + _REFUSAL_SECONDS, str(error))
            raise

    async def _any(self) -> Connection:
        async with self._dialling:  # two askers at once would open two, and one would be nobody's
            return await self._kept_or_bootstrap()

    async def _kept_or_bootstrap(self) -> Connection:
        kept = [
            connection
            for (_, purpose), connection in self._connections.items()
            if purpose in ("ask", "bootstrap") and self._is_good(connection)
        ]
        trusted = next((connection for connection in kept if connection.name not in self._doubted), None)
        if trusted is not None:
            return trusted
        faults: dict[str, ConnectionLost] = {}
        known = {address: node for node, address in self._brokers.items()}
        addresses = dict.fromkeys([*map(address_of, self.cluster.bootstrap), *known])
        for host, port in sorted(addresses, key=lambda address: _name_of(address) in self._doubted):
            if kept and _name_of((host, port)) in self._doubted:
                return kept[0]  # nobody else is there
            try:
                connection = await self._open((host, port))
            except ConnectionLost as error:
                faults[f"{host}:{port}"] = error
                continue
            node = known.get((host, port), -1)
            return self._keep((node, "bootstrap"), connection)
        if kept:
            return kept[0]
        last = next(reversed(faults.values()), None)
        if isinstance(last, AccessRefused):
            raise AccessRefused(f"cluster {self.cluster.alias}: {last}")
        raise unreachable(self.cluster.alias, faults)

    def _is_good(self, kept: Connection) -> bool:
        if kept.is_idle(self._idle_s):
            kept.close()
        return not kept.closed

    def _keep(self, key: tuple[int, str], connection: Connection) -> Connection:
        if self._closed:
            connection.close()
            raise ConnectionLost(f"cluster {self.cluster.alias}: this client was closed")
        self._connections[key] = connection
        return connection

    def close(self) -> None:
        self._closed = True
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # -- questions --------------------------------------------------------------------------------------------------

    async def ask_any(self, request: Any, response: Any, wanted: int) -> Any:
        """One of the library's requests, in the newest version up to `wanted`, to whichever broker is at hand."""
        connection = await self._any()
        return await connection.ask(request, response, connection.version(request.API_KEY, wanted))

    async def ask_controller(self, request: Any, response: Any, wanted: int) -> Any:
        """The same to the broker that decides over topics; with KRaft every broker passes it on."""
        metadata = MetadataRequest(
            topics=[], allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )
        node = (await self.ask_any(metadata, MetadataResponse, 12)).controller_id
        connection = await self.connection(node)
        return await connection.ask(request, response, connection.version(request.API_KEY, wanted))

    async def metadata(self, topics: Iterable[str]) -> dict[str, TopicView]:
        """Leaders and topic ids of the named topics; brokers and cluster id on the way.

        Another broker is asked where one does not answer, and where it names leaders that are known to be of the past.
        """
        names = sorted(set(topics))
        views = await self._told(names)
        for _ in range(min(_SECOND_OPINIONS, len(self._brokers) - 1)):
            if not self._leaders.is_behind(views):
                break
            self.doubt()
            try:
                views = newest(views, await self._told(names))
            except (ConnectionLost, ClusterUnreachable):
                break
        return self._leaders.merged(views)

    async def _told(self, names: list[str]) -> Views:
        """By one broker, or by the next one where it does not answer."""
        for tried in range(_SECOND_OPINIONS):
            connection = await self._any()
            self._asked = connection.name
            # The last broker has all the time that there is, the others only as long as one that lives needs.
            is_last = tried + 1 >= min(_SECOND_OPINIONS, len(self._brokers))
            try:
                return await self._ask_metadata(connection, names, None if is_last else _METADATA_SECONDS)
            except ConnectionLost:
                if is_last:
                    raise
                self.doubt()
        raise AssertionError("the last broker answers or raises")

    async def _ask_metadata(self, connection: Connection, names: list[str], timeout_s: float | None) -> Views:
        wanted = [MetadataRequest.MetadataRequestTopic(topic_id=uuid.UUID(int=0), name=name) for name in names]
        request = MetadataRequest(
            topics=wanted, allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )
        answer = await connection.ask(request, MetadataResponse, connection.version(3, 12), timeout_s)
        self.cluster_id = answer.cluster_id or ""
        self._brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        return {
            topic.name: TopicView(
                topic_id=str(topic.topic_id),
                leaders={p.partition_index: Leader(p.leader_id, p.leader_epoch) for p in topic.partitions},
                error=topic.error_code,
            )
            for topic in answer.topics
        }

    def doubt(self, place: tuple[str, int] | None = None, node: int = -1, epoch: int = -1) -> None:
        """What we were told of leaders led to a broker that refuses or is gone: another one is asked next.

        With the partition (by topic id) and its leader, where the refusal named it.
        """
        if self._asked not in self._doubted:
            others = {_name_of(address) for address in self._brokers.values()} - self._doubted - {self._asked}
            self._doubted = self._doubted | {self._asked} if others else frozenset({self._asked})
        if place is not None and node >= 0:
            self._leaders.note(*place, Leader(node, epoch))

    async def newest_leader(self, topic: str, partition: int) -> Leader | None:
        """The leader with the highest leader epoch that any broker knows of; brokers that do not answer are left out."""
        found: Views = {}
        for node in list(self._brokers):
            try:
                connection = await self.connection(node)
                found = newest(found, await self._ask_metadata(connection, [topic], None))
            except ConnectionLost:
                continue
        return found[topic].leaders.get(partition) if topic in found else None

    async def nodes(self) -> list[int]:
        """The brokers that are up."""
        await self.metadata([])
        return sorted(self._brokers)

    async def group_coordinator(self, group: str) -> int:
        """The broker that looks after a group."""
        code = 15
        for attempt in range(20):
            if attempt:
                await asyncio.sleep(0.25)
            code, node = await self._coordinator(group, _GROUP)
            if code == 0:
                return node
            if code not in _COORDINATOR_BUSY:
                break
        raise BrokerRefused(code, f"cluster {self.cluster.alias}: the coordinator of group {group}")

    async def _coordinator(self, key: str, kind: int) -> tuple[int, int]:
        """An error code, and the broker that looks after a group or a transactional id; one look."""
        asked = await self._any()
        finding = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
        found = await asked.ask(finding, FindCoordinatorResponse, min(3, asked.version(10, 3)))
        return int(found.error_code), int(found.node_id)

    async def offsets(
        self, node: int, wanted: Iterable[Partition], timestamp: int, committed: bool = False
    ) -> dict[Partition, int]:
        """ListOffsets on a leader; partitions that it refuses are left out."""
        topic_type = ListOffsetsRequest.ListOffsetsTopic
        topics = [
            topic_type(
                name=name,
                partitions=[
                    topic_type.ListOffsetsPartition(partition_index=p, current_leader_epoch=-1, timestamp=timestamp)
                    for p in partitions
                ],
            )
            for name, partitions in _by_topic(wanted).items()
        ]
        connection = await self.connection(node)
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=int(committed), topics=topics, timeout_ms=int(self.timeout_s * 1000)
        )
        answer = await connection.ask(request, ListOffsetsResponse, connection.version(2, 7))
        return {
            (topic.name, p.partition_index): p.offset
            for topic in answer.topics
            for p in topic.partitions
            if p.error_code == 0
        }

    async def producers(
        self, node: int, wanted: Iterable[Partition]
    ) -> dict[Partition, Mapping[int, ProducerState] | int]:
        """DescribeProducers on a leader: by partition the producers it remembers, or its error code."""
        topics = [
            DescribeProducersRequest.TopicRequest(name=name, partition_indexes=partitions)
            for name, partitions in _by_topic(wanted).items()
        ]
        connection = await self.connection(node)
        request = DescribeProducersRequest(topics=topics)
        answer = await connection.ask(request, DescribeProducersResponse, connection.version(61, 0))
        found: dict[Partition, Mapping[int, ProducerState] | int] = {}
        for topic in answer.topics:
            for part in topic.partitions:
                found[(topic.name, part.partition_index)] = part.error_code or {
                    producer.producer_id: ProducerState(
                        producer.producer_epoch,
                        producer.last_sequence,
                        producer.last_timestamp,
                        producer.current_txn_start_offset,
                    )
                    for producer in part.active_producers
                }
        return found

    async def new_identity(self, transactional_id: str) -> Identity:
        """A producer id and an epoch that nobody else has: InitProducerId(-1, -1) at the coordinator (P1.3)."""
        code = 15
        for attempt in range(40):
            if attempt:
                await asyncio.sleep(0.1 if attempt < 10 else 0.5)
            code, node = await self._coordinator(transactional_id, _TRANSACTION)
            if code in _COORDINATOR_BUSY:
                continue
            if code:
                break
            if node not in self._brokers:
                await self.metadata([])
            connection = await self.connection(node)
            request = InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
                producer_id=-1,
                producer_epoch=-1,
            )
            answer = await connection.ask(request, InitProducerIdResponse, connection.version(22, 4))
            code = answer.error_code
            if code == 0:
                return Identity(answer.producer_id, answer.producer_epoch)
            if code not in _COORDINATOR_BUSY:
                break
        needed = f" (this needs WRITE on transactional id {transactional_id})" if code == _NOT_ALLOWED else ""
        raise BrokerRefused(code, f"cluster {self.cluster.alias}: InitProducerId for {transactional_id}{needed}")


def address_of(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def _name_of(address: tuple[str, int]) -> str:
    """As a connection to it is called."""
    return f"{address[0]}:{address[1]}"


def _by_topic(wanted: Iterable[Partition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for name, partition in sorted(set(wanted)):
        grouped.setdefault(name, []).append(partition)
    return grouped
