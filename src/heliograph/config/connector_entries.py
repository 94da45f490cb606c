"""From the connectors of Kafka Connect's REST to entries of a MirrorMaker 2 driver file.

The connectors of one flow complete each other: what none of them asks for is not done. Two that contradict each other, or the
file, are refused by name. What the entries mean is decided by load.py, as for any file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from heliograph.config.connectors import Connector, ConnectorKind, Fault, FaultyConnector, holds_secret, plain_name
from heliograph.config.keys import locate
from heliograph.config.kinds import Servers
from heliograph.config.option import FLOW, FLOW_ONLY
from heliograph.config.options import BY_NAME, SECURITY_NAMES, find
from heliograph.model.clusters import Flow

_SELF = ("connector.class", "source.cluster.alias", "target.cluster.alias", "enabled")
"""What makes a connector and its flow; it is no option of the flow."""
SELECTION = ("topics", "topics.exclude", "topic.filter.class")
_OF_CHECKPOINTS = (
    "groups",
    "groups.exclude",
    "group.filter.class",
    "refresh.groups.enabled",
    "refresh.groups.interval.seconds",
    "emit.checkpoints.enabled",
    "emit.checkpoints.interval.seconds",
    "sync.group.offsets.enabled",
    "sync.group.offsets.interval.seconds",
    "checkpoints.topic.replication.factor",
)
_OF_HEARTBEATS = (
    "emit.heartbeats.enabled",
    "emit.heartbeats.interval.seconds",
    "heartbeats.topic.replication.factor",
)
_OF_ALL = re.compile(r"(replication\.policy|source|target|consumer|producer|admin)\..*|offset-syncs\.topic\.location")
_FIELD = re.compile(
    r"(?:(?P<side>source|target)\.(?P<cluster>cluster\.)?)?(?:(?P<client>consumer|producer|admin)\.)?(?P<key>.+)"
)
_OVERRIDE = "producer.override."

Entry = tuple[str, int]
"""A name in a driver file, and how strong a field is there: of several that mean the same entry the strongest counts."""


@dataclass(frozen=True)
class FileFacts:
    """What the file has, which no connector changes."""

    aliases: tuple[str, ...] = ()
    flows: frozenset[str] = frozenset()
    entries: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Mapped:
    """Entries that count over the file's, and what a person should know of fields that are not read."""

    entries: Mapping[str, str]
    said: tuple[str, ...] = ()


def entries_of(connectors: Sequence[Connector], file: FileFacts, idle: Collection[str] = ()) -> Mapped:
    """FaultyConnector where they contradict each other or the file. `idle` are the names of those that do nothing now."""
    flows = tuple(dict.fromkeys(connector.flow for connector in connectors))
    aliases = tuple(dict.fromkeys((*file.aliases, *(end for flow in flows for end in (flow.source, flow.target)))))
    book = _Book(file, aliases)
    said: list[str] = []
    for connector in connectors:
        said += _not_read(connector)
        for name, value in _own_entries(connector):
            book.put(connector, name, value)
    misplaced = [*_in_the_file(connectors, file), *_twice(connectors)]
    faults = misplaced or [*_other_topics(connectors), *book.faults]
    if faults:
        raise FaultyConnector(faults)
    entries = {name: value for name, (value, _) in book.found.items()}
    known = {*(flow.name for flow in flows), *file.flows}
    for flow in flows:
        active = {one.kind for one in connectors if one.flow == flow and _is_active(one, idle)}
        entries |= _switches(flow, active, has_back=_back(flow) in known)
    return Mapped({**entries, "clusters": ",".join(aliases)} if flows else {}, tuple(said))


# -- what each connector says -------------------------------------------------------------------------------------------


def _is_active(connector: Connector, idle: Collection[str]) -> bool:
    """A heartbeat connector does not look at `enabled`. A source connector that is stopped is held, not switched off."""
    if connector.kind is ConnectorKind.HEARTBEAT:
        return connector.name not in idle
    is_enabled = connector.config.get("enabled", "true").strip().lower() == "true"
    return is_enabled and (connector.kind is ConnectorKind.SOURCE or connector.name not in idle)


def owner(name: str) -> ConnectorKind | None:
    """The kind of connector that reads a field; None: all of them do."""
    known = plain_name(name)
    if known in _OF_CHECKPOINTS:
        return ConnectorKind.CHECKPOINT
    if known in _OF_HEARTBEATS:
        return ConnectorKind.HEARTBEAT
    is_shared = _OF_ALL.fullmatch(name) is not None and name != "source.readonly"
    return None if is_shared else ConnectorKind.SOURCE


def _not_read(connector: Connector) -> Iterator[str]:
    for name in connector.config:
        reader, option = owner(name), find(plain_name(name))
        if name in (*_SELF, "name") or plain_name(name) in SELECTION or reader in (None, connector.kind):
            continue
        if option is None:
            why = "it is not an option"
        else:
            why = f"it is a setting of {reader}" if option.served else option.instead
        yield f"connector {connector.name}: {name} is not read in a {connector.kind}: {why}"


def _own_entries(connector: Connector) -> Iterator[tuple[str, str]]:
    found: dict[str, tuple[int, str]] = {}
    for name, value in connector.config.items():
        if name in _SELF or owner(name) not in (None, connector.kind):
            continue
        for entry, strength in _places(name, connector.flow):
            if entry not in found or strength > found[entry][0]:
                found[entry] = strength, value
    return ((entry, value) for entry, (_, value) in found.items())


