"""Which certificates end soon: our own, and those that brokers show. A week's notice, as sentences.

Reads no clock: now is an argument. Must not know who is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from heliograph.errors import ConnectionLost
from heliograph.kafka.connections import Connection
from heliograph.kafka.keystores import own_pem
from heliograph.model.clusters import Cluster
from heliograph.model.security import Security
from heliograph.wire.pem import CERTIFICATE, Validity, blocks, validity

NOTICE = timedelta(days=7)
_DIAL_SECONDS = 5.0


async def expiring_certificates(cluster: Cluster, now: datetime) -> list[str]:
    """A sentence for each certificate of this cluster's connections that ends within a week, or has ended."""
    if cluster.security.tls is None:
        return []
    found = list(own_expiring(cluster.alias, cluster.security, now))
    seen = await asyncio.gather(*(_certificate_of(address, cluster.security) for address in cluster.bootstrap))
    for address, der in zip(cluster.bootstrap, seen, strict=True):
        if der is not None:
            found += _ending(f"cluster {cluster.alias}: the certificate of broker {address}", validity(der), now)
    return found


def own_expiring(alias: str, security: Security, now: datetime) -> Iterator[str]:
    """The same for our own certificates alone; opens no connection."""
    tls = security.tls
    if tls is None or tls.own is None:
        return
    for block in blocks(own_pem(tls.own, tls.key_password)):
        if block.label == CERTIFICATE:
            yield from _ending(f"cluster {alias}: our certificate in {tls.own.option}", validity(block.der), now)


def _ending(what: str, found: Validity, now: datetime) -> Sequence[str]:
    if found.ends - now > NOTICE:
        return ()
    when = found.ends.strftime("%Y-%m-%d %H:%M UTC")
    verb = "expired on" if found.ends <= now else "expires on"
    return (f"{what} ({found.owner}) {verb} {when}: renew it before connections are refused",)


async def _certificate_of(address: str, security: Security) -> bytes | None:
    host, _, port = address.rpartition(":")
    try:
        connection = await Connection.open(host.strip("[]"), int(port), _DIAL_SECONDS, security)
    except ConnectionLost:
        return None  # whoever uses it meets the same trouble and says so
    try:
        return connection.certificate
    finally:
        connection.close()
