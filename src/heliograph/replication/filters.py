"""Which names a flow takes: MirrorMaker 2's lists of names and Java regular expressions.

A list is joined with `|` and must match the whole name; an empty list matches nothing; the exclude list wins.
Knows nothing of topics, groups or configs: all three are chosen this way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from heliograph.errors import ConfigError
from heliograph.replication.java_regex import PatternError, translate

_NOTHING = re.compile(r"(?!)")
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")


def split_list(text: str) -> tuple[str, ...]:
    """A list option's elements: split on commas, trimmed, empty ones left out."""
    return tuple(element for element in (part.strip() for part in text.split(",")) if element)


def plain_names(patterns: Iterable[str]) -> list[str]:
    """Those elements of a list that are names."""
    return [pattern for pattern in patterns if _PLAIN.fullmatch(pattern)]


def compile_java(patterns: Iterable[str]) -> re.Pattern[str]:
    """One expression for the whole list, to be used with `fullmatch`.

    The elements are joined before they are translated, as MirrorMaker 2 joins them: a flag such as (?i) in one
    element holds for those behind it. Raises ConfigError with a sentence for every element that is at fault.
    """
    elements = tuple(patterns)
    faults = [fault for fault in map(_fault, elements) if fault]
    if faults:
        raise ConfigError(faults)
    if not elements:
        return _NOTHING
    joined = "|".join(elements)
    fault = _fault(joined)
    if fault:
        raise ConfigError([fault])
    return re.compile(translate(joined), re.ASCII)


def _fault(pattern: str) -> str:
    try:
        re.compile(translate(pattern), re.ASCII)
    except PatternError as error:
        return f"bad regular expression {pattern}: {error}"
    except re.error as error:
        return f"bad regular expression {pattern}: {error.msg}"
    return ""


class NameFilter:
    """Names that match `include` and do not match `exclude`."""

    def __init__(self, include: Iterable[str], exclude: Iterable[str] = ()) -> None:
        self._include = compile_java(include)
        self._exclude = compile_java(exclude)

    def includes(self, name: str) -> bool:
        return self._include.fullmatch(name) is not None

    def excludes(self, name: str) -> bool:
        return self._exclude.fullmatch(name) is not None

    def accepts(self, name: str) -> bool:
        return self.includes(name) and not self.excludes(name)
