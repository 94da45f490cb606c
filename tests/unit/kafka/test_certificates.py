from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from heliograph.kafka.certificates import certificates_of, own_certificates
from heliograph.kafka.client import ClusterClient
from heliograph.model.clusters import Cluster
from heliograph.model.security import Secret, Security, Store, Tls
from heliograph.replication.certificates import Certificate
from heliograph.wire.pem import CERTIFICATE, blocks, pem_of
from tests.unit.wire.test_pem import NAMELESS

ENDS = datetime(2026, 12, 16, 2, 30, 57, tzinfo=UTC)
LATER = pem_of(CERTIFICATE, [blocks(NAMELESS)[0].der.replace(b"261216", b"361216")])
KEY = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
OURS = Certificate("A", "nobody by name", ENDS, "ssl.keystore.location")


def cluster(pem: str | None) -> Cluster:
    own = None if pem is None else Store("ssl.keystore.location", "PEM", text=Secret(pem))
    return Cluster("A", ("127.0.0.1:1",), security=Security(Tls(own=own)))


def seen(cluster: Cluster) -> list[Certificate]:
    async def look() -> list[Certificate]:
        return await certificates_of(ClusterClient(cluster))

    return asyncio.run(look())


def test_of_a_chain_the_first_to_end_counts() -> None:
    assert own_certificates(cluster(LATER + NAMELESS + KEY)) == [OURS]
    assert own_certificates(cluster(NAMELESS + LATER + KEY)) == [OURS]


def test_the_file_is_named_where_there_is_one(tmp_path: Path) -> None:
    path = tmp_path / "own.pem"
    path.write_text(NAMELESS + KEY)
    ours = Store("ssl.keystore.location", "PEM", str(path))
    (found,) = own_certificates(Cluster("A", (), security=Security(Tls(own=ours))))
    assert found.kept_in == f"ssl.keystore.location ({path})"


def test_a_certificate_that_cannot_be_read_here_is_left_out() -> None:
    assert own_certificates(cluster(pem_of(CERTIFICATE, [b"no DER"]) + NAMELESS + KEY)) == [OURS]


def test_without_certificates_there_is_nothing_to_see() -> None:
    assert own_certificates(cluster(None)) == []
    assert own_certificates(Cluster("A", ())) == []
    assert seen(Cluster("A", ("127.0.0.1:1",))) == []


def test_a_broker_that_does_not_answer_hides_none_of_ours() -> None:
    assert seen(cluster(NAMELESS + KEY)) == [OURS]
