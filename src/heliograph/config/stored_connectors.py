"""Connectors as they are kept beside the file: which of them fit the file as it is now, and what they make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from heliograph.config.connector_entries import FileFacts, entries_of
from heliograph.config.connectors import (
    DEFAULT_TARGET,
    Connector,
    ConnectorKind,
    FaultyConnector,
    kind_of,
    read_connector,
)
from heliograph.config.flows import FlowSettings, Settings
from heliograph.errors import ConfigError
from heliograph.model.clusters import Flow

RUNNING, PAUSED, STOPPED = "RUNNING", "PAUSED", "STOPPED"
_DEFAULT = "default"

Loader = Callable[[Mapping[str, str]], Settings]
"""The settings of the file with these entries over it; ConfigError where that is wrong."""


@dataclass(frozen=True)
class StoredConnector:
    """A connector that came by REST, as it was sent."""

    name: str
    config: Mapping[str, str]
    who: str
    since_ms: int

    @property
    def flow(self) -> Flow:
        return Flow(
            self.config.get("source.cluster.alias", ""), self.config.get("target.cluster.alias", DEFAULT_TARGET)
        )

    def as_fields(self) -> dict[str, Any]:
        return {**asdict(self), "config": dict(self.config)}


@dataclass(frozen=True)
class WishedState:
    """What somebody wants a connector to do: RUNNING, PAUSED or STOPPED."""

    name: str
    state: str

    def as_fields(self) -> dict[str, Any]:
        return asdict(self)


def connector_of(fields: Mapping[str, Any]) -> StoredConnector:
    """What `as_fields` wrote; KeyError, TypeError or ValueError where it is none."""
    config = {str(name): str(value) for name, value in dict(fields["config"]).items()}
    return StoredConnector(str(fields["name"]), config, str(fields["who"]), int(fields["since_ms"]))


def state_of(fields: Mapping[str, Any]) -> WishedState:
    """What `as_fields` wrote; KeyError or ValueError where it is none."""
    state = str(fields["state"])
    if state not in (RUNNING, PAUSED, STOPPED):
        raise ValueError(state)
    return WishedState(str(fields["name"]), state)


# -- those of the file -----------------------------------------------------------------------------------------------------


def file_name(kind: ConnectorKind, flow: FlowSettings) -> str:
    """What a flow of the file is called among connectors."""
    return f"{kind}-{flow.flow.source}-{flow.flow.target}"


def kinds_of(flow: FlowSettings) -> list[ConnectorKind]:
    """The connectors that MirrorMaker 2 would have for it."""
    found = [ConnectorKind.SOURCE]
    if flow.jobs.groups.checkpoints or flow.jobs.groups.sync:
        found.append(ConnectorKind.CHECKPOINT)
    if flow.jobs.heartbeats:
        found.append(ConnectorKind.HEARTBEAT)
    return found


def file_facts(settings: Settings) -> FileFacts:
    """What the file says, as it may be shown."""
    entries = {value.name: value.value for value in settings.values if value.origin != _DEFAULT}
    return FileFacts(tuple(settings.clusters), frozenset(flow.flow.name for flow in settings.flows), entries)


def idle_entries(flows: Iterable[FlowSettings], idle: frozenset[str]) -> dict[str, str]:
    """What of the file's flows somebody stopped, as entries."""
    found: dict[str, str] = {}
    for flow in flows:
        if file_name(ConnectorKind.CHECKPOINT, flow) in idle:
            names = ("emit.checkpoints.enabled", "sync.group.offsets.enabled")
            found |= {f"{flow.flow.name}.{name}": "false" for name in names}
        if file_name(ConnectorKind.HEARTBEAT, flow) in idle:
            found |= {
                f"{pulse.source}->{pulse.target}.emit.heartbeats.enabled": "false" for pulse in flow.jobs.heartbeats
            }
    return found


# -- those that came by REST -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fitted:
    """The entries of those that fit, and of the others why they do not."""

    entries: Mapping[str, str]
    unfit: Mapping[str, str]
    said: tuple[str, ...] = ()


def fitted(stored: Iterable[StoredConnector], plain: Settings, idle: frozenset[str], load: Loader) -> Fitted:
    """All of them if they fit; else one after the other, so that one that does not fit stops no other."""
    facts = file_facts(plain)
    connectors, unfit = _readable(stored)
    try:
        mapped = entries_of(connectors, facts, idle)
        if mapped.entries:
            load(mapped.entries)
        return Fitted(mapped.entries, unfit, mapped.said)
    except (FaultyConnector, ConfigError):
        return _one_by_one(connectors, facts, idle, load, unfit)


def _readable(stored: Iterable[StoredConnector]) -> tuple[list[Connector], dict[str, str]]:
    found: list[Connector] = []
    unfit: dict[str, str] = {}
    for one in stored:
        try:
            found.append(read_connector(one.name, one.config))
        except FaultyConnector as error:
            unfit[one.name] = error.message
    return found, unfit


def _one_by_one(
    connectors: Iterable[Connector], facts: FileFacts, idle: frozenset[str], load: Loader, unfit: Mapping[str, str]
) -> Fitted:
    kept: list[Connector] = []
    found = dict(unfit)
    for one in connectors:
        try:
            load(entries_of([*kept, one], facts, idle).entries)
            kept.append(one)
        except FaultyConnector as error:
            found[one.name] = error.message
        except ConfigError as error:
            found[one.name] = "; ".join(error.faults)
    mapped = entries_of(kept, facts, idle)
    return Fitted(mapped.entries, found, mapped.said)


def kind_in(config: Mapping[str, str]) -> ConnectorKind:
    """Of a configuration that was taken once; what cannot be told counts as a source connector."""
    return kind_of(config.get("connector.class", "")) or ConnectorKind.SOURCE
