"""What people changed beside the file, from the rows that keep it: holds, topics, options, connectors.

Rows that cannot be read are left alone and logged: another version may know them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from heliograph.config.flows import Settings
from heliograph.config.load import load_file
from heliograph.config.overlay import OptionChange, TopicChange, option_change_of, overlay, topic_change_of
from heliograph.config.stored_connectors import (
    RUNNING,
    StoredConnector,
    WishedState,
    connector_of,
    fitted,
    idle_entries,
    state_of,
)
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
    connectors: tuple[StoredConnector, ...] = ()
    states: tuple[WishedState, ...] = ()
    """Of connectors that are not to run, by REST or of the file."""
    rows: Mapping[str, Row] = field(default_factory=dict)


def hold_key(hold: Hold) -> str:
    return f"hold/{hold.subject}"


def topic_key(flow: str, topic: str) -> str:
    return f"topic/{flow}/{topic}"


def option_key(name: str) -> str:
    return f"option/{name}"


def connector_key(name: str) -> str:
    return f"connector/{name}"


def state_key(name: str) -> str:
    return f"connector-state/{name}"


def amendments(rows: Mapping[str, Row]) -> Amendments:
    return Amendments(
        tuple(_read(rows, "hold/", hold_of)),
        tuple(_read(rows, "topic/", topic_change_of)),
        tuple(_read(rows, "option/", option_change_of)),
        tuple(_read(rows, "connector/", connector_of)),
        tuple(_read(rows, "connector-state/", state_of)),
        dict(rows),
    )


def amended_rows(amended: Amendments) -> dict[str, Any]:
    """What was changed, with the reasons, for whoever looks at the run."""
    return {
        "holds": [hold.as_fields() for hold in amended.holds],
        "changes": [
            *(
                {
                    **_by(change),
                    "flow": change.flow,
                    "what": f"{change.topic} {'added' if change.chosen else 'taken out'}",
                }
                for change in amended.topics
            ),
            *({**_by(change), "flow": "", "what": f"{change.name} = {change.value}"} for change in amended.options),
        ],
    }


def _by(change: TopicChange | OptionChange) -> dict[str, Any]:
    return {"reason": change.reason, "who": change.who, "since_ms": change.since_ms}


def _read(rows: Mapping[str, Row], kind: str, read: Callable[[Mapping[str, Any]], Kind]) -> Iterator[Kind]:
    for key, row in rows.items():
        if key.startswith(kind):
            try:
                yield read(row)
            except _MALFORMED:
                _log.warning("a row of __heliograph-flows cannot be read and is passed over: %s", key)


def load_amended(path: str, amended: Amendments) -> Settings:
    """The file with what was changed over it; ConfigError or SetupError where that is wrong.

    Connectors that do not fit the file are left out, and named in `unfit`: they must not keep a run from starting.
    """
    plain = load_file(path)
    idle = frozenset(state.name for state in amended.states if state.state != RUNNING)
    found = fitted(amended.connectors, plain, idle, lambda entries: load_file(path, entries))
    base = {**found.entries, **idle_entries(plain.flows, idle)}
    settings = load_file(path, base) if base else plain
    over = {**base, **overlay(settings.flows, amended.topics, amended.options)}
    whole = load_file(path, over) if over != base else settings
    return replace(read_stores(whole), unfit=found.unfit, warnings=(*whole.warnings, *found.said))
