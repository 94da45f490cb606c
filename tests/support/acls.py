"""ACLs of a test cluster through confluent-kafka, as rows of words."""

from __future__ import annotations

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from tests.support.topics import ANSWER_SECONDS, admin
from tests.support.waiting import wait_until

Rows = set[tuple[str, ...]]


def binding(row: tuple[str, ...]) -> AclBinding:
    """`("topic", "orders", "LITERAL", "User:bob", "READ", "ALLOW")`."""
    kind, name, pattern, principal, operation, permission = row
    return AclBinding(
        ResourceType[kind.upper()],
        name,
        ResourcePatternType[pattern],
        principal,
        "*",
        AclOperation[operation],
        AclPermissionType[permission],
    )


def add(bootstrap: str, *rows: tuple[str, ...]) -> None:
    client = admin(bootstrap)
    for future in client.create_acls([binding(row) for row in rows]).values():
        future.result(ANSWER_SECONDS)
    wait_until(lambda: acls(bootstrap) >= set(rows), "the ACLs are in force")


def remove(bootstrap: str, *rows: tuple[str, ...]) -> None:
    client = admin(bootstrap)
    for row in rows:
        one = binding(row)
        wanted = AclBindingFilter(
            one.restype, one.name, one.resource_pattern_type, one.principal, "*", one.operation, one.permission_type
        )
        assert client.delete_acls([wanted])[wanted].result(ANSWER_SECONDS)
    wait_until(lambda: not acls(bootstrap) & set(rows), "the ACLs are gone")


def acls(bootstrap: str, part: str = "") -> Rows:
    """All ACLs whose resource's name holds a word."""
    client = admin(bootstrap)
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    return {
        (
            acl.restype.name.lower(),
            acl.name,
            acl.resource_pattern_type.name,
            acl.principal,
            acl.operation.name,
            acl.permission_type.name,
        )
        for acl in client.describe_acls(everything).result(ANSWER_SECONDS)
        if part in acl.name
    }
