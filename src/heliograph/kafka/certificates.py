"""The certificates of a cluster's connections: our own, and those that its brokers show.

Only looks. What a person must hear of them is decided in replication/certificates.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from heliograph.errors import HeliographError
from heliograph.kafka.client import ClusterClient, address_of
from heliograph.kafka.keystores import own_pem
from heliograph.kafka.sockets import Buffers, connected
from heliograph.kafka.tls import shake_hands
from heliograph.model.clusters import Cluster
from heliograph.model.security import Tls
from heliograph.replication.certificates import Certificate, merged
from heliograph.wire.pem import CERTIFICATE, blocks, validity

_DIAL_SECONDS = 5.0
_AS_THE_SYSTEM_HAS = Buffers(-1, -1)

Address = tuple[str, int]


async def certificates_of(client: ClusterClient) -> list[Certificate]:
    """Every one that this cluster's connections need; what cannot be seen now is left out."""
    cluster = client.cluster
    if cluster.security.tls is None:
        return []
    addresses = sorted(set(await _addresses(client)))
    seen = await asyncio.gather(*(_shown(address, cluster.security.tls) for address in addresses))
    shown = [
        certificate
        for (host, port), der in zip(addresses, seen, strict=True)
        if der is not None
        for certificate in _read(cluster.alias, der, brokers=(f"{host}:{port}",))
    ]
    return [*own_certificates(cluster), *merged(shown)]


def own_certificates(cluster: Cluster) -> list[Certificate]:
    """Ours, if we show one; the first to end of it and the CAs that follow it in its store. Opens no connection."""
    tls = cluster.security.tls
    if tls is None or tls.own is None:
        return []
    kept_in = f"{tls.own.option} ({tls.own.path})" if tls.own.path else tls.own.option
    chain = [block.der for block in blocks(own_pem(tls.own, tls.key_password)) if block.label == CERTIFICATE]
    found = [certificate for der in chain for certificate in _read(cluster.alias, der, kept_in)]
    return sorted(found, key=lambda one: one.ends)[:1]


def _read(alias: str, der: bytes, kept_in: str = "", brokers: tuple[str, ...] = ()) -> list[Certificate]:
    """It, unless it cannot be read here: TLS itself may still understand it, and says so if it does not."""
    try:
        found = validity(der)
    except ValueError:
        return []
    return [Certificate(alias, found.owner, found.ends, kept_in, brokers)]


async def _addresses(client: ClusterClient) -> Sequence[Address]:
    """All brokers; where the cluster does not let us in, perhaps for a certificate, those that the file names."""
    named = [address_of(text) for text in client.cluster.bootstrap]
    try:
        await client.metadata([])
    except (HeliographError, TimeoutError):
        return named
    return [*named, *client.brokers.values()]


async def _shown(address: Address, tls: Tls) -> bytes | None:
    """The certificate that a broker shows, also one that has expired; None where there is another fault."""
    host, port = address
    try:
        sock = await connected(host, port, _DIAL_SECONDS, _AS_THE_SYSTEM_HAS)
        async with asyncio.timeout(_DIAL_SECONDS):
            secure = await shake_hands(sock, host, tls, at_any_time=True)
    except (OSError, TimeoutError, HeliographError):
        return None  # whoever uses it meets the same trouble and says so
    try:
        return secure.getpeercert(True)
    finally:
        secure.close()
