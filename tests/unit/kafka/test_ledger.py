"""Which ledger was read: one that was deleted and made again is another one, whoever noticed it first."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable
from typing import cast

import pytest

from heliograph.errors import ConnectionLost
from heliograph.kafka.client import ClusterClient, Leader, Partition, TopicView
from heliograph.kafka.ledger import LEDGER_TOPIC, Ledger
from heliograph.model.clusters import Cluster

OLD, NEW = (str(uuid.UUID(int=number)) for number in (1, 2))


class EmptyLedgers:
    """A cluster whose ledger is empty; the topic's id by every look at it, the last one for ever."""

    def __init__(self, *ids: str) -> None:
        self.cluster = Cluster("A", ("a:1",))
        self._ids = list(ids)

    async def metadata(self, topics: Iterable[str]) -> dict[str, TopicView]:
        topic_id = self._ids.pop(0) if len(self._ids) > 1 else self._ids[0]
        return {topic: TopicView(topic_id, {0: Leader(1, 0)}, 0) for topic in topics}

    async def offsets(self, node: int, names: Iterable[Partition], which: int) -> dict[Partition, int]:
        del node, which
        return dict.fromkeys(names, 0)


def ledger_of(*ids: str) -> Ledger:
    return Ledger(cast(ClusterClient, EmptyLedgers(*ids)))


def test_the_ledger_that_is_trusted_is_read() -> None:
    assert asyncio.run(ledger_of(OLD).refresh_of(OLD)) is not None


@pytest.mark.parametrize("ids", [(NEW,), (OLD, NEW)], ids=["before it was read", "while it was read"])
def test_another_one_is_not(ids: tuple[str, ...]) -> None:
    with pytest.raises(ConnectionLost, match=f"topic {LEDGER_TOPIC} on A is not the one that this flow began with"):
        asyncio.run(ledger_of(*ids).refresh_of(OLD))


def test_what_was_read_of_another_ledger_is_forgotten_also_if_a_writer_met_the_new_one_first() -> None:
    ledger = ledger_of(OLD, NEW)

    async def story() -> None:
        before = await ledger.refresh()
        await ledger._writer.learn()  # as an append does that was refused
        assert await ledger.refresh() is not before

    asyncio.run(story())