def _places(name: str, flow: Flow) -> list[Entry]:
    """Where a field stands in a driver file. Client keys: cluster, client kind, client kind of that cluster (last wins)."""
    known = plain_name(name)
    if known in BY_NAME and BY_NAME[known].scope in (FLOW, FLOW_ONLY):
        return [(f"{flow.name}.{known}", 0 if known == name else -1)]
    parts = _FIELD.fullmatch(name)
    assert parts is not None  # noqa: S101  any text of one letter or more matches
    side, cluster, client, key = parts["side"], parts["cluster"], parts["client"], parts["key"]
    if client and not side:
        return _of_any_side(name, client, key, flow)
    if client:
        return [(_client_entry(side, client, flow) + key, 2 if cluster else 3)]
    if cluster and key in ("bootstrap.servers", *SECURITY_NAMES):
        return [(f"{_alias(side, flow)}.{key}", 0)]
    return [(f"{flow.name}.{name}", 0)]


def _of_any_side(name: str, client: str, key: str, flow: Flow) -> list[Entry]:
    bare = name.removeprefix(_OVERRIDE)
    if bare != name and bare not in SECURITY_NAMES:
        return [(f"{flow.target}.producer.{bare}", 4)]
    if key.startswith("override."):
        return [(f"{flow.name}.{name}", 0)]
    sides = ("source",) if client == "consumer" else ("source", "target")
    return [(_client_entry(side, client, flow) + key, 1) for side in sides]


def _client_entry(side: str, client: str, flow: Flow) -> str:
    """A flow's consumer may differ from other flows'; the other clients are the cluster's."""
    return f"{flow.name}.{side}.consumer." if client == "consumer" else f"{_alias(side, flow)}.{client}."


def _alias(side: str, flow: Flow) -> str:
    return flow.source if side == "source" else flow.target


def _back(flow: Flow) -> str:
    return Flow(flow.target, flow.source).name


def _switches(flow: Flow, active: Collection[ConnectorKind], has_back: bool) -> dict[str, str]:
    """What the connectors that are there do not ask for is off. In Connect nobody writes heartbeats of the other direction."""
    found = {f"{flow.name}.enabled": "true"}
    if ConnectorKind.SOURCE not in active:
        found |= {f"{flow.name}.topics": "", f"{flow.name}.heartbeats.replication.enabled": "false"}
    if ConnectorKind.CHECKPOINT not in active:
        found |= {f"{flow.name}.{name}.enabled": "false" for name in ("emit.checkpoints", "sync.group.offsets")}
    if ConnectorKind.HEARTBEAT not in active:
        found[f"{flow.name}.emit.heartbeats.enabled"] = "false"
    if not has_back:
        found[f"{_back(flow)}.emit.heartbeats.enabled"] = "false"
    return found


# -- what does not fit together -------------------------------------------------------------------------------------------


class _Book:
    """Entries by name, each with the connector that said it first."""

    def __init__(self, file: FileFacts, aliases: Sequence[str]) -> None:
        self._file = file
        self._aliases = aliases
        self.found: dict[str, tuple[str, str]] = {}
        self.faults: list[Fault] = []

    def put(self, connector: Connector, name: str, value: str) -> None:
        if locate(name, self._aliases).owner in self._file.aliases:
            self._compare(connector, name, value, self._file.entries.get(name), "the file")
            return
        known, who = self.found.setdefault(name, (value, connector.name))
        self._compare(connector, name, value, known, f"connector {who}")

    def _compare(self, connector: Connector, name: str, value: str, known: str | None, who: str) -> None:
        if known is not None and _same(name, value, known):
            return
        shown = "another value" if holds_secret(name) else (known if known is not None else "nothing")
        said = f"connector {connector.name}: {name} = {'…' if holds_secret(name) else value}, but {who} has {shown}"
        self.faults.append(Fault(name, f"{said}: one alias is one cluster, one flow has one set of options"))


def _same(name: str, value: str, known: str) -> bool:
    if name.endswith(".bootstrap.servers"):
        try:
            return set(Servers().parse(value)) == set(Servers().parse(known))
        except ValueError:
            return value.strip() == known.strip()  # by a provider: known when it is read
    return value.strip() == known.strip()


def _in_the_file(connectors: Sequence[Connector], file: FileFacts) -> Iterator[Fault]:
    for connector in connectors:
        if connector.flow.name in file.flows:
            sentence = f"connector {connector.name}: the file has flow {connector.flow.name}: change it there"
            yield Fault("source.cluster.alias", sentence)


def _twice(connectors: Sequence[Connector]) -> Iterator[Fault]:
    seen: dict[tuple[Flow, ConnectorKind], str] = {}
    for connector in connectors:
        first = seen.setdefault((connector.flow, connector.kind), connector.name)
        if first != connector.name:
            yield Fault(
                "connector.class",
                f"connector {connector.name}: flow {connector.flow.name} has a {connector.kind}, {first}: change that one, or "
                "use another alias",
            )


def _other_topics(connectors: Sequence[Connector]) -> Iterator[Fault]:
    """A flow has one selection of topics, the source connector's: a checkpoint connector may repeat it."""
    sources = {one.flow: _plain(one) for one in connectors if one.kind is ConnectorKind.SOURCE}
    for connector in connectors:
        if connector.kind is not ConnectorKind.CHECKPOINT or connector.flow not in sources:
            continue
        mine, its = _plain(connector), sources[connector.flow]
        for name in SELECTION:
            copied = its.get(name, BY_NAME[name].default)
            if mine.get(name, copied) != copied:
                yield Fault(
                    name,
                    f"connector {connector.name}: {name} = {mine[name]}, but its flow copies {copied}: leave it out, "
                    "checkpoints are written for what is copied",
                )


def _plain(connector: Connector) -> dict[str, str]:
    return {plain_name(name): value.strip() for name, value in connector.config.items()}
