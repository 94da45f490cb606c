"""Topic configs changed one by one: IncrementalAlterConfigs (KIP-339, Kafka 2.3), never AlterConfigs, which resets all others.

Each topic has an answer of its own: a refusal of one does not hinder the others. Counterpart: `kafka.admin`, which asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import IncrementalAlterConfigsRequest

from heliograph.replication.permissions import missing_on_topic
from heliograph.wire.error_codes import describe

_TOPIC_RESOURCE = 2
_SET, _DELETE = 0, 1


@dataclass(frozen=True)
class ConfigChange:
    """What becomes of one topic's configs."""

    sets: Mapping[str, str]
    removes: tuple[str, ...] = ()


def altered(client: KafkaAdminClient, changes: Mapping[str, ConfigChange], alias: str) -> dict[str, str]:
    """One request; a sentence for each topic that was refused."""
    resources = [(_TOPIC_RESOURCE, name, _operations(change)) for name, change in changes.items()]
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=False)
    response = client._manager.run(client._manager.send, request)
    return {
        result.resource_name: refusal(result, "changed", "ALTER_CONFIGS", alias)
        for result in response.responses
        if result.error_code
    }


def _operations(change: ConfigChange) -> list[tuple[str, int, str | None]]:
    sets: list[tuple[str, int, str | None]] = [(name, _SET, value) for name, value in change.sets.items()]
    return [*sets, *((name, _DELETE, None) for name in change.removes)]


def refusal(result: Any, done: str, operation: str, alias: str) -> str:
    """Why configs of a topic are not read or changed, with the permission if it is one."""
    name = result.resource_name
    missing = missing_on_topic(result.error_code, operation, name, alias)
    why = f"this needs {missing}" if missing else result.error_message or describe(result.error_code)
    return f"configs of topic {name} on cluster {alias} are not {done}: {why}"
