"""The types of option values: how each is read from text, and how its allowed values are said in words.

`parse` returns the typed value or raises ValueError; `expected` ends the sentence "A->B.enabled = maybe: expected …".
Knows nothing of options or files.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from heliograph.config.jaas import parse_jaas
from heliograph.errors import ConfigError
from heliograph.replication.filters import compile_java, split_list
from heliograph.replication.starts import EXPECTED, StartFrom, parse_start

_CLASS_NAME = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*", re.ASCII)
_PYTHON_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_SERVER = re.compile(r"(?:[\w-]+://)?(\[[0-9a-fA-F:%.]+\]|[\w.-]+):(\d{1,5})", re.ASCII)
_ALIAS = re.compile(r"[A-Za-z0-9._-]+")


class Kind(Protocol):
    """A type of value."""

    @property
    def word(self) -> str:
        """One word for tables."""

    @property
    def expected(self) -> str:
        """The allowed values, as the end of a sentence."""

    def parse(self, text: str) -> object:
        """The typed value; ValueError where the text is none."""


@dataclass(frozen=True)
class Text:
    """Any text."""

    word: str = "text"
    expected: str = "any text"

    def parse(self, text: str) -> str:
        return text


@dataclass(frozen=True)
class Flag:
    """true or false, in any case."""

    word: str = "bool"
    expected: str = "true or false"

    def parse(self, text: str) -> bool:
        value = text.strip().lower()
        if value not in ("true", "false"):
            raise ValueError(self.expected)
        return value == "true"


@dataclass(frozen=True)
class Whole:
    """A whole number within bounds, or one value outside them that means something else."""

    low: int = 0
    high: int | None = None
    special: int | None = None
    unit: str = ""
    word: str = "int"

    @property
    def expected(self) -> str:
        bounds = f"from {self.low} to {self.high}" if self.high is not None else f"of at least {self.low}"
        unit = f" ({self.unit})" if self.unit else ""
        return f"a whole number {bounds}{unit}" + (f" or {self.special}" if self.special is not None else "")

    def parse(self, text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", text.strip()):
            raise ValueError(self.expected)
        value = int(text)
        in_bounds = value >= self.low and (self.high is None or value <= self.high)
        if not in_bounds and value != self.special:
            raise ValueError(self.expected)
        return value


@dataclass(frozen=True)
class Fraction:
    """A number with a fraction, within bounds."""

    low: float
    high: float
    word: str = "number"

    @property
    def expected(self) -> str:
        return f"a number from {self.low} to {self.high}"

    def parse(self, text: str) -> float:
        if not re.fullmatch(r"[0-9]*\.?[0-9]+", text.strip()) or not self.low <= float(text) <= self.high:
            raise ValueError(self.expected)
        return float(text)


@dataclass(frozen=True)
class Choice:
    """One of a few words; `any_case` where Kafka does not look at upper and lower case."""

    values: tuple[str, ...]
    any_case: bool = False
    word: str = "enum"

    @property
    def expected(self) -> str:
        return _or(self.values)

    def parse(self, text: str) -> str:
        value = text.strip()
        for allowed in self.values:
            if value == allowed or (self.any_case and value.lower() == allowed.lower()):
                return allowed
        raise ValueError(self.expected)


@dataclass(frozen=True)
class Only:
    """An option that will have more values: this version serves one, and refuses the others."""

    value: str
    any_case: bool = False
    word: str = "enum"

    @property
    def expected(self) -> str:
        return f"{self.value}, the only value that this version serves"

    def parse(self, text: str) -> str:
        value = text.strip()
        if value != self.value and not (self.any_case and value.lower() == self.value.lower()):
            raise ValueError(self.expected)
        return self.value


@dataclass(frozen=True)
class Names:
    """A list, split on commas. With `values`, each element must be one of them."""

    values: tuple[str, ...] = ()
    word: str = "list"

    @property
    def expected(self) -> str:
        return f"a list of {_or(self.values)}" if self.values else "a list, split on commas"

    def parse(self, text: str) -> tuple[str, ...]:
        elements = tuple(dict.fromkeys(split_list(text)))
        if self.values and not set(elements) <= set(self.values):
            raise ValueError(self.expected)
        return elements


@dataclass(frozen=True)
class Regexes:
    """A list of names and Java regular expressions."""

    word: str = "regex list"
    expected: str = "a list of names or Java regular expressions, split on commas"

    def parse(self, text: str) -> tuple[str, ...]:
        elements = split_list(text)
        try:
            compile_java(elements)
        except ConfigError as error:
            raise ValueError(f"{self.expected}; {'; '.join(error.faults)}") from error
        return elements


@dataclass(frozen=True)
class Read:
    """Text that a decision reads by itself; what it says of a bad one is the end of the sentence."""

    read: Callable[[str], object]
    expected: str
    word: str

    def parse(self, text: str) -> object:
        return self.read(text.strip())


@dataclass(frozen=True)
class Beginning:
    """Where a lane begins that was never copied; empty: not said here."""

    word: str = "start"
    expected: str = EXPECTED

    def parse(self, text: str) -> StartFrom | None:
        return parse_start(text) if text.strip() else None


@dataclass(frozen=True)
class ClassName:
    """A Java class; with `values`, one of those that are built in here, or none where it `may_be_empty`."""

    values: tuple[str, ...] = ()
    may_be_empty: bool = False
    word: str = "class"

    @property
    def expected(self) -> str:
        return f"{_or(self.values)} (no other class can be loaded)" if self.values else "the name of a Java class"

    def parse(self, text: str) -> str:
        value = text.strip()
        if self.may_be_empty and not value:
            return value
        if (self.values and value not in self.values) or not _CLASS_NAME.fullmatch(value):
            raise ValueError(self.expected)
        return value


@dataclass(frozen=True)
class Plugin:
    """A Java class that is built in here, or a class of the user's in Python."""

    values: tuple[str, ...]
    word: str = "class"

    @property
    def expected(self) -> str:
        return f"{', '.join(self.values)}, or a class in Python as module:Class (no other Java class can be loaded)"

    def parse(self, text: str) -> str:
        value = text.strip()
        if value not in self.values and not _PYTHON_CLASS.fullmatch(value):
            raise ValueError(self.expected)
        return value


