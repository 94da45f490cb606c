"""One flow on two clusters with the authorizer on, and a grant for every row of the footprint's table."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, TypeVar

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka.protocol.consumer import JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse

from heliograph.config.flows import Settings
from heliograph.config.load import load_file
from heliograph.control.clock import Clock
from heliograph.kafka.client import ClusterClient
from heliograph.operations.check import check
from heliograph.operations.compare import compare_topics
from heliograph.replication.findings import Finding, Level
from heliograph.replication.mm2_progress import SOURCE_CONNECTOR, default_configs_topic, default_group, default_topic
from heliograph.replication.permissions import NEEDS, Need, On
from heliograph.replication.topic_names import HEARTBEATS
from heliograph.wire.mm2 import StoredOffset, encode_stored_offset
from tests.integration.protocol.harness import with_client
from tests.support.guarded import Grant, GuardedCluster
from tests.support.mirror import flow_file, word
from tests.support.topics import ANSWER_SECONDS

OWN_TOPICS = ("__heliograph-ledger", "__heliograph-telemetry", "__heliograph-events")
PARTITIONS = 2
RECORDS = 100
COMMITTED = 7
"""What a group of the source has read of its first partition."""
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
_CLUSTER = "kafka-cluster"
_CONTAINED_IN = {(On.REMOTE_TOPICS, "DESCRIBE_CONFIGS"): "ALTER_CONFIGS", (On.TARGET_CLUSTER, "DESCRIBE"): "ALTER"}
_LONG_MS = 600_000

Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Pair:
    a: GuardedCluster
    b: GuardedCluster


class Footprint:
    """One flow of one topic with 100 records; inside `with` every row of the table is granted, and nothing else."""

    def __init__(self, pair: Pair, directory: Path) -> None:
        self.pair = pair
        self.name = word()
        self.source, self.target = f"{self.name}s", f"{self.name}t"
        self.flow = f"{self.source}->{self.target}"
        self.remote = f"{self.source}.{self.name}"
        self.group = f"{self.name}g"
        self._member = ""
        self.offsets_topic = default_topic(self.source)
        clusters = {self.source: pair.a.bootstrap, self.target: pair.b.bootstrap}
        lines = {
            f"{self.flow}.start.from": f"group:{self.name}",  # it has committed nothing: lanes begin at the start
            f"{self.flow}.on.bad.record": "dead-letter",
            f"{self.flow}.sync.topic.deletes.enabled": "true",
            "emit.heartbeats.enabled": "true",
            "commit.source.group": "true",
            f"{self.flow}.canary.enabled": "true",
            "heartbeats.topic.replication.factor": "1",
            "emit.offset-syncs.enabled": "true",
            "offset-syncs.topic.replication.factor": "1",
            "emit.checkpoints.enabled": "true",
            "checkpoints.topic.replication.factor": "1",
            f"{self.flow}.sync.group.offsets.enabled": "true",
            f"{self.flow}.groups": self.group,
            f"{self.target}.offset.storage.replication.factor": "1",
            f"{self.target}.offset.storage.partitions": "1",
        }
        self.file = flow_file(directory / "mm2.properties", clusters, {self.flow: self.name}, lines)
        syncs = {f"{self.flow}.offset-syncs.topic.location": "target"}
        self._with_syncs_there = flow_file(
            directory / "there.properties", clusters, {self.flow: self.name}, lines | syncs
        )
        back = f"{self.target}->{self.source}"
        names = {f"{back}.replication.policy.class": IDENTITY}
        both = {self.flow: self.name, back: "kept"}
        self.both_ways = flow_file(directory / "both.properties", clusters, both, lines | names)
        pair.a.create_topic(self.name, PARTITIONS)
        pair.a.write(self.name, RECORDS)
        pair.a.commit(self.group, self.name, 0, COMMITTED)

    def grants_of(self, need: Need) -> tuple[Grant, ...]:
        resources: Mapping[On, list[tuple[str, str, bool]]] = {
            On.SOURCE_TOPICS: [("topic", self.name, False)],
            On.REMOTE_TOPICS: [("topic", self.remote, False)],
            On.OWN_TOPICS: [("topic", name, False) for name in OWN_TOPICS],
            On.SOURCE_HEARTBEATS: [("topic", HEARTBEATS, False)],
            On.TARGET_HEARTBEATS: [("topic", HEARTBEATS, False)],
            On.SOURCE_SYNCS: [("topic", f"mm2-offset-syncs.{self.target}.internal", False)],
            On.TARGET_SYNCS: [("topic", f"mm2-offset-syncs.{self.source}.internal", False)],
            On.CHECKPOINTS: [("topic", f"{self.source}.checkpoints.internal", False)],
            On.SOURCE_GROUPS: [("group", self.group, False)],
            On.TARGET_GROUPS: [("group", self.group, False)],
            On.HOME_LEDGER: [("topic", OWN_TOPICS[0], False)],
            On.SOURCE_GROUP: [("group", f"heliograph-{self.source}-{self.target}", False)],
            On.CANARY: [("topic", f"heliograph-canary-{self.source}-{self.target}", False)],
            On.SOURCE_CLUSTER: [("cluster", _CLUSTER, False)],
            On.TARGET_CLUSTER: [("cluster", _CLUSTER, False)],
            On.TRANSACTIONAL_ID: [("transactional id", f"heliograph.{self.flow}", False)],
            On.MM2_GROUP: [("group", default_group(self.source), False)],
            On.START_GROUP: [("group", self.name, False)],
            On.DEAD_LETTERS: [("topic", "__heliograph-dead-letter.", True)],
            On.MM2_OFFSETS: [("topic", self.offsets_topic, False)],
            On.MM2_CONFIGS: [("topic", default_configs_topic(self.source), False)],
        }
        return tuple(Grant(kind, name, need.operation, prefixed) for kind, name, prefixed in resources[need.on])

    def cluster_of(self, need: Need) -> GuardedCluster:
        return self.pair.a if need.is_on_source else self.pair.b

    def __enter__(self) -> Self:
        for need in NEEDS:
            self.cluster_of(need).grant(*self.grants_of(need))
        return self

    def __exit__(self, *_: object) -> None:
        for need in NEEDS:
            self.cluster_of(need).revoke(*self.grants_of(need))

    def without(self, need: Need, look: Callable[[], Seen]) -> Seen:
        """What is seen while one permission is taken away, and what contains it."""
        container = _CONTAINED_IN.get((need.on, need.operation))
        taken = [each for each in NEEDS if each == need or (each.on, each.operation) == (need.on, container)]
        cluster, grants = self.cluster_of(need), [grant for each in taken for grant in self.grants_of(each)]
        cluster.revoke(*grants)
        try:
            return look()
        finally:
            cluster.grant(*grants)

    # -- what is seen -----------------------------------------------------------------------------------------------

    def topics(self) -> set[str]:
        """All topics of the target."""
        return set(AdminClient(self.pair.b.root).list_topics(timeout=ANSWER_SECONDS).topics)

    def file_of(self, need: Need | None) -> Path:
        """The file whose flow needs it; None: the one that needs most."""
        others = {On.TARGET_SYNCS: self._with_syncs_there, On.HOME_LEDGER: self.both_ways}
        return self.file if need is None else others.get(need.on, self.file)

    def check(self, need: Need | None = None) -> list[Finding]:
        """The findings of the flow, by the file that needs this permission."""
        return asyncio.run(check(self.settings(need), Clock().now_ms))

    def settings(self, need: Need | None = None) -> Settings:
        """With this flow alone: a flow in the other direction is there for what it means to this one."""
        settings = load_file(str(self.file_of(need)))
        return replace(settings, flows=tuple(flow for flow in settings.flows if flow.flow.name == self.flow))

    def assert_named(self, need: Need, findings: list[Finding], level: Level | None = None) -> None:
        """The missing permission has a line of its own, and says on what it is missing, where, and what to do."""
        subject = f"{self.flow}: permission {need.operation}"
        alias = self.source if need.is_on_source else self.target
        is_cluster = need.on in (On.SOURCE_CLUSTER, On.TARGET_CLUSTER)
        names = ["the cluster"] if is_cluster else [grant.name for grant in self.grants_of(need)]
        missing = [found for found in findings if found.level is not Level.PASS and found.subject == subject]
        named = [found for found in missing if all(name in found.sentence for name in names)]
        assert len(named) == 1, f"{need}: {findings}"
        assert named[0].level is (level or need.level)
        assert f"{need.operation} on" in named[0].sentence
        assert f"of cluster {alias} is missing" in named[0].sentence
        assert f"grant {need.operation} on" in named[0].advice

    def assert_copied(self) -> None:
        compared = compare_topics(self.pair.a.bootstrap, self.pair.b.bootstrap, {self.name: self.remote})
        assert (compared.records, list(compared.differences)) == (RECORDS, [])

    def assert_books_closed(self) -> None:
        """A run that came to its end left what tells how far: a sync of each lane, and the group where its record is."""
        assert self.root_ends(f"mm2-offset-syncs.{self.target}.internal", self.pair.a) == {0: PARTITIONS}
        assert self.root_ends(f"{self.source}.checkpoints.internal") == {0: 1}
        reader = Consumer(self.pair.b.root | {"group.id": self.group})
        (found,) = reader.committed([TopicPartition(self.remote, 0)], ANSWER_SECONDS)
        reader.close()
        assert found.offset == COMMITTED

    def root_ends(self, topic: str, cluster: GuardedCluster | None = None) -> dict[int, int]:
        """Ends on the target (or another cluster), whatever is granted; nothing for a topic that is not there."""
        reader = Consumer((cluster or self.pair.b).root | {"group.id": "by-hand"})
        try:
            found = reader.list_topics(timeout=ANSWER_SECONDS).topics.get(topic)
            parts = [TopicPartition(topic, number) for number in (found.partitions if found else ())]
            return {part.partition: reader.get_watermark_offsets(part, ANSWER_SECONDS)[1] for part in parts}
        finally:
            reader.close()

    # -- what MirrorMaker 2 leaves ----------------------------------------------------------------------------------

    def mirror_by_hand(self, each: int, stored: int) -> None:
        """The first records of each partition, written as MirrorMaker 2 does, and older stored progress."""
        self.pair.b.create_topic(self.remote, PARTITIONS)
        self.pair.b.create_topic(self.offsets_topic, 1, {"cleanup.policy": "compact"})
        writer = Producer(self.pair.b.root)
        for partition in range(PARTITIONS):
            for record in self._first(partition, each):
                writer.produce(self.remote, record[1], record[0], partition, timestamp=record[2])
            progress = StoredOffset(SOURCE_CONNECTOR, self.source, self.name, partition, stored)
            key, value = encode_stored_offset(progress)
            writer.produce(self.offsets_topic, value, key, 0)
        assert writer.flush(ANSWER_SECONDS) == 0

    def empty_remote(self, before: int) -> None:
        """As retention does, up to an offset of each partition."""
        client = AdminClient(self.pair.b.root)
        wanted = [TopicPartition(self.remote, partition, before) for partition in range(PARTITIONS)]
        for future in client.delete_records(wanted).values():
            future.result(ANSWER_SECONDS)

    def tell(self, flows: Sequence[str]) -> None:
        """An event of each flow, in this order."""
        writer = Producer(self.pair.b.root)
        for flow in flows:
            writer.produce("__heliograph-events", json.dumps({"flow": flow}).encode(), flow.encode(), 0)
        assert writer.flush(ANSWER_SECONDS) == 0

    def _first(self, partition: int, count: int) -> list[tuple[bytes | None, bytes | None, int]]:
        reader = Consumer(self.pair.a.root | {"group.id": "by-hand", "enable.auto.commit": False})
        reader.assign([TopicPartition(self.name, partition, 0)])
        found = []
        for _ in range(count):
            message = reader.poll(ANSWER_SECONDS)
            assert message is not None and message.error() is None
            found.append((message.key(), message.value(), message.timestamp()[1]))
        reader.close()
        return found

    def join_as_worker(self) -> None:
        """A worker joins MirrorMaker 2's group on the target, gets no work yet, and is not heard of for ten minutes."""
        group = default_group(self.source)
        joining = Grant("group", group, "READ")
        self.pair.b.grant(joining)
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="sessioned", metadata=b"")
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=_LONG_MS,
            rebalance_timeout_ms=_LONG_MS,
            member_id="",
            protocol_type="connect",
            protocols=[protocol],
        )

        async def join(client: ClusterClient) -> JoinGroupResponse:
            connection = await client.connection(await client.group_coordinator(group))
            return await connection.ask(request, JoinGroupResponse, 3)  # later versions ask twice

        answer = with_client(self.pair.b.bootstrap, join)
        assert answer.error_code == 0
        self._member = answer.member_id
        self.pair.b.revoke(joining)

    def leave_as_worker(self) -> None:
        group = default_group(self.source)
        leaving = Grant("group", group, "READ")
        self.pair.b.grant(leaving)

        async def leave(client: ClusterClient) -> int:
            connection = await client.connection(await client.group_coordinator(group))
            request = LeaveGroupRequest(group_id=group, member_id=self._member)
            return int((await connection.ask(request, LeaveGroupResponse, 2)).error_code)

        assert with_client(self.pair.b.bootstrap, leave) == 0
        self.pair.b.revoke(leaving)
