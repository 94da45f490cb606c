"""Connectors of Kafka Connect's REST over the flows of a run: made, changed, stopped, restarted, taken out.

Each change goes the way of every other (control/steering.py): checked, written down, then done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from heliograph.config.connectors import ConnectorKind, FaultyConnector, hidden, read_connector, restored
from heliograph.config.flows import FlowSettings, Settings
from heliograph.config.stored_connectors import (
    PAUSED,
    RUNNING,
    STOPPED,
    StoredConnector,
    WishedState,
    file_name,
    kind_in,
    kinds_of,
)
from heliograph.control.amendments import connector_key, hold_key, state_key
from heliograph.control.clock import Clock
from heliograph.control.state_topic import Row
from heliograph.control.steering import Change, Steering
from heliograph.errors import Refused
from heliograph.model.clusters import Flow
from heliograph.model.events import Deed
from heliograph.model.holds import Hold, HoldKind

_log = logging.getLogger(__name__)
Shown = dict[str, Any]
_DONE = {RUNNING: "resumed", PAUSED: "paused", STOPPED: "stopped"}
_STRICT = ("unknown.options", "error")


class Connectors:
    """`read` gives the settings that count now: the file's flows are connectors too."""

    def __init__(self, steering: Steering, read: Callable[[], Settings]) -> None:
        self._steering = steering
        self._read = read
        self._clock = Clock()
        self._seen: tuple[object, ...] = ()
        self._shown: dict[str, Shown] = {}
        self.unknown_is_fault = False
        """unknown.options = error, for connectors too."""

    # -- what there is ------------------------------------------------------------------------------------------------

    def shown(self) -> dict[str, Shown]:
        """All by name, as they may be shown; made anew when something changed."""
        settings, amended = self._read(), self._steering.amended
        # By identity: both are replaced, never changed. Kept here, so that no other object can have the same one.
        if not (self._seen and self._seen[0] is settings and self._seen[1] is amended):
            self._seen = (settings, amended)
            self._shown = {**self._of_rest(), **self._of_file(settings)}
            self.unknown_is_fault = any((one.name, one.value) == _STRICT for one in settings.values)
        return self._shown

    def _of_rest(self) -> dict[str, Shown]:
        return {one.name: self._stored(one) for one in self._steering.amended.connectors}

    def _stored(self, one: StoredConnector) -> Shown:
        kind = kind_in(one.config)
        return {
            "kind": str(kind),
            "flow": one.flow.name,
            "origin": "rest",
            "config": hidden({**one.config, "name": one.name}),
            "state": self._state(one.name, kind, one.flow.name),
            "trace": self._steering.unfit.get(one.name, ""),
            "topics": self._written(kind, one.flow.name),
        }

    def _written(self, kind: ConnectorKind, name: str) -> list[str]:
        """The topics of a connector that copies none."""
        flow = next((one for one in self._read().flows if one.flow.name == name), None)
        if kind is ConnectorKind.SOURCE or flow is None:
            return []
        return ["heartbeats"] if kind is ConnectorKind.HEARTBEAT else [flow.naming.checkpoints_topic(flow.flow.source)]

    def _of_file(self, settings: Settings) -> dict[str, Shown]:
        rest = {shown["flow"] for shown in self._of_rest().values()}
        stopped = {state.name for state in self._steering.amended.states if state.state != RUNNING}
        found: dict[str, Shown] = {}
        for flow in settings.flows:
            if flow.flow.name in rest:
                continue
            for kind in ConnectorKind:
                name = file_name(kind, flow)
                if kind in kinds_of(flow) or name in stopped:
                    found[name] = self._filed(name, kind, flow, settings)
        return found

    def _filed(self, name: str, kind: ConnectorKind, flow: FlowSettings, settings: Settings) -> Shown:
        prefix = f"{flow.flow.name}."
        own = {
            value.name.removeprefix(prefix): value.value
            for value in settings.values
            if value.name.startswith(prefix) and value.origin != "default"
        }
        config = {
            **own,
            "name": name,
            "connector.class": kind.java_class,
            "source.cluster.alias": flow.flow.source,
            "source.cluster.bootstrap.servers": ",".join(flow.source.bootstrap),
            "target.cluster.alias": flow.flow.target,
            "target.cluster.bootstrap.servers": ",".join(flow.target.bootstrap),
        }
        return {
            "kind": str(kind),
            "flow": flow.flow.name,
            "origin": "file",
            "config": hidden(config),
            "state": self._state(name, kind, flow.flow.name),
            "trace": "",
            "topics": self._written(kind, flow.flow.name),
        }

    def _state(self, name: str, kind: ConnectorKind, flow: str) -> str:
        """A source connector does what its flow does: somebody may have held or resumed that by other ways."""
        wished = next((one.state for one in self._steering.amended.states if one.name == name), RUNNING)
        if kind is not ConnectorKind.SOURCE:
            return wished
        is_held = any(hold.subject == flow for hold in self._steering.amended.holds)
        if not is_held:
            return RUNNING
        return wished if wished != RUNNING else PAUSED

    def _named(self, name: str) -> Shown:
        found = self.shown().get(name)
        if found is None:
            raise Refused(404, f"Connector {name} not found")
        return found

    def flow_of(self, name: str) -> tuple[str, ConnectorKind, str]:
        """The flow, kind and state of a connector."""
        found = self._named(name)
        return found["flow"], ConnectorKind(found["kind"]), found["state"]

    # -- changes ------------------------------------------------------------------------------------------------------

    async def put(self, name: str, config: Mapping[str, str], state: str, new: bool, who: str) -> None:
        known = self.shown().get(name)
        if known is not None and new:
            raise Refused(409, f"Connector {name} already exists")
        self._refuse_filed(name)
        stored = next((one for one in self._steering.amended.connectors if one.name == name), None)
        kept = stored.config if stored is not None else {}
        whole = _checked(name, restored(config, kept), self.unknown_is_fault)
        rows: dict[str, Row | None] = {
            connector_key(name): StoredConnector(name, whole, who, self._clock.now_ms()).as_fields()
        }
        if new:
            rows |= self._state_rows(name, kind_in(whole), _flow_in(whole), state, who)
        done = f"connector {name} created" if new else f"connector {name} given another configuration"
        await self._change(name, rows, Deed(_flow_in(whole), done, who))
        settings = await self._steering.settings()
        for sentence in settings.warnings:
            if sentence.startswith((f"connector {name}: ", f"REST: {_flow_in(whole)}.")):
                _log.warning("%s", sentence)
        await self._renew(_flow_in(whole), settings)

    async def patch(self, name: str, fields: Mapping[str, str | None], who: str) -> None:
        self._named(name)
        self._refuse_filed(name)
        stored = next(one for one in self._steering.amended.connectors if one.name == name)
        merged = {**stored.config, **{field: value for field, value in fields.items() if value is not None}}
        config = {field: value for field, value in merged.items() if fields.get(field, "") is not None}
        await self.put(name, config, RUNNING, new=False, who=who)

    async def delete(self, name: str, who: str) -> None:
        found = self._named(name)
        self._refuse_filed(name)
        rows: dict[str, Row | None] = {connector_key(name): None, state_key(name): None}
        if found["kind"] == ConnectorKind.SOURCE:
            rows |= {hold_key(hold): None for hold in self._steering.amended.holds if hold.flow == found["flow"]}
        await self._change(name, rows, Deed(found["flow"], f"connector {name} deleted", who))

    async def wish(self, name: str, state: str, who: str) -> None:
        """Pause, resume, stop: of the file's too."""
        flow, kind, _ = self.flow_of(name)
        rows = self._state_rows(name, kind, flow, state, who)
        deed = Deed(flow, f"connector {name} {_DONE[state]}", who)
        await self._change(name, rows, deed, settings=kind is not ConnectorKind.SOURCE)

    async def _change(self, name: str, rows: Mapping[str, Row | None], deed: Deed, settings: bool = True) -> None:
        await self._steering.make(Change(f"connector {name}", rows, {}, settings, [deed]))

    def _state_rows(self, name: str, kind: ConnectorKind, flow: str, state: str, who: str) -> dict[str, Row | None]:
        rows: dict[str, Row | None] = {
            state_key(name): None if state == RUNNING else WishedState(name, state).as_fields()
        }
        if kind is ConnectorKind.SOURCE:
            reason = f"connector {name} is {state}"
            hold = Hold(flow, "", -1, HoldKind.PAUSE, reason, who, self._clock.now_ms())
            rows[hold_key(hold)] = None if state == RUNNING else hold.as_fields()
        return rows

    async def restart(self, name: str, lanes: bool, who: str) -> None:
        """Its lanes drained and begun anew where they are; or only a look at both clusters, now."""
        flow, kind, _ = self.flow_of(name)
        if lanes and kind is ConnectorKind.SOURCE:
            await self._steering.restart(flow)
        else:
            for watch in self._steering.watches:
                if watch.name == flow:
                    watch.looks.now()
        self._steering.record(Deed(flow, f"connector {name} restarted{' with its tasks' if lanes else ''}", who))

    async def _renew(self, name: str, settings: Settings) -> None:
        """What cannot change while a flow runs counts at once all the same: it ends and begins anew, as in Connect."""
        wanted = next((flow for flow in settings.flows if flow.flow.name == name), None)
        running = next((watch.settings for watch in self._steering.watches if watch.name == name), None)
        if wanted is not None and running is not None and wanted != replace(running, flow=wanted.flow):
            await self._steering.restart(name)

    def _refuse_filed(self, name: str) -> None:
        found = self.shown().get(name)
        if found is not None and found["origin"] == "file":
            raise Refused(
                409, f"Connector {name} is flow {found['flow']} of the file {self._read().path}: change it there"
            )


def _flow_in(config: Mapping[str, str]) -> str:
    return Flow(config["source.cluster.alias"], config.get("target.cluster.alias", "target")).name


def _checked(name: str, config: Mapping[str, str], unknown_is_fault: bool) -> dict[str, str]:
    """Connect's own order of complaints: the name, the class, then all fields."""
    given = config.get("name", name)
    if given != name:
        raise Refused(400, f"Connector name configuration ({given}) doesn't match connector name in the URL ({name})")
    if "/" in name or not name.isprintable():
        raise Refused(400, f"Invalid value {name!r} for configuration name: expected a text that can stand in a path")
    if "connector.class" not in config:
        fields = ", ".join(f"{field}={value}" for field, value in hidden({**config, "name": name}).items())
        raise Refused(400, f"Connector config {{{fields}}} contains no connector type")
    try:
        return dict(read_connector(name, config, unknown_is_fault).config)
    except FaultyConnector as error:
        alone = [fault.field for fault in error.faults] == ["connector.class"]
        raise Refused(400, str(error) if alone else error.message) from error