@dataclass(frozen=True)
class Jaas:
    """A login module with its options, as Java writes it; or nothing."""

    word: str = "JAAS"
    expected: str = "a login module, its flag, its options and a semicolon"

    def parse(self, text: str) -> str:
        if text:
            parse_jaas(text)
        return text


@dataclass(frozen=True)
class Separator:
    """Text between alias and topic: it becomes part of a topic's name."""

    word: str = "text"
    expected: str = "one or more of the characters that a topic's name may have: letters, digits, '.', '_' and '-'"

    def parse(self, text: str) -> str:
        return _matching(_ALIAS, text, self.expected)


@dataclass(frozen=True)
class Aliases:
    """The list of clusters."""

    word: str = "list"
    expected: str = "a list of aliases made of letters, digits, '.', '_' and '-', split on commas"

    def parse(self, text: str) -> tuple[str, ...]:
        aliases = tuple(dict.fromkeys(split_list(text)))
        if not aliases or not all(_ALIAS.fullmatch(alias) for alias in aliases):
            raise ValueError(self.expected)
        return aliases


@dataclass(frozen=True)
class Servers:
    """A list of host:port."""

    word: str = "list"
    expected: str = "a list of host:port with ports from 1 to 65535, split on commas"

    def parse(self, text: str) -> tuple[str, ...]:
        """The servers as host:port; a protocol in front, which Kafka's clients allow, is left out."""
        servers = [_SERVER.fullmatch(server) for server in split_list(text)]
        found = tuple(f"{server[1]}:{int(server[2])}" for server in servers if server and 0 < int(server[2]) <= 65535)
        if not found or len(found) < len(servers):
            raise ValueError(self.expected)
        return tuple(dict.fromkeys(found))


def _or(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _matching(pattern: re.Pattern[str], text: str, expected: str) -> str:
    if not pattern.fullmatch(text.strip()):
        raise ValueError(expected)
    return text.strip()
