"""The fields of a connector as Connect's `/config` and `/config/validate` list them, made from the option table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from heliograph.config.connector_entries import SELECTION, owner
from heliograph.config.connectors import HIDDEN, ConnectorKind, faults_of, holds_secret, plain_name
from heliograph.config.option import FLOW, FLOW_ONLY, Option
from heliograph.config.options import BY_NAME, GROUPS, SECURITY_NAMES, find
from heliograph.config.tables.names import OLD_ROWS

_FIRST = (
    "name",
    "connector.class",
    "source.cluster.alias",
    "source.cluster.bootstrap.servers",
    "target.cluster.alias",
    "target.cluster.bootstrap.servers",
)
_REQUIRED = frozenset(_FIRST) - {"target.cluster.alias"}
_IMPORTANT = frozenset({*_FIRST, "tasks.max", "topics", "topics.exclude", "groups", "groups.exclude"})
_OF_FAMILIES = (
    *(f"{part}.converter.plugin.version" for part in ("key", "value", "header")),
    "topic.creation.groups",
    "config.providers",
)
"""Names that Connect has rows for; here they belong to a family, or to the file."""
_TYPES: Mapping[str, str] = MappingProxyType(
    {"bool": "BOOLEAN", "int": "LONG", "number": "DOUBLE", "list": "LIST", "regex list": "LIST", "class": "CLASS"}
)
_AS_CONNECT = {"topic.creation.groups": "LIST", "ssl.truststore.certificates": "PASSWORD"}
_GROUP_OF = {option.name: group for group, rows in GROUPS.items() for option in rows}


def definitions(kind: ConnectorKind) -> list[dict[str, Any]]:
    """All fields of this kind of connector."""
    return [_definition(name, place) for place, name in enumerate(_names(kind), start=1)]


def _names(kind: ConnectorKind) -> list[str]:
    flows = (
        option.name
        for option in BY_NAME.values()
        if option.scope in (FLOW, FLOW_ONLY) and not option.is_family and not option.is_per_topic
    )
    old = {option.name for option in OLD_ROWS}
    mine = (name for name in flows if name not in old and (not BY_NAME[name].served or owner(name) in (None, kind)))
    more = ("enabled", *(SELECTION if kind is ConnectorKind.CHECKPOINT else ()))
    return list(dict.fromkeys((*_FIRST, *more, *mine, *_OF_FAMILIES, *SECURITY_NAMES)))


def _definition(name: str, place: int) -> dict[str, Any]:
    option = find(plain_name(name).replace("producer.override.", "producer."))
    assert option is not None  # noqa: S101  names come from the table, or were found in it
    is_required = name in _REQUIRED
    return {
        "name": name,
        "type": _type(name, option),
        "required": is_required,
        "default_value": None if is_required else option.default,
        "importance": "HIGH" if name in _IMPORTANT else "LOW",
        "documentation": option.doc if option.served else f"{option.doc} Not served: {option.instead}.",
        "group": _GROUP_OF[option.name],
        "order_in_group": place,
        "width": "NONE",
        "display_name": name,
        "dependents": [],
    }


def _type(name: str, option: Option) -> str:
    by_kind = "PASSWORD" if holds_secret(name) else _TYPES.get(option.kind.word, "STRING")
    return _AS_CONNECT.get(name, by_kind)


def validation(kind: ConnectorKind, config: Mapping[str, str], unknown_is_fault: bool = False) -> dict[str, Any]:
    """What Connect answers to `/config/validate`: every field with its value and its faults."""
    errors: dict[str, list[str]] = {}
    for fault in faults_of(kind, config, unknown_is_fault):
        errors.setdefault(fault.field, []).append(fault.sentence)
    listed = _names(kind)
    others = [name for name in config if name not in listed and find(plain_name(name)) is not None]
    defined = [_definition(name, place) for place, name in enumerate((*listed, *others), start=1)]
    strange = [name for name in errors if name not in listed and name not in others]
    return {
        "name": kind.java_class,
        "error_count": sum(len(found) for found in errors.values()),
        "groups": list(dict.fromkeys(definition["group"] for definition in defined)),
        "configs": [
            *({"definition": one, "value": _value(one, config, errors)} for one in defined),
            *({"definition": None, "value": _value({"name": name}, config, errors)} for name in strange),
        ],
    }


def _value(definition: Mapping[str, Any], config: Mapping[str, str], errors: Mapping[str, list[str]]) -> dict[str, Any]:
    name = definition["name"]
    value = config.get(name, definition.get("default_value"))
    return {
        "name": name,
        "value": HIDDEN if value and holds_secret(name) else value,
        "recommended_values": [],
        "errors": errors.get(name, []),
        "visible": True,
    }
