"""ACLs as brokers keep them, in Kafka's own words. Must not know how they are asked for."""

from __future__ import annotations

from dataclasses import dataclass

TOPIC, GROUP = "topic", "group"
WILDCARD = "*"
"""As a literal name: every topic, every group."""


@dataclass(frozen=True, order=True)
class Resource:
    """What an ACL is about: the one of this name, or all whose names begin with it."""

    kind: str
    name: str
    prefixed: bool = False

    def __str__(self) -> str:
        if self.prefixed:
            return f"{self.kind}s that begin with '{self.name}'"
        return f"all {self.kind}s" if self.name == WILDCARD else f"{self.kind} {self.name}"


@dataclass(frozen=True, order=True)
class Access:
    """Who may, or may not, do what: `operation` as `READ`, `permission` is `ALLOW` or `DENY`."""

    principal: str
    host: str
    operation: str
    permission: str

    def __str__(self) -> str:
        host = "" if self.host == WILDCARD else f" from {self.host}"
        return f"{self.permission} {self.operation} to {self.principal}{host}"


@dataclass(frozen=True, order=True)
class Acl:
    resource: Resource
    access: Access
