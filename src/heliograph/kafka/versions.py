"""Asks every broker of a cluster which messages it speaks, and refuses the cluster with the sentence of the first that cannot serve.

What is needed is decided in replication/broker_versions.py. A broker that is down is passed over: it will be met again.
"""

from __future__ import annotations

from heliograph.errors import BrokersUnsupported, ConnectionLost
from heliograph.kafka.client import ClusterClient
from heliograph.model.clusters import Cluster
from heliograph.replication.broker_versions import unsupported


async def check_brokers(cluster: Cluster, *, is_target: bool) -> None:
    """BrokersUnsupported, or ClusterUnreachable, or nothing; leaves no connection behind."""
    client = ClusterClient(cluster)
    try:
        await client.metadata([])
        for node, address in client.brokers.items():
            try:
                offered = (await client.connection(node)).versions
            except ConnectionLost:
                continue
            broker = f"cluster '{cluster.alias}': broker {node} at {address[0]}:{address[1]}"
            fault = unsupported(broker, offered, is_target=is_target)
            if fault is not None:
                raise BrokersUnsupported(fault)
    finally:
        client.close()
