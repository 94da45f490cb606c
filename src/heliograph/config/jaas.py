"""The grammar of `sasl.jaas.config`, as Kafka's Java clients read it: one login module, its flag, its options, a semicolon.

Follows java.io.StreamTokenizer as Kafka sets it up: words of letters, digits and `. - _ $`, quotes of both kinds with
Java's escapes, three kinds of comment. Messages repeat nothing of the text: what is out of place may be a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FLAGS = ("required", "requisite", "sufficient", "optional")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_TOKEN = re.compile(
    r"""
      (?P<blank>[\x00-\x20]+)
    | (?P<comment>/\*.*?(?:\*/|\Z)|/[^\r\n]*)
    | (?P<quoted>"(?:\\.|[^"\\\r\n])*"?|'(?:\\.|[^'\\\r\n])*'?)
    | (?P<number>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+))
    | (?P<word>[A-Za-z_$\u00a0-\uffff][A-Za-z0-9_$.\u00a0-\uffff-]*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_EXPECTED = (
    'a login module, as in org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";'
)


@dataclass(frozen=True)
class LoginModule:
    """One entry of a JAAS configuration. Its options may be secret: it shows their names alone."""

    name: str
    flag: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, {self.flag}, {sorted(self.options)})"


def parse_jaas(text: str) -> LoginModule:
    """The one login module; ValueError with what was expected."""
    tokens = list(_tokens(text))
    modules = list(_modules(tokens))
    if len(modules) != 1:
        raise ValueError(f"{_EXPECTED} Exactly one is read, this has {len(modules)}")
    return modules[0]


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind in ("blank", "comment"):
            continue
        yield ("word", _unquoted(match[0])) if kind == "quoted" else (kind, match[0])


def _unquoted(quoted: str) -> str:
    """Without its quotes; like Java's, a quote that is not closed ends with the line."""
    body = quoted[1:].removesuffix(quoted[0]) if len(quoted) > 1 else ""
    return _ESCAPE.sub(_character, body)


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPES.get(code, code)


def _modules(tokens: list[tuple[str, str]]) -> Iterator[LoginModule]:
    at = 0
    while at < len(tokens):
        if tokens[at][0] != "word":
            raise ValueError(_EXPECTED)
        name = tokens[at][1]
        flag = tokens[at + 1][1].lower() if at + 1 < len(tokens) else ""
        if flag not in _FLAGS:
            raise ValueError(f"{', '.join(_FLAGS[:-1])} or {_FLAGS[-1]} behind the login module")
        options, at = _options(tokens, at + 2)
        yield LoginModule(name, flag, options)


def _options(tokens: list[tuple[str, str]], at: int) -> tuple[dict[str, str], int]:
    """Options up to the semicolon, and the place behind it."""
    options: dict[str, str] = {}
    while at < len(tokens) and tokens[at][1] != ";":
        key = tokens[at][1]
        if tokens[at][0] != "word":
            raise ValueError("name=value after the login module's flag, and a semicolon at the end")
        assigned = [kind for kind, _ in tokens[at + 1 : at + 3]] == ["other", "word"] and tokens[at + 1][1] == "="
        if not assigned:
            raise ValueError('name=value for every option, the value in quotes unless it is a plain word: password="…"')
        options[key] = tokens[at + 2][1]
        at += 3
    if at >= len(tokens):
        raise ValueError("a semicolon at the end")
    return options, at + 1
