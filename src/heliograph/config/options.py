"""The one table of options: every name a file may hold, with type, default, meaning and place.

Parsing, `heliograph config` and docs/configuration.md are made from it. The rows stand in `tables/`, by origin.
Knows nothing of a file's contents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from heliograph.config.option import Option
from heliograph.config.tables import clients, engine, metrics, mirror, names, server, watching, workers

GROUPS: Mapping[str, tuple[Option, ...]] = MappingProxyType(
    {
        "Clusters, flows and topics": mirror.SERVED,
        "Names of remote topics": names.ROWS,
        "Classes of your own": names.PLUGIN_ROWS,
        "Limits": engine.LIMIT_ROWS,
        "Lag, canary and groups": watching.ROWS,
        "The engine": engine.ROWS,
        "REST and the page": server.ROWS,
        "Metrics": metrics.ROWS,
        "Connections that write": clients.WRITER_ROWS,
        "Admin connections": clients.ADMIN_ROWS,
        "Security": clients.SECURITY_ROWS,
        "Config providers": clients.PROVIDER_ROWS,
        "MirrorMaker 2's connectors": mirror.CONNECTORS,
        "MirrorMaker 2's removed options": mirror.REMOVED,
        "Old names": names.OLD_ROWS,
        "Kafka Connect": workers.ROWS,
        "Producers": clients.PRODUCER_ROWS,
        "Consumers": clients.CONSUMER_ROWS,
        "Client prefixes": clients.FAMILY_ROWS,
    }
)
OPTIONS: tuple[Option, ...] = tuple(option for rows in GROUPS.values() for option in rows)
BY_NAME: Mapping[str, Option] = MappingProxyType({option.name: option for option in OPTIONS})
SECURITY_NAMES = tuple(option.name for option in clients.SECURITY_ROWS)
ADMIN_NAMES = tuple(option.name for option in clients.ADMIN_ROWS)

_FAMILIES = sorted((o for o in OPTIONS if o.is_family), key=lambda option: len(option.name), reverse=True)
_PER_TOPIC = tuple(option for option in OPTIONS if option.is_per_topic)
_CLIENTS = ("consumer", "producer", "admin")
_CLIENT_PREFIXES = (
    *(f"{side}.{client}." for side in ("source", "target") for client in (*_CLIENTS, "cluster")),
    *(f"{client}.override." for client in _CLIENTS),
    *(f"{client}." for client in _CLIENTS),
)


def find(name: str) -> Option | None:
    """The option that a name means once the alias or flow in front of it is gone.

    A security key may stand behind a client prefix, a consumer key behind `source.`; families come last.
    """
    if name in BY_NAME:
        return BY_NAME[name]
    per_topic = next((option for option in _PER_TOPIC if option.topic_in(name)), None)
    if per_topic is not None:
        return per_topic
    if name.startswith("source.consumer.") and name.removeprefix("source.") in BY_NAME:
        return BY_NAME[name.removeprefix("source.")]
    prefix = client_prefix(name)
    bare = BY_NAME.get(name.removeprefix(prefix))
    if prefix and bare is not None and bare.name in SECURITY_NAMES:
        return bare
    return next((family for family in _FAMILIES if name.startswith(family.name.removesuffix("*"))), None)


def client_prefix(name: str) -> str:
    """The client prefix that a name begins with, or nothing."""
    return next((prefix for prefix in _CLIENT_PREFIXES if name.startswith(prefix)), "")


def is_client_key(name: str) -> bool:
    """Whether a name is a client prefix and a key that Kafka's client of that kind has."""
    prefix = client_prefix(name)
    keys = [clients.CLIENT_KEYS[client] for client in _CLIENTS if client in prefix.split(".")] or list(
        clients.CLIENT_KEYS.values()
    )
    return bool(prefix) and any(name.removeprefix(prefix) in known for known in keys)


def known_names() -> Iterable[str]:
    """All names that could have been meant, without alias and flow."""
    for option in OPTIONS:
        if not option.is_family and not option.is_per_topic:
            yield option.name
            yield from (form.partition(".")[2].format(name=option.name) for form in option.scope if form.count(".") > 1)
    for client, keys in clients.CLIENT_KEYS.items():
        yield from (f"{client}.{key}" for key in sorted(keys))
