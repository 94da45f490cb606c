"""A connector's offsets: read from the ledger; set while it is stopped, which opens the next generation of each lane there.

Nobody may carry the lanes meanwhile, and the flow must be ours: then a new generation is what a reset is, and as safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heliograph.config.connectors import ConnectorKind
from heliograph.config.stored_connectors import STOPPED
from heliograph.control.clock import Clock
from heliograph.control.connectors import Connectors
from heliograph.control.flow_watch import FlowWatch
from heliograph.control.steering import Steering
from heliograph.errors import HeliographError, Refused, SetupError
from heliograph.kafka.client import EARLIEST, LATEST
from heliograph.kafka.log_ends import offsets_of
from heliograph.kafka.slot import Warm
from heliograph.model.events import Deed
from heliograph.model.lanes import LaneId
from heliograph.replication.connect_offsets import BadOffset, Begins, begins, shown
from heliograph.replication.starts import Span

_DRAIN_SECONDS = 8.0
_LOOK_SECONDS = 0.1
_LONGEST = 500
"""Characters of an event: a flow may have thousands of lanes."""
_NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
    "connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
)


class ConnectorOffsets:
    """`carries` says whether a task has a lane of a flow."""

    def __init__(self, connectors: Connectors, steering: Steering, warm: Warm, carries: Callable[[str], bool]) -> None:
        self._connectors = connectors
        self._steering = steering
        self._warm = warm
        self._carries = carries
        self._clock = Clock()

    async def read(self, name: str) -> list[dict[str, Any]]:
        flow, kind, _ = self._connectors.flow_of(name)
        watch = self._watch(flow)
        if kind is not ConnectorKind.SOURCE or watch is None or watch.opened is None:
            return []
        book = await self._warm.ledger(watch.settings.target).refresh()
        entries = [book.latest(lane.id) for lane in watch.opened.plan.lanes]
        return shown(watch.settings.flow.source, [entry for entry in entries if entry is not None])

    async def alter(self, name: str, offsets: Sequence[Mapping[str, Any]], who: str) -> None:
        kind = self._stopped(name)
        if kind is not ConnectorKind.SOURCE:
            raise Refused(400, f"Connector {name} has no offsets: it does not read on from where it was")
        watch = await self._free(name)
        try:
            wanted = begins(offsets, watch.settings.flow.source, await self._spans(watch))
        except BadOffset as error:
            raise Refused(400, str(error)) from error
        await self._begin(watch, wanted, who)

    async def reset(self, name: str, who: str) -> None:
        """Every lane begins anew where one begins that was never copied."""
        if self._stopped(name) is ConnectorKind.SOURCE:
            watch = await self._free(name)
            assert watch.opened is not None  # noqa: S101  _free looked
            await self._begin(watch, {lane.id.key: None for lane in watch.opened.plan.lanes}, who)

    def _stopped(self, name: str) -> ConnectorKind:
        _, kind, state = self._connectors.flow_of(name)
        if state != STOPPED:
            raise Refused(400, _NOT_STOPPED.format(name=name))
        return kind

    async def _free(self, name: str) -> FlowWatch:
        """The flow, once nobody carries any lane of it."""
        flow, _, _ = self._connectors.flow_of(name)
        watch = self._watch(flow)
        if watch is None or watch.opened is None:
            raise Refused(409, f"flow {flow} is not open: {watch.trouble if watch is not None else 'it is not run'}")
        deadline = self._clock.monotonic() + _DRAIN_SECONDS
        while self._carries(flow):
            if self._clock.monotonic() > deadline:
                raise Refused(409, f"flow {flow} is still draining: try again")
            await asyncio.sleep(_LOOK_SECONDS)
        return watch

    async def _spans(self, watch: FlowWatch) -> dict[LaneId, Span]:
        assert watch.opened is not None  # noqa: S101  _free looked
        lanes = [lane.id for lane in watch.opened.plan.lanes]
        names = [(lane.topic, lane.partition) for lane in lanes]
        client = self._warm.client(watch.settings.source)
        try:
            starts, ends = [await offsets_of(client, names, at) for at in (EARLIEST, LATEST)]
        except (HeliographError, TimeoutError) as error:
            raise Refused(503, f"where the source ends cannot be seen: {error}") from error
        return {lane: Span(starts.get(name, 0), ends.get(name, 0)) for lane, name in zip(lanes, names, strict=True)}

    async def _begin(self, watch: FlowWatch, wanted: Begins, who: str) -> None:
        """Under the lock of all changes: nobody resumes it in between."""
        async with self._steering.alone(f"offsets of {watch.name}"):
            if self._carries(watch.name):
                raise Refused(409, f"flow {watch.name} was resumed: stop it first")
            try:
                await watch.begin_anew(wanted)
            except SetupError as error:
                raise Refused(409, str(error)) from error
            lanes = ", ".join(f"{key.removeprefix(f'{watch.name}/')} to {_place(at)}" for key, at in wanted.items())
            self._steering.record(Deed(watch.name, f"offsets set: {_shortened(lanes)}", who))

    def _watch(self, flow: str) -> FlowWatch | None:
        return next((watch for watch in self._steering.watches if watch.name == flow), None)


def _place(offset: int | None) -> str:
    return "its start" if offset is None else str(offset)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
