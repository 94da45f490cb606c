"""The configuration of one MirrorMaker 2 connector, as Kafka Connect's REST takes it: read, checked field by field, shown.

Knows the three classes and the option table. What several connectors mean together is in connector_entries.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from heliograph.config.jaas import parse_jaas
from heliograph.config.keys import meant
from heliograph.config.kinds import Aliases
from heliograph.config.option import is_secret
from heliograph.config.options import SECURITY_NAMES, find
from heliograph.config.tables.names import OLD_NAMES
from heliograph.config.transforms import CONVERTERS, IGNORE, TRANSFORMS, changes_records
from heliograph.model.clusters import Flow

PACKAGE = "org.apache.kafka.connect.mirror"
HIDDEN = "[hidden]"
DEFAULT_TARGET = "target"
_JAAS = "sasl.jaas.config"
_REFERENCE = re.compile(r"\$\{[^}]+\}")
_OLD = dict(OLD_NAMES)


class ConnectorKind(StrEnum):
    SOURCE = "MirrorSourceConnector"
    CHECKPOINT = "MirrorCheckpointConnector"
    HEARTBEAT = "MirrorHeartbeatConnector"

    @property
    def java_class(self) -> str:
        return f"{PACKAGE}.{self}"


@dataclass(frozen=True)
class Fault:
    """What is wrong with one field, as Connect says it."""

    field: str
    sentence: str


class FaultyConnector(Exception):
    """A configuration that is not taken."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(fault.sentence for fault in self.faults))

    @property
    def message(self) -> str:
        """All faults in Connect's own frame."""
        return "\n".join(
            [
                f"Connector configuration is invalid and contains the following {len(self.faults)} error(s):",
                *(fault.sentence for fault in self.faults),
                (
                    "You can also find the above list of errors at the endpoint "
                    "`/connector-plugins/{connectorType}/config/validate`"
                ),
            ]
        )


@dataclass(frozen=True)
class Connector:
    """One that was found valid by itself; `config` has all its keys, `name` too."""

    name: str
    kind: ConnectorKind
    config: Mapping[str, str]

    @property
    def flow(self) -> Flow:
        return Flow(self.config["source.cluster.alias"], self.config.get("target.cluster.alias", DEFAULT_TARGET))


def kind_of(java_class: str) -> ConnectorKind | None:
    """A class by its whole name, its simple name, or its simple name without `Connector`, as in Connect."""
    for kind in ConnectorKind:
        if java_class in (kind.java_class, str(kind), kind.removesuffix("Connector")):
            return kind
    return None


def as_texts(config: Mapping[str, Any]) -> dict[str, str]:
    """The values as Connect reads JSON: numbers and booleans are texts. FaultyConnector for null, lists and objects."""
    faults = [Fault(name, _no_text(name, value)) for name, value in config.items() if _is_no_text(value)]
    if faults:
        raise FaultyConnector(faults)
    return {name: _text(value) for name, value in config.items()}


def _is_no_text(value: Any) -> bool:
    return value is None or isinstance(value, list | dict)


