"""The REST server's settings from entries that were found valid, and what does not fit together in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from heliograph.config.flows import ServerSettings
from heliograph.config.listeners import Listener
from heliograph.config.properties import Property
from heliograph.config.resolve import View
from heliograph.model.clusters import Cluster

Entries = Mapping[str, Property]


def server_settings(entries: Entries) -> ServerSettings:
    view = View(entries)
    return ServerSettings(
        listeners=_listeners(view),
        tokens_file=view.text("rest.auth.tokens.file"),
        certificate_file=view.text("rest.ssl.certificate.file"),
        key_file=view.text("rest.ssl.key.file"),
        body_max_bytes=view.number("rest.body.max.bytes"),
        requests_per_second=view.number("rest.requests.per.second"),
        metrics_lanes=view.number("metrics.lanes"),
    )


def _listeners(view: View) -> tuple[Listener, ...]:
    """Old files of Connect have a port, and a host to listen on, in place of listeners."""
    has_old = any(view.find(name).entry is not None for name in ("rest.port", "rest.host.name"))
    if has_old and view.find("listeners").entry is None:
        return (Listener("http", view.text("rest.host.name") or "127.0.0.1", view.number("rest.port")),)
    return cast("tuple[Listener, ...]", view.typed("listeners"))


def state_cluster(entries: Entries, clusters: Mapping[str, Cluster]) -> Cluster | None:
    """The one that is named, or the first one."""
    named = View(entries).text("state.cluster")
    return clusters.get(named) if named else next(iter(clusters.values()), None)


def server_faults(entries: Entries, aliases: Sequence[str]) -> Iterator[str]:
    """What does not fit together."""
    server = server_settings(entries)
    for listener in server.listeners:
        if not listener.is_loopback and not server.tokens_file:
            yield (
                f"listeners = {listener.url}: other machines would reach it, and rest.auth.tokens.file is not set: set it, "
                "or listen on 127.0.0.1"
            )
        if listener.scheme == "https" and not (server.certificate_file and server.key_file):
            yield f"listeners = {listener.url}: https needs rest.ssl.certificate.file and rest.ssl.key.file"
    named = View(entries).text("state.cluster")
    if named and named not in aliases:
        yield f"state.cluster = {named}: expected one of clusters ({', '.join(aliases)})"
