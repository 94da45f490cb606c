"""The settings that a running mirror goes by: the file, with what was changed by REST over it."""

from __future__ import annotations

import asyncio
import sys

from heliograph.config.flows import Settings
from heliograph.config.load import load_file
from heliograph.config.worker_file import WORKER
from heliograph.control.amendments import amendments, load_amended
from heliograph.control.security import read_stores
from heliograph.control.state_topic import Row, StateTopic
from heliograph.errors import ClusterUnreachable, HeliographError

_SECONDS = 3.0


def load_effective(file: str) -> Settings:
    """As `load_file`, with stores read. Where the cluster that keeps changes does not answer, the file alone counts.

    ClusterUnreachable where the file has no flow: then it is not known which there are.
    """
    settings = read_stores(load_file(file))
    try:
        rows = asyncio.run(_rows(settings))
    except (HeliographError, TimeoutError) as error:
        if settings.flows or settings.state is None:
            return settings
        why = str(error) or f"cluster {settings.state.alias} did not answer within {_SECONDS:g} s"
        raise ClusterUnreachable(f"{file}: which flows there are is not known: {why}") from error
    return load_amended(file, amendments(rows)) if rows else settings


def say_no_flows(settings: Settings) -> None:
    if said := no_flows(settings):
        sys.stdout.write(f"{said}\n")


def no_flows(settings: Settings) -> str:
    """What there is to say of a file without flows; nothing if it has some."""
    if settings.flows:
        return ""
    kind = " (a worker's file)" if WORKER in settings.clusters else ""
    urls = ", ".join(listener.url for listener in settings.server.listeners)
    return f"{settings.path}: no flows yet{kind}: connectors are created by REST, at {urls}"


async def _rows(settings: Settings) -> dict[str, Row]:
    if settings.state is None or not settings.state.bootstrap:
        return {}
    state = StateTopic(settings.state, settings.engine.topics_replication_factor)
    try:
        async with asyncio.timeout(_SECONDS):
            return await state.read()
    finally:
        state.close()