def _no_text(name: str, value: Any) -> str:
    if value is None:
        return f"Configuration '{name}' values must not be null."
    return f"Invalid value for configuration {name}: expected a text, a number, true or false"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def restored(config: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """Whoever reads a configuration and sends it back does not lose the secrets, which were read back as `[hidden]`."""
    return {name: stored.get(name, value) if value == HIDDEN else value for name, value in config.items()}


def hidden(config: Mapping[str, str]) -> dict[str, str]:
    """As it may be shown, sorted."""
    return {name: HIDDEN if holds_secret(name) else value for name, value in sorted(config.items())}


def holds_secret(field: str) -> bool:
    """Whether a field's value must not be shown. A topic may be called like a secret."""
    option = find(plain_name(field))
    return is_secret(field) and not (option is not None and option.is_per_topic)


def read_connector(name: str, config: Mapping[str, str], unknown_is_fault: bool = False) -> Connector:
    """FaultyConnector with every fault of its fields."""
    kind = kind_of(config.get("connector.class", ""))
    if kind is None:
        raise FaultyConnector([Fault("connector.class", _no_class(config.get("connector.class", "")))])
    whole = {**config, "name": name}
    faults = list(faults_of(kind, whole, unknown_is_fault))
    if faults:
        raise FaultyConnector(faults)
    return Connector(name, kind, whole)


def _no_class(java_class: str) -> str:
    allowed = ", ".join(kind.java_class for kind in ConnectorKind)
    return f"Failed to find any class that implements Connector and which name matches {java_class}, expected one of {allowed}"


def faults_of(kind: ConnectorKind, config: Mapping[str, str], unknown_is_fault: bool = False) -> Iterator[Fault]:
    """All faults of a connector's fields."""
    yield from _of_name(config)
    yield from _of_ends(config)
    yield from _of_transforms(config)
    for name, value in config.items():
        yield from _of_field(name, value, unknown_is_fault)


def _of_name(config: Mapping[str, str]) -> Iterator[Fault]:
    if "name" not in config:
        yield _missing("name")
    elif not config["name"].strip():
        yield _invalid("name", config["name"], "String may not be empty")


def _of_ends(config: Mapping[str, str]) -> Iterator[Fault]:
    """Unlike in Connect addresses are required: without them such a connector could only fail."""
    for side in ("source", "target"):
        alias, servers = f"{side}.cluster.alias", f"{side}.cluster.bootstrap.servers"
        if alias in config and not _is_alias(config[alias]):
            yield _invalid(alias, config[alias], "expected letters, digits, '.', '_' and '-'")
        for required in (alias, servers):
            if required not in config and required != "target.cluster.alias":
                yield _missing(required)
    source = config.get("source.cluster.alias")
    if source == config.get("target.cluster.alias", DEFAULT_TARGET):
        yield _invalid("target.cluster.alias", str(source), "expected another alias than source.cluster.alias")


def _of_transforms(config: Mapping[str, str]) -> Iterator[Fault]:
    if config.get(IGNORE, "").strip().lower() == "true":
        return
    for name in (TRANSFORMS, *CONVERTERS):
        why = changes_records(name, config.get(name, "").strip())
        if why:
            yield _invalid(name, config[name], why)


def _is_alias(text: str) -> bool:
    try:
        return Aliases().parse(text) == (text,)
    except ValueError:
        return False


def _of_field(name: str, value: str, unknown_is_fault: bool) -> Iterator[Fault]:
    if holds_secret(name) and not is_by_reference(name, value):
        yield _invalid(
            name, HIDDEN, "a secret is not taken as it is: refer to it, as in ${env:NAME} or ${file:PATH:KEY}"
        )
        return
    known = plain_name(name)
    if _REFERENCE.search(value):
        return  # what a provider gives is checked once it has given it
    option = find(known)
    near = meant(known)
    if near is not None:
        yield Fault(name, f"{name} is not an option; did you mean {name.removesuffix(known)}{near}?")
    elif option is None and unknown_is_fault:
        yield Fault(name, f"{name} is not an option (unknown.options = error)")
    elif option is not None:
        try:
            option.kind.parse(value.strip())
        except ValueError as error:
            yield _invalid(name, value, f"expected {error}")


def plain_name(field: str) -> str:
    """The option that a field of a connector means: its name without the side, under its name of today."""
    for side in ("source", "target"):
        rest = field.removeprefix(f"{side}.cluster.")
        if rest != field and rest.startswith(("consumer.", "producer.", "admin.")):
            return f"{side}.{rest}"
        if rest in ("bootstrap.servers", *SECURITY_NAMES):
            return rest
    return _OLD.get(field, field)


def is_by_reference(name: str, value: str) -> bool:
    """Whether a secret is named and not told. In a JAAS text that goes for its secret options alone."""
    if not name.endswith(_JAAS) or _REFERENCE.fullmatch(value.strip()):
        return not value.strip() or _REFERENCE.fullmatch(value.strip()) is not None
    try:
        options = parse_jaas(value).options if value.strip() else {}
    except ValueError:
        return False
    return all(_REFERENCE.fullmatch(told) for option, told in options.items() if is_secret(f".{option}"))


def _invalid(field: str, value: str, why: str) -> Fault:
    return Fault(field, f"Invalid value {value} for configuration {field}: {why}")


def _missing(field: str) -> Fault:
    return Fault(field, f'Missing required configuration "{field}" which has no default value.')
