"""Asks every broker of a cluster which messages it speaks, and refuses the cluster with the sentence of the first that cannot serve.

What is needed is decided in replication/broker_versions.py. A broker that is down is passed over: it will be met again.
"""

from __future__ import annotations

from heliograph.errors import BrokersUnsupported, ConnectionLost
from heliograph.kafka.client import ClusterClient
from heliograph.replication.broker_versions import named_broker, unsupported


async def check_brokers(client: ClusterClient, *, is_target: bool) -> None:
    """BrokersUnsupported, or ClusterUnreachable, or nothing; its connections are the client's, for whoever asks next."""
    await client.metadata([])
    for node, (host, port) in client.brokers.items():
        try:
            offered = (await client.connection(node)).versions
        except ConnectionLost:
            continue
        broker = named_broker(client.cluster.alias, node, f"{host}:{port}")
        fault = unsupported(broker, offered, is_target=is_target)
        if fault is not None:
            raise BrokersUnsupported(fault)
