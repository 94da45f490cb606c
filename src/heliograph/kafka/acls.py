"""ACLs of a cluster: listed, created, deleted, many in one request.

What a code means that is no answer of ours stays a number in the words of the model, and is sent back as it came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

from heliograph.errors import BrokerRefused
from heliograph.kafka.client import ClusterClient
from heliograph.model.acls import GROUP, TOPIC, Access, Acl, Resource
from heliograph.replication.permissions import missing_on_cluster
from heliograph.wire.error_codes import describe

NO_AUTHORIZER = 54
CLUSTER_REFUSED = 31
_ACLS_PER_REQUEST = 500
_VERSION = 3
_ANY, _LITERAL, _PREFIXED = 1, 3, 4
_KINDS = {2: TOPIC, 3: GROUP}
_PERMISSIONS = {2: "DENY", 3: "ALLOW"}
OPERATIONS = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}


@dataclass(frozen=True)
class AclRefusal:
    """Why an ACL was not created or deleted; `everywhere` if no other one of this cluster would be."""

    reason: str
    everywhere: bool


async def list_acls(client: ClusterClient, kinds: Iterable[str]) -> set[Acl] | None:
    """All ACLs of these kinds of resources; None if the cluster has no authorizer."""
    found: set[Acl] = set()
    for kind in kinds:
        request = DescribeAclsRequest(
            resource_type_filter=_code(_KINDS, kind),
            resource_name_filter=None,
            pattern_type_filter=_ANY,
            principal_filter=None,
            host_filter=None,
            operation=_ANY,
            permission_type=_ANY,
        )
        answer = await client.ask_any(request, DescribeAclsResponse, _VERSION)
        if answer.error_code == NO_AUTHORIZER:
            return None
        if answer.error_code:
            raise _refused(answer.error_code, answer.error_message, client.cluster.alias)
        found |= {acl for resource in answer.resources for acl in _acls(kind, resource)}
    return found


def _refused(code: int, message: str | None, alias: str) -> BrokerRefused:
    missing = missing_on_cluster(code, "DESCRIBE", alias)
    if missing is not None:
        return BrokerRefused(code, f"ACLs of cluster {alias} (this needs {missing})", missing.advice)
    return BrokerRefused(code, f"ACLs of cluster {alias}: {message or describe(code)}")


def _acls(kind: str, found: Any) -> Iterable[Acl]:
    resource = Resource(kind, found.resource_name, found.pattern_type == _PREFIXED)
    for acl in found.acls:
        operation = OPERATIONS.get(acl.operation, str(acl.operation))
        permission = _PERMISSIONS.get(acl.permission_type, str(acl.permission_type))
        yield Acl(resource, Access(acl.principal, acl.host, operation, permission))


async def create_acls(client: ClusterClient, acls: Sequence[Acl]) -> dict[Acl, AclRefusal]:
    """Those that were refused. An ACL that is there already is no refusal."""
    kind = CreateAclsRequest.AclCreation
    refused: dict[Acl, AclRefusal] = {}
    for part in _parts(acls):
        creations = [
            kind(
                resource_type=_code(_KINDS, acl.resource.kind),
                resource_name=acl.resource.name,
                resource_pattern_type=_pattern(acl),
                principal=acl.access.principal,
                host=acl.access.host,
                operation=_code(OPERATIONS, acl.access.operation),
                permission_type=_code(_PERMISSIONS, acl.access.permission),
            )
            for acl in part
        ]
        answer = await client.ask_any(CreateAclsRequest(creations=creations), CreateAclsResponse, _VERSION)
        refused |= _refusals(part, answer.results, "added to", client.cluster.alias)
    return refused


async def delete_acls(client: ClusterClient, acls: Sequence[Acl]) -> dict[Acl, AclRefusal]:
    """Those that were refused. An ACL that is gone already is no refusal."""
    kind = DeleteAclsRequest.DeleteAclsFilter
    refused: dict[Acl, AclRefusal] = {}
    for part in _parts(acls):
        filters = [
            kind(
                resource_type_filter=_code(_KINDS, acl.resource.kind),
                resource_name_filter=acl.resource.name,
                pattern_type_filter=_pattern(acl),
                principal_filter=acl.access.principal,
                host_filter=acl.access.host,
                operation=_code(OPERATIONS, acl.access.operation),
                permission_type=_code(_PERMISSIONS, acl.access.permission),
            )
            for acl in part
        ]
        answer = await client.ask_any(DeleteAclsRequest(filters=filters), DeleteAclsResponse, _VERSION)
        refused |= _refusals(part, answer.filter_results, "removed from", client.cluster.alias)
    return refused


def _parts(acls: Sequence[Acl]) -> Iterable[Sequence[Acl]]:
    return (acls[first : first + _ACLS_PER_REQUEST] for first in range(0, len(acls), _ACLS_PER_REQUEST))


def _pattern(acl: Acl) -> int:
    return _PREFIXED if acl.resource.prefixed else _LITERAL


def _code(words: Mapping[int, str], word: str) -> int:
    return next((code for code, known in words.items() if known == word), None) or int(word)


def _refusals(acls: Sequence[Acl], results: Sequence[Any], done: str, alias: str) -> dict[Acl, AclRefusal]:
    """Answers come in the order of the questions."""
    refused = {}
    for acl, result in zip(acls, results, strict=True):
        if result.error_code:
            missing = missing_on_cluster(result.error_code, "ALTER", alias)
            if missing is not None:
                refused[acl] = AclRefusal(f"ACLs are not {done} cluster {alias}: this needs {missing}", True)
            else:
                why = result.error_message or describe(result.error_code)
                reason = f"{acl.access} is not {done} the ACLs of {acl.resource} on cluster {alias}: {why}"
                refused[acl] = AclRefusal(reason, result.error_code == NO_AUTHORIZER)
    return refused
