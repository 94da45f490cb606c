"""The grammar of java.util.Properties: text in, (name, value, line) out.

Knows nothing of options. Follows Java to the character: `=`, `:` and blanks separate, a backslash at the end of a
line continues it, \\uXXXX \\t \\n \\r \\f are escapes and any other escaped character stands for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from heliograph.errors import ConfigError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE_END = re.compile(r"\r\n|\r|\n")
_ESCAPE = re.compile(r"\\(u(?:[0-9a-fA-F]{4})?|.)", re.DOTALL)


@dataclass(frozen=True)
class Property:
    """One entry. `line` is where it begins, counted from 1, or 0 if it came by REST; `written` is its value before config providers, if they changed it."""

    name: str
    value: str
    line: int
    written: str = ""

    @property
    def origin(self) -> str:
        return f"line {self.line}" if self.line else "REST"

    @property
    def shown(self) -> str:
        """The value as a person wrote it: what a provider gave is not to be seen."""
        return self.written or self.value


@dataclass(frozen=True)
class Malformed:
    """A line that has no meaning, and why."""

    line: int
    reason: str


def parse(text: str) -> list[Property]:
    """All entries in order, repeated ones too; raises ConfigError with every malformed line."""
    entries = list(scan(text))
    faults = [f"line {entry.line}: {entry.reason}" for entry in entries if isinstance(entry, Malformed)]
    if faults:
        raise ConfigError(faults)
    return [entry for entry in entries if isinstance(entry, Property)]


def scan(text: str) -> Iterator[Property | Malformed]:
    """The same, with malformed lines in their place."""
    for number, line in _logical_lines(text):
        raw_name, raw_value = _split(line)
        try:
            yield Property(_unescape(raw_name), _unescape(raw_value), number)
        except ValueError as error:
            yield Malformed(number, str(error))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines after joining continued ones, without blank lines and comments."""
    joined = ""
    begin = 0
    is_open = False
    natural_lines = _LINE_END.split(text)
    if not natural_lines[-1]:
        natural_lines.pop()
    for number, natural in enumerate(natural_lines, start=1):
        line = natural.lstrip(_BLANKS)
        # Java looks for comments and blank lines wherever nothing was read yet, behind a lone backslash too.
        if not joined:
            begin = number
            if line[:1] in ("", "#", "!"):
                is_open = False
                continue
        is_open = _is_continued(line)
        if is_open:
            joined += line[:-1]
            continue
        yield begin, joined + line
        joined = ""
    if is_open:
        yield begin, joined


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """Name and value, both still escaped."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str) -> str:
    plain = _ESCAPE.sub(_character, text)
    # Java's strings are UTF-16: two escaped surrogates are one character.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _character(escape: re.Match[str]) -> str:
    code = escape.group(1)
    if code == "u":
        raise ValueError("malformed \\uXXXX escape: expected four hexadecimal digits after \\u")
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)
