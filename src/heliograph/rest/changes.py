"""What changed between two views of the same things: what the stream sends instead of all of it.

Pure. Rows are dicts that hold only JSON; `None` as a field's value is a value like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Reversible
from typing import Any

Fields = Mapping[str, Any]
_MISSING = object()


def changed_fields(before: Fields, now: Fields) -> dict[str, Any]:
    """The fields of `now` that are new or other than before. Fields never go: a view always has all of them."""
    return {name: value for name, value in now.items() if before.get(name, _MISSING) != value}


def changed_rows(before: Mapping[str, Fields], now: Mapping[str, Fields]) -> dict[str, dict[str, Any]]:
    """By key: the whole of new rows, the changed fields of others; rows without change are left out."""
    found: dict[str, dict[str, Any]] = {}
    for key, row in now.items():
        fields = changed_fields(before.get(key, {}), row)
        if fields:
            found[key] = fields
    return found


def by_key(rows: Iterable[Fields], name: str) -> dict[str, Fields]:
    return {row[name]: row for row in rows}


def newer(events: Reversible[Fields], last: Fields | None, most: int) -> list[Fields]:
    """Events after `last`, newest last; the newest `most` where `last` is not known any more."""
    found: list[Fields] = []
    for event in reversed(events):
        if event is last or len(found) == most:
            break
        found.append(event)
    return found[::-1]
