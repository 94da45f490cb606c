"""What Kafka Connect's REST shows and asks of a run: connectors over its flows. Every change is answered with all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from heliograph.control.connector_offsets import ConnectorOffsets
from heliograph.control.connectors import Connectors
from heliograph.control.desk import Desk
from heliograph.control.replicate import Replicator

PART = "connectors"
Args = Mapping[str, Any]


def register(desk: Desk, replicator: Replicator) -> None:
    steering = replicator.steering
    connectors = Connectors(steering, lambda: replicator.read)
    offsets = ConnectorOffsets(connectors, steering, replicator.warm, replicator.carries)

    def part() -> dict[str, Any]:
        return {
            "connectors": connectors.shown(),
            "unknown_is_fault": connectors.unknown_is_fault,
            "cluster_id": steering.cluster_id,
        }

    async def read_offsets(args: Args) -> dict[str, Any]:
        return {"offsets": await offsets.read(args["name"])}

    def change(what: Callable[..., Awaitable[None]]) -> Callable[[Args], Awaitable[dict[str, Any]]]:
        async def changed(args: Args) -> dict[str, Any]:
            await what(**args)
            return {PART: part()}

        return changed

    desk.show(PART, part)
    desk.answer("connector-offsets", read_offsets)
    for name, what in (
        ("put", connectors.put),
        ("patch", connectors.patch),
        ("delete", connectors.delete),
        ("state", connectors.wish),
        ("restart", connectors.restart),
        ("alter-offsets", offsets.alter),
        ("reset-offsets", offsets.reset),
    ):
        desk.change(f"connector-{name}", change(what))
