"""Client quotas of a test cluster: set for a user, and taken away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafka.protocol.admin import AlterClientQuotasRequest, AlterClientQuotasResponse

from heliograph.kafka.client import ClusterClient
from heliograph.kafka.quotas import list_quotas
from tests.integration.protocol.harness import with_client
from tests.support.waiting import wait_until


def set_quota(bootstrap: str, user: str, name: str, value: float | None) -> None:
    """None takes it away."""
    entry = AlterClientQuotasRequest.EntryData
    wish = entry(
        entity=[entry.EntityData(entity_type="user", entity_name=user)],
        ops=[entry.OpData(key=name, value=value or 0.0, remove=value is None)],
    )

    async def alter(client: ClusterClient) -> list[int]:
        request = AlterClientQuotasRequest(entries=[wish], validate_only=False)
        answer = await client.ask_controller(request, AlterClientQuotasResponse, 1)
        return [result.error_code for result in answer.entries]

    assert with_client(bootstrap, alter) == [0]

    async def is_told(client: ClusterClient) -> bool:
        return (await list_quotas(client)).get(f"user {user}", {}).get(name) == value

    wait_until(lambda: with_client(bootstrap, is_told), f"{name} of {user} is {value}")


@contextmanager
def quotas(bootstraps: tuple[str, ...], user: str, name: str, value: float) -> Iterator[None]:
    """The same for a user on several clusters, taken away afterwards: they are the session's."""
    for bootstrap in bootstraps:
        set_quota(bootstrap, user, name, value)
    try:
        yield
    finally:
        for bootstrap in bootstraps:
            set_quota(bootstrap, user, name, None)
