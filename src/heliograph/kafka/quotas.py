"""Client quotas of a cluster, listed. They are compared, never written."""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin import DescribeClientQuotasRequest, DescribeClientQuotasResponse

from heliograph.errors import BrokerRefused
from heliograph.kafka.client import ClusterClient
from heliograph.replication.permissions import missing_on_cluster
from heliograph.wire.error_codes import describe

_DEFAULT = "<default>"
_WORDS = {"user": "user", "client-id": "client", "ip": "address"}


async def list_quotas(client: ClusterClient) -> dict[str, dict[str, float]]:
    """By whom they are for, as `user alice, client app`, and by their names."""
    request = DescribeClientQuotasRequest(components=[], strict=False)
    answer = await client.ask_any(request, DescribeClientQuotasResponse, 1)
    if answer.error_code:
        alias = client.cluster.alias
        missing = missing_on_cluster(answer.error_code, "DESCRIBE_CONFIGS", alias)
        why = f"this needs {missing}" if missing else answer.error_message or describe(answer.error_code)
        raise BrokerRefused(answer.error_code, f"quotas of cluster {alias} ({why})")
    return {_entity(entry): {value.key: value.value for value in entry.values} for entry in answer.entries or ()}


def _entity(entry: Any) -> str:
    parts = sorted(entry.entity, key=lambda part: list(_WORDS).index(part.entity_type))
    return ", ".join(f"{_WORDS[part.entity_type]} {part.entity_name or _DEFAULT}" for part in parts)
