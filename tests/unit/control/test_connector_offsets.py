"""A connector's offsets that somebody set: told with who did it, once it is done."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from heliograph.config.connectors import ConnectorKind
from heliograph.control.connector_offsets import ConnectorOffsets
from heliograph.control.connectors import Connectors
from heliograph.control.steering import Steering
from heliograph.errors import Refused, SetupError
from heliograph.kafka.slot import Warm
from heliograph.model.events import Event
from heliograph.model.lanes import Lane, LaneId


class Stage:
    """A stopped connector of a flow with so many lanes."""

    def __init__(self, lanes: int) -> None:
        self.told: list[Event] = []
        self.refuses = False
        self.begun: list[Any] = []
        plan = SimpleNamespace(
            lanes=[Lane(LaneId("A->B", "orders", number), "A", "B", "A.orders", "", "") for number in range(lanes)]
        )
        watch = SimpleNamespace(name="A->B", opened=SimpleNamespace(plan=plan), trouble="", begin_anew=self._begin)
        steering = Steering("mm2.properties", None)
        steering.watches = [watch]  # type: ignore[list-item]  # what is asked of a watch
        steering.tell = self.told.append
        connectors = SimpleNamespace(flow_of=lambda _: ("A->B", ConnectorKind.SOURCE, "STOPPED"))
        self.offsets = ConnectorOffsets(cast(Connectors, connectors), steering, cast(Warm, None), lambda _: False)

    async def _begin(self, begins: Any) -> None:
        if self.refuses:
            raise SetupError("another run holds it")
        self.begun.append(begins)


def test_offsets_that_were_set_are_told_with_who_did_it() -> None:
    stage = Stage(2)
    asyncio.run(stage.offsets.reset("orders", "ann"))
    assert stage.begun == [{"A->B/orders/0": None, "A->B/orders/1": None}]
    (event,) = stage.told
    assert (event.flow, event.subject, event.kind) == ("A->B", "A->B", "changed")
    assert event.reason == "offsets set: orders/0 to its start, orders/1 to its start by ann"


def test_what_was_refused_is_not_told() -> None:
    stage = Stage(1)
    stage.refuses = True
    with pytest.raises(Refused, match="another run holds it"):
        asyncio.run(stage.offsets.reset("orders", "ann"))
    assert stage.told == []


def test_a_flow_of_thousands_of_lanes_is_told_in_short() -> None:
    stage = Stage(3_000)
    asyncio.run(stage.offsets.reset("orders", "ann"))
    (event,) = stage.told
    assert len(event.reason) < 600
    assert event.reason.endswith("... by ann")
