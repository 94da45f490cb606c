"""A cluster with Kafka's authorizer on: its clients are User:ANONYMOUS and may do what was granted, the test is a superuser.

The superuser's listener is SASL/PLAIN, which also serves broker and controller; what Heliograph uses is PLAINTEXT.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.embedded.probe import HOST, free_ports
from tests.support.groups import commit_as
from tests.support.topics import ANSWER_SECONDS
from tests.support.waiting import wait_until

_LOGIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="root" password="root" user_root="root";'
)
_CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT,ROOT:SASL_PLAINTEXT",
    "inter.broker.listener.name": "ROOT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": _LOGIN,
    "listener.name.root.plain.sasl.jaas.config": _LOGIN,
}


@dataclass(frozen=True)
class Grant:
    """An ALLOW for User:ANONYMOUS. `resource` is `topic`, `group`, `cluster` or `transactional id`."""

    resource: str
    name: str
    operation: str
    prefixed: bool = False

    def binding(self) -> AclBinding:
        return AclBinding(*self._what(), "User:ANONYMOUS", "*", *self._how())

    def filter(self) -> AclBindingFilter:
        return AclBindingFilter(*self._what(), "User:ANONYMOUS", "*", *self._how())

    def _what(self) -> tuple[ResourceType, str, ResourcePatternType]:
        # librdkafka calls the cluster a broker.
        kinds = {"topic": "TOPIC", "group": "GROUP", "cluster": "BROKER", "transactional id": "TRANSACTIONAL_ID"}
        pattern = ResourcePatternType.PREFIXED if self.prefixed else ResourcePatternType.LITERAL
        return ResourceType[kinds[self.resource]], self.name, pattern

    def _how(self) -> tuple[AclOperation, AclPermissionType]:
        return AclOperation[self.operation], AclPermissionType.ALLOW


class GuardedCluster(EmbeddedCluster):
    """One broker. `bootstrap` is for Heliograph, `root` for the test."""

    def __init__(self, name: str, directory: Path, config: Mapping[str, str] | None = None) -> None:
        super().__init__(name, directory, 1, _CONFIG | dict(config or {}))
        self._root_port = 0

    def _choose_ports(self, taken: Iterable[int]) -> list[int]:
        ports = super()._choose_ports(taken)
        (self._root_port,) = free_ports(1, [*taken, *ports])
        path = Path(self._properties(1))
        extra = f"ROOT://{HOST}:{self._root_port}"
        lines = path.read_text().splitlines()
        with_root = [f"{line},{extra}" if line.split("=")[0].endswith("listeners") else line for line in lines]
        path.write_text("\n".join(with_root) + "\n")
        return [*ports, self._root_port]

    @property
    def root(self) -> dict[str, str]:
        return {
            "bootstrap.servers": f"{HOST}:{self._root_port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "root",
            "sasl.password": "root",
        }

    def grant(self, *grants: Grant) -> None:
        client = AdminClient(self.root)
        for future in client.create_acls([grant.binding() for grant in grants]).values():
            future.result(ANSWER_SECONDS)
        for grant in grants:
            wait_until(lambda grant=grant: self._has(client, grant), f"{grant} is in force")  # type: ignore[misc]

    def revoke(self, *grants: Grant) -> None:
        client = AdminClient(self.root)
        for grant in grants:
            for future in client.delete_acls([grant.filter()]).values():
                assert future.result(ANSWER_SECONDS), f"{grant} was not there"
            wait_until(lambda grant=grant: not self._has(client, grant), f"{grant} is gone")  # type: ignore[misc]

    def _has(self, client: AdminClient, grant: Grant) -> bool:
        return bool(client.describe_acls(grant.filter()).result(ANSWER_SECONDS))

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        client = AdminClient(self.root)
        made = client.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))])
        made[name].result(ANSWER_SECONDS)

        def leads() -> bool:
            found = client.list_topics(timeout=ANSWER_SECONDS).topics.get(name)
            return found is not None and sum(one.leader >= 0 for one in found.partitions.values()) == partitions

        wait_until(leads, f"all {partitions} partitions of {name} have a leader")

    def delete_topic(self, name: str) -> None:
        """Gone when this returns."""
        client = AdminClient(self.root)
        client.delete_topics([name])[name].result(ANSWER_SECONDS)
        wait_until(lambda: name not in client.list_topics(timeout=ANSWER_SECONDS).topics, f"{name} is gone")

    def write(self, topic: str, count: int) -> None:
        producer = Producer(self.root | {"enable.idempotence": True})  # as Java's producers do by default
        for number in range(count):
            producer.produce(topic, key=f"k{number}".encode(), value=f"value {number}".encode())
        assert producer.flush(ANSWER_SECONDS) == 0

    def commit(self, group: str, topic: str, partition: int, offset: int) -> None:
        """As the group's own application does, which has its rights."""
        commit_as(self.root, group, {(topic, partition): offset})
