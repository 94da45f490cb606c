"""Names that options had in MirrorMaker 2 before 4.0, or in its first documents: understood, with a warning that says the new one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from heliograph.config.keys import locate
from heliograph.config.properties import Property
from heliograph.config.tables.names import OLD_NAMES

OLD: Mapping[str, str] = MappingProxyType(dict(OLD_NAMES))
Said = tuple[int, str]
"""A line and a sentence."""


def renewed(entries: Mapping[str, Property], aliases: tuple[str, ...]) -> tuple[dict[str, Property], list[Said]]:
    """The entries under their new names, and what is to be said of it. Where both are set the new one counts."""
    found: dict[str, Property] = {}
    warnings: list[Said] = []
    for entry in entries.values():
        rest = locate(entry.name, aliases).rest
        if rest not in OLD:
            found[entry.name] = entry
            continue
        name = entry.name.removesuffix(rest) + OLD[rest]
        if name in entries:
            warnings.append((entry.line, f"{entry.name} has no effect: {name} is set in line {entries[name].line}"))
            continue
        warnings.append((entry.line, f"{entry.name} is an old name: write {name}"))
        found[name] = Property(name, entry.value, entry.line, entry.written)
    return found, warnings
