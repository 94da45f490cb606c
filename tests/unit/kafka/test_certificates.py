from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from heliograph.kafka.certificates import expiring_certificates, own_expiring
from heliograph.model.clusters import Cluster
from heliograph.model.security import Secret, Security, Store, Tls
from tests.unit.wire.test_pem import NAMELESS

ENDS = datetime(2026, 12, 16, 2, 30, 57, tzinfo=UTC)
KEY = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
OURS = Security(Tls(own=Store("ssl.keystore.location", "PEM", text=Secret(NAMELESS + KEY))))


def test_a_certificate_is_named_from_a_week_before_its_end() -> None:
    what = "cluster A: our certificate in ssl.keystore.location (without a name)"
    week = timedelta(days=7)
    assert list(own_expiring("A", OURS, ENDS - week - timedelta(seconds=1))) == []
    (soon,) = own_expiring("A", OURS, ENDS - week)
    assert soon == f"{what} expires on 2026-12-16 02:30 UTC: renew it before connections are refused"
    (late,) = own_expiring("A", OURS, ENDS)
    assert late.startswith(f"{what} expired on 2026-12-16 02:30 UTC")


def test_without_certificates_there_is_nothing_to_say() -> None:
    assert list(own_expiring("A", Security(Tls()), ENDS)) == []
    assert list(own_expiring("A", Security(), ENDS)) == []
    assert asyncio.run(expiring_certificates(Cluster("A", ("127.0.0.1:1",)), ENDS)) == []


def test_a_broker_that_does_not_answer_is_left_out() -> None:
    assert asyncio.run(expiring_certificates(Cluster("A", ("127.0.0.1:1",), security=Security(Tls())), ENDS)) == []
