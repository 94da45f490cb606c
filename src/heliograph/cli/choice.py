"""`--flow A->B`: the flow of a file that a command is about."""

from __future__ import annotations

from heliograph.config.flows import FlowSettings, Settings
from heliograph.errors import ConfigError


def flow_named(settings: Settings, name: str) -> FlowSettings:
    for flow in settings.flows:
        if flow.flow.name == name:
            return flow
    names = ", ".join(flow.flow.name for flow in settings.flows)
    raise ConfigError([f"--flow {name}: no such flow in {settings.path}; it has {names}"])
