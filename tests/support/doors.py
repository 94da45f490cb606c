"""Clusters with Kafka's authorizer on, and a door of its own for Heliograph.

Behind that door it is `User:mirror`, who may do what docs/footprint.md lists, with `*` for names that a test chooses, and
nothing else. The open door is the test's and the brokers' own: `User:ANONYMOUS` is a superuser. Files that tests write for
Heliograph take their addresses from `address_lines`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.embedded.settings import Jvm
from heliograph.kafka.ledger import LEDGER_TOPIC
from heliograph.replication.permissions import NEEDS, On
from heliograph.replication.topic_names import HEARTBEATS
from tests.support.topics import ANSWER_SECONDS, admin
from tests.support.waiting import wait_until

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_CONFIG = AUTHORIZER | {
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.mirror.plain.sasl.jaas.config": f'{_LOGIN} user_mirror="door";',
}
_LINES = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{_LOGIN} username="mirror" password="door";',
}
_TOPIC, _GROUP, _CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.BROKER  # librdkafka's word
_ANY = (ResourcePatternType.LITERAL, "*")
_RESOURCES: Mapping[On, tuple[ResourceType, ResourcePatternType, str]] = {
    On.SOURCE_TOPICS: (_TOPIC, *_ANY),
    On.REMOTE_TOPICS: (_TOPIC, *_ANY),
    On.OWN_TOPICS: (_TOPIC, ResourcePatternType.PREFIXED, "__heliograph-"),
    On.SOURCE_HEARTBEATS: (_TOPIC, ResourcePatternType.LITERAL, HEARTBEATS),
    On.TARGET_HEARTBEATS: (_TOPIC, ResourcePatternType.LITERAL, HEARTBEATS),
    On.SOURCE_SYNCS: (_TOPIC, ResourcePatternType.PREFIXED, "mm2-offset-syncs."),
    On.TARGET_SYNCS: (_TOPIC, ResourcePatternType.PREFIXED, "mm2-offset-syncs."),
    On.CHECKPOINTS: (_TOPIC, *_ANY),
    On.SOURCE_GROUPS: (_GROUP, *_ANY),
    On.TARGET_GROUPS: (_GROUP, *_ANY),
    On.HOME_LEDGER: (_TOPIC, ResourcePatternType.LITERAL, LEDGER_TOPIC),
    On.SOURCE_GROUP: (_GROUP, ResourcePatternType.PREFIXED, "heliograph-"),
    On.CANARY: (_TOPIC, ResourcePatternType.PREFIXED, "heliograph-canary-"),
    On.SOURCE_CLUSTER: (_CLUSTER, ResourcePatternType.LITERAL, "kafka-cluster"),
    On.TARGET_CLUSTER: (_CLUSTER, ResourcePatternType.LITERAL, "kafka-cluster"),
    On.TRANSACTIONAL_ID: (ResourceType.TRANSACTIONAL_ID, ResourcePatternType.PREFIXED, "heliograph."),
    On.MM2_GROUP: (_GROUP, *_ANY),
    On.START_GROUP: (_GROUP, *_ANY),
    On.DEAD_LETTERS: (_TOPIC, ResourcePatternType.PREFIXED, "__heliograph-dead-letter."),
    On.MM2_OFFSETS: (_TOPIC, *_ANY),  # a Connect worker's may have any name
    On.MM2_CONFIGS: (_TOPIC, *_ANY),
}

_admitted: dict[str, AuthorizedCluster] = {}
"""By the address of the open door."""


class AuthorizedCluster(EmbeddedCluster):
    """A cluster that Heliograph enters by its own door."""

    def __init__(
        self,
        name: str,
        directory: Path,
        brokers: int = 1,
        config: Mapping[str, str] | None = None,
        jvm: Jvm | None = None,
    ) -> None:
        super().__init__(
            name, directory, brokers, _CONFIG | dict(config or {}), jvm, listeners={"MIRROR": "SASL_PLAINTEXT"}
        )
        self._is_granted = False

    def _choose_ports(self, taken: Iterable[int]) -> list[int]:
        ports = super()._choose_ports(taken)
        _admitted[self.bootstrap] = self
        return ports

    def door(self) -> str:
        """Heliograph's address; from the first call on it may do there what it must."""
        if not self._is_granted:
            grant_footprint(self.bootstrap, "User:mirror")
            self._is_granted = True
        return self.bootstrap_of("MIRROR")


def grant_footprint(bootstrap: str, principal: str) -> None:
    """What docs/footprint.md lists, for a source and for a target."""
    rows = {(*_RESOURCES[need.on], need.operation) for need in NEEDS}
    bindings = [
        AclBinding(kind, name, pattern, principal, "*", AclOperation[operation], AclPermissionType.ALLOW)
        for kind, pattern, name, operation in rows
    ]
    client = admin(bootstrap)
    for future in client.create_acls(bindings).values():
        future.result(ANSWER_SECONDS)
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, principal, None, AclOperation.ANY, AclPermissionType.ANY
    )
    wait_until(
        lambda: len(client.describe_acls(everything).result(ANSWER_SECONDS)) == len(bindings), "the grants are in force"
    )


def address_lines(alias: str, bootstrap: str) -> dict[str, str]:
    """Lines of a file for Heliograph: through its own door where the cluster has one."""
    cluster = _admitted.get(bootstrap)
    if cluster is None:
        return {f"{alias}.bootstrap.servers": bootstrap}
    lines = {"bootstrap.servers": cluster.door()} | _LINES
    return {f"{alias}.{name}": value for name, value in lines.items()}
