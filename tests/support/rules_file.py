"""The part of YAML that deploy/prometheus/alerts.yml is written in: mappings, lists of mappings, strings in double quotes."""

from __future__ import annotations

import json
import re
from typing import Any

_LINE = re.compile(r'(?P<indent> *)(?P<item>- )?(?P<key>[a-z_]+):(?: (?P<value>"(?:[^"\\]|\\.)*"))?')


class NotRules(Exception):
    """A line that is not of this form."""


def read_rules(text: str) -> dict[str, Any]:
    """The whole file as Python values."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    found, rest = _mapping([_read(line) for line in lines], 0)
    if rest:
        raise NotRules(f"{rest[0][1]} stands too far to the left")
    return found


def _read(line: str) -> tuple[int, str, str | None, bool]:
    found = _LINE.fullmatch(line)
    if found is None:
        raise NotRules(line)
    value = None if found["value"] is None else json.loads(found["value"])
    item = found["item"] is not None
    return len(found["indent"]) + (2 if item else 0), found["key"], value, item


_Lines = list[tuple[int, str, str | None, bool]]


def _mapping(lines: _Lines, indent: int) -> tuple[dict[str, Any], _Lines]:
    found: dict[str, Any] = {}
    first = True
    while lines and lines[0][0] == indent and (first or not lines[0][3]):
        _, key, value, _ = lines[0]
        if key in found:
            raise NotRules(f"{key} stands twice")
        lines, first = lines[1:], False
        if value is not None:
            found[key] = value
        elif lines and lines[0][3]:
            found[key], lines = _items(lines, lines[0][0])
        else:
            found[key], lines = _mapping(lines, indent + 2)
    return found, lines


def _items(lines: _Lines, indent: int) -> tuple[list[Any], _Lines]:
    found = []
    while lines and lines[0][3] and lines[0][0] == indent:
        one, lines = _mapping(lines, indent)
        found.append(one)
    return found, lines
