"""Making kafka-python's admin client: its settings from a cluster's, and a connection that leaves nothing behind.

Knows the library's words and two of its faults: it forgets the socket of every attempt to connect that fails, and the
thread of every client that does. Must not know what the client is asked.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Mapping
from typing import Any

import kafka.errors as foreign
from kafka.admin import KafkaAdminClient
from kafka.net.compat import KafkaNetClient
from kafka.net.inet import KafkaNetSocket

from heliograph.errors import AccessRefused, ConnectionLost, SetupError
from heliograph.kafka.connections import Connection
from heliograph.kafka.login import library_settings
from heliograph.kafka.unreachable import is_refused
from heliograph.model.clusters import Cluster
from heliograph.model.security import PLAINTEXT, Security

_ADDRESS = re.compile(r"(\[[^\[\]]+\]|[^:\[\]\s]+):[0-9]{1,5}")
_LAST_PORT = 65_535
_CLIENT_NUMBERS = {
    "connections.max.idle.ms": "connections_max_idle_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "receive.buffer.bytes": "receive_buffer_bytes",
    "retry.backoff.ms": "retry_backoff_ms",
    "send.buffer.bytes": "send_buffer_bytes",
}


class _TidySocket(KafkaNetSocket):  # type: ignore[misc]  # the library has no types
    """Closes the socket of an attempt that fails. The library finds the class by the scheme of its `proxy_url`."""

    SCHEMES = ("heliograph",)

    async def sock_connect(self, net: Any, sock: socket.socket, sockaddr: Any, timeout_at: float | None = None) -> Any:
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise


def client_settings(cluster: Cluster) -> dict[str, object]:
    """The cluster's client keys in the library's words; keys of consumers and producers are not this module's."""
    for address in cluster.bootstrap or ("",):
        if not _ADDRESS.fullmatch(address) or int(address.rpartition(":")[2]) > _LAST_PORT:
            raise SetupError(f"bootstrap.servers of cluster '{cluster.alias}' holds '{address}': host:port is expected")
    settings: dict[str, object] = {"client_id": "heliograph-admin"}
    for name, value in cluster.client:
        if name == "client.id":
            settings["client_id"] = value
        if name in _CLIENT_NUMBERS:
            settings[_CLIENT_NUMBERS[name]] = _number(cluster, name, value)
    return settings


def _number(cluster: Cluster, name: str, value: str) -> int | None:
    if not value.strip().removeprefix("-").isdecimal():
        raise SetupError(f"{name}={value} of cluster '{cluster.alias}' is not a whole number")
    # Kafka's -1 is "as the system has it", which the library calls None.
    return None if int(value) < 0 else int(value)


def _knock(address: str, timeout_s: float, security: Security) -> None:
    """OSError if nobody listens, AccessRefused if we are not let in.

    Asked first, because the library logs an error for every attempt, and takes a refused login for a slow broker.
    """
    host, _, port = address.rpartition(":")
    if security == PLAINTEXT:
        socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
        return

    async def enter() -> None:
        (await Connection.open(host.strip("[]"), int(port), timeout_s, security)).close()

    try:
        asyncio.run(enter())
    except AccessRefused:
        raise
    except ConnectionLost as error:
        raise (ConnectionRefusedError if is_refused(error) else OSError)(str(error)) from error


def connect(
    address: str, settings: Mapping[str, object], security: Security, timeout_ms: int, share_ms: int
) -> KafkaAdminClient:
    """A client of the cluster that this address belongs to; OSError or KafkaError if it does not serve in time.

    The library starts a thread before it connects, and leaves it running if that fails: it is stopped here.
    """
    _knock(address, share_ms / 1000, security)
    made: list[KafkaNetClient] = []

    def make(**configs: object) -> KafkaNetClient:
        made.append(KafkaNetClient(**configs))
        return made[0]

    try:
        return KafkaAdminClient(
            bootstrap_servers=[address],
            request_timeout_ms=timeout_ms,
            bootstrap_timeout_ms=share_ms,
            kafka_client=make,
            proxy_url="heliograph://",
            **settings,
            **library_settings(security),
        )
    except foreign.KafkaError:
        for client in made:
            client.close()
            client._net.stop()
        raise
