"""The settings that a running mirror goes by: the file, with what was changed by REST over it."""

from __future__ import annotations

import asyncio

from heliograph.config.flows import Settings
from heliograph.config.load import load_file
from heliograph.control.amendments import amendments, load_amended
from heliograph.control.security import read_stores
from heliograph.control.state_topic import Row, StateTopic
from heliograph.errors import HeliographError

_SECONDS = 3.0


def load_effective(file: str) -> Settings:
    """As `load_file`, with stores read. Where the cluster that keeps changes does not answer, the file alone counts."""
    settings = read_stores(load_file(file))
    rows = asyncio.run(_rows(settings))
    return load_amended(file, amendments(rows)) if rows else settings


async def _rows(settings: Settings) -> dict[str, Row]:
    if settings.state is None or not settings.state.bootstrap:
        return {}
    state = StateTopic(settings.state, settings.engine.topics_replication_factor)
    try:
        async with asyncio.timeout(_SECONDS):
            return await state.read()
    except (HeliographError, TimeoutError):
        return {}
    finally:
        state.close()
