"""The file of a Kafka Connect worker in distributed mode, read as a driver file without flows: all of them come by REST.

Its one cluster, which keeps what REST changes, gets the alias `worker`. As in Connect the worker's own keys count for writing to
that cluster, under whichever alias connectors call it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from heliograph.config.kinds import Servers
from heliograph.config.option import CLUSTER
from heliograph.config.options import SECURITY_NAMES, find
from heliograph.config.properties import Property

WORKER = "worker"
_MARKS = ("bootstrap.servers", "group.id")
_CLIENTS = ("admin.", "producer.")


def is_worker_file(entries: Mapping[str, Property]) -> bool:
    """What every such file has, and no driver file."""
    return "clusters" not in entries and all(name in entries for name in _MARKS)


def as_driver(entries: Mapping[str, Property], overlay: Mapping[str, str]) -> dict[str, Property]:
    """The same entries where a driver file has them. `overlay` names the clusters that REST added."""
    if not is_worker_file(entries):
        return dict(entries)
    found: dict[str, Property] = {"clusters": Property("clusters", WORKER, entries["bootstrap.servers"].line)}
    for name, entry in entries.items():
        if not _is_clusters(name):
            found[name] = entry
            continue
        for alias in (WORKER, *_same_cluster(entries["bootstrap.servers"].value, overlay)):
            found[f"{alias}.{name}"] = Property(f"{alias}.{name}", entry.value, entry.line, entry.written)
    return found


def _is_clusters(name: str) -> bool:
    option = find(name)
    by_scope = option is not None and option.scope == CLUSTER
    return name == "bootstrap.servers" or name in SECURITY_NAMES or name.startswith(_CLIENTS) or by_scope


def _same_cluster(servers: str, overlay: Mapping[str, str]) -> Iterator[str]:
    """Targets of connectors that are this worker's cluster."""
    for name, value in overlay.items():
        alias = name.removesuffix(".bootstrap.servers")
        is_target = any(f"->{alias}.enabled" in other for other in overlay)
        if alias != name and is_target and _parsed(value) == _parsed(servers):
            yield alias


def _parsed(servers: str) -> object:
    try:
        return set(Servers().parse(servers))
    except ValueError:
        return servers.strip()
