"""A file's security made ready for a run: stores read once.

The driver reads key and trust stores, so that executors on other hosts need no file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from heliograph.config.flows import FlowSettings, Settings
from heliograph.errors import SetupError
from heliograph.kafka.keystores import carried
from heliograph.model.clusters import Cluster
from heliograph.model.security import Security

_Ready = Callable[[Cluster], Cluster]


def read_stores(settings: Settings) -> Settings:
    """The settings with every key and trust store as text; SetupError where one cannot be read."""
    known: dict[Security, Security] = {}

    def ready(cluster: Cluster) -> Cluster:
        if cluster.security not in known:
            try:
                known[cluster.security] = carried(cluster.security)
            except SetupError as error:
                raise SetupError(f"cluster {cluster.alias}: {error}") from error
        return replace(cluster, security=known[cluster.security])

    state = ready(settings.state) if settings.state is not None else None
    return replace(settings, flows=tuple(_with(flow, ready) for flow in settings.flows), state=state)


def _with(flow: FlowSettings, ready: _Ready) -> FlowSettings:
    return replace(
        flow,
        source=ready(flow.source),
        target=ready(flow.target),
        source_admin=ready(flow.source_admin),
        target_admin=ready(flow.target_admin),
        source_writer=ready(flow.source_writer),
    )
