"""What people changed beside the file, from the rows that keep it: holds, topics, options, connectors.

Rows that cannot be read are left alone and logged: another version may know them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from heliograph.config.flows import Settings
from heliograph.config.load import load_file
from heliograph.config.overlay import OptionChange, TopicChange, option_change_of, overlay, topic_change_of
from heliograph.control.security import read_stores
from heliograph.control.state_topic import Row
from heliograph.model.holds import Hold, hold_of

_log = logging.getLogger(__name__)
_MALFORMED = (KeyError, TypeError, ValueError)
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Amendments:
    """All that counts beside the file."""

    holds: tuple[Hold, ...] = ()
    topics: tuple[TopicChange, ...] = ()
    options: tuple[OptionChange, ...] = ()
    rows: Mapping[str, Row] = field(default_factory=dict)


def hold_key(hold: Hold) -> str:
    return f"hold/{hold.subject}"


def topic_key(flow: str, topic: str) -> str:
    return f"topic/{flow}/{topic}"


def option_key(name: str) -> str:
    return f"option/{name}"


def amendments(rows: Mapping[str, Row]) -> Amendments:
    return Amendments(
        tuple(_read(rows, "hold/", hold_of)),
        tuple(_read(rows, "topic/", topic_change_of)),
        tuple(_read(rows, "option/", option_change_of)),
        dict(rows),
    )


def _read(rows: Mapping[str, Row], kind: str, read: Callable[[Mapping[str, Any]], Kind]) -> Iterator[Kind]:
    for key, row in rows.items():
        if key.startswith(kind):
            try:
                yield read(row)
            except _MALFORMED:
                _log.warning("a row of __heliograph-flows cannot be read and is passed over: %s", key)


def load_amended(path: str, amended: Amendments) -> Settings:
    """The file with what was changed over it; ConfigError or SetupError where that is wrong."""
    settings = load_file(path)
    over = overlay(settings.flows, amended.topics, amended.options)
    return read_stores(load_file(path, over) if over else settings)
