"""What a worker process keeps from epoch to epoch."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from heliograph.kafka.slot import Warm
from heliograph.model.clusters import Cluster
from heliograph.model.security import Security, Tls


def test_clients_of_credentials_that_were_replaced_are_closed_and_others_kept() -> None:
    async def story() -> None:
        warm = Warm()
        old, other = Cluster("A", ("a:1",)), Cluster("B", ("b:1",))
        new = replace(old, security=Security(tls=Tls()))
        before, kept = warm.client(old), warm.client(other)
        ledger, home = warm.ledger(old), warm.home(old, "B->A", "id")
        warm.replace([old, other])
        assert (warm.client(old), warm.ledger(old), warm.home(old, "B->A", "id")) == (before, ledger, home)
        warm.replace([new])
        assert before._closed and not kept._closed and warm.client(other) is kept
        assert warm.ledger(old) is not ledger and warm.home(old, "B->A", "id") is not home
        warm.close()

    asyncio.run(story())
