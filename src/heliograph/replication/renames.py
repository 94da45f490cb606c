"""Remote names of a flow's own: `source -> remote` pairs, one regular expression with groups, a format with `${topic}`.

Every rule can be taken back, from the remote name to the source's; one that cannot is refused when it is read. Knows names
only: whose they are, and what the replication policy makes of the others, is in topic_names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from heliograph.replication.java_regex import PatternError, translate

TOPIC = "${topic}"
PAIRS_EXPECTED = "a list of SOURCE -> REMOTE, split on commas, no name twice on one side"
FORMAT_EXPECTED = f"{TOPIC} once, with letters, digits, '.', '_' and '-' around it, as in {TOPIC}.copy"
REGEX_EXPECTED = (
    r"a Java regular expression with groups, and a name that has every group once, as in (.+)\.prod -> prod.$1"
)

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
_GROUP_REFERENCE = re.compile(r"\$(?:(\d)|\{(\d+)\})")
_PLAIN = re.compile(r"[A-Za-z0-9_-]|\\[^A-Za-z0-9]")
_TOKEN = re.compile(r"\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{[^}]*\}|\(\?:|.")
_NO_CHARACTERS = "({)|*+?"
"""What begins a token that holds no character: brackets, counts, alternatives."""
_INTERNAL = "__"
_HEARTBEATS = "heartbeats"

Pair = tuple[str, str]


@dataclass(frozen=True)
class Rewrite:
    """A regular expression and the name that is made of its groups. Made by `parse_rewrite`, which proves the way back."""

    pattern: str
    name: str

    def forward(self, topic: str) -> str | None:
        return _rewriter(self.pattern, self.name).forward(topic)

    def back(self, remote: str) -> str | None:
        return _rewriter(self.pattern, self.name).back(remote)


@dataclass(frozen=True)
class Renames:
    """The rules of one flow; the first one that fits a topic names it: pairs, then `rewrite`, then `form`."""

    pairs: tuple[Pair, ...] = ()
    rewrite: Rewrite | None = None
    form: str = ""
    """A format with `${topic}`; empty: none."""

    def __bool__(self) -> bool:
        return bool(self.pairs or self.rewrite or self.form)

    def forward(self, topic: str) -> str | None:
        """The remote name; None where no rule names the topic."""
        paired = dict(self.pairs).get(topic)
        rewritten = self.rewrite.forward(topic) if self.rewrite and paired is None else None
        if paired or rewritten:
            return paired or rewritten
        return self.form.replace(TOPIC, topic) if self.form else None

    def back(self, remote: str) -> str | None:
        """The source topic that has this remote name by a rule; None where none has."""
        for candidate in self._candidates(remote):
            if candidate and self.forward(candidate) == remote:
                return candidate
        return None

    def _candidates(self, remote: str) -> Iterator[str | None]:
        yield from (source for source, name in self.pairs if name == remote)
        if self.rewrite:
            yield self.rewrite.back(remote)
        before, _, after = self.form.partition(TOPIC)
        if self.form and remote.startswith(before) and remote.endswith(after):
            yield remote[len(before) : len(remote) - len(after)]


NO_RENAMES = Renames()


def parse_pairs(text: str) -> tuple[Pair, ...]:
    """ValueError says what is expected."""
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        source, arrow, remote = (half.strip() for half in part.partition("->"))
        if not arrow or not _NAME.fullmatch(source) or not _NAME.fullmatch(remote):
            raise ValueError(f"{PAIRS_EXPECTED}; '{part}' is none")
        _check_reserved(source, remote)
        pairs.append((source, remote))
    for side in (0, 1):
        names = [pair[side] for pair in pairs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{PAIRS_EXPECTED}; {twice} stands twice")
    return tuple(pairs)


def parse_format(text: str) -> str:
    """ValueError says what is expected. Empty: no format."""
    around = text.split(TOPIC)
    if text and (len(around) != 2 or not all(_NAME.fullmatch(part) for part in around if part)):
        raise ValueError(FORMAT_EXPECTED)
    _check_reserved("", text)
    return text


def parse_rewrite(text: str) -> Rewrite | None:
    """ValueError says what is expected, or why there is no way back. Empty: no rule."""
    if not text:
        return None
    pattern, arrow, name = (half.strip() for half in text.rpartition("->"))
    if not arrow or not pattern or not name:
        raise ValueError(REGEX_EXPECTED)
    _check_reserved("", name)
    _rewriter(pattern, name)
    return Rewrite(pattern, name)


def _check_reserved(source: str, remote: str) -> None:
    if remote.startswith(_INTERNAL):
        raise ValueError(f"remote names that do not begin with {_INTERNAL}, as internal topics do")
    if source == _HEARTBEATS:
        raise ValueError("another topic than heartbeats, whose remote name tells where it comes from")


# -- one regular expression, both ways --------------------------------------------------------------------------------

_Part = str | int
"""Plain text, or the number of a group."""


@dataclass(frozen=True)
class _Rewriter:
    source: tuple[_Part, ...]
    remote: tuple[_Part, ...]
    groups: tuple[str, ...]
    """The inside of every group, in Python's dialect."""

    def forward(self, topic: str) -> str | None:
        return _changed(topic, self.source, self.remote, self.groups)

    def back(self, remote: str) -> str | None:
        return _changed(remote, self.remote, self.source, self.groups)


def _changed(name: str, pattern: tuple[_Part, ...], template: tuple[_Part, ...], groups: tuple[str, ...]) -> str | None:
    found = _compiled(pattern, groups).fullmatch(name)
    if found is None:
        return None
    return "".join(part if isinstance(part, str) else found[f"g{part}"] for part in template)


@cache
def _compiled(parts: tuple[_Part, ...], groups: tuple[str, ...]) -> re.Pattern[str]:
    each = (re.escape(part) if isinstance(part, str) else f"(?P<g{part}>{groups[part - 1]})" for part in parts)
    return re.compile("".join(each), re.ASCII)


@cache
def _rewriter(pattern: str, name: str) -> _Rewriter:
    """ValueError where the pattern is none, or a name could be made from two topics."""
    source, inner = _split_pattern(pattern)
    remote = _split_name(name)
    used = sorted(part for part in remote if isinstance(part, int))
    if used != list(range(1, len(inner) + 1)) or not inner:
        raise ValueError(f"{REGEX_EXPECTED}; without every group once there is no way back to the source's name")
    if not _is_unique(remote, inner):
        raise ValueError(
            f"{REGEX_EXPECTED}; between two groups of the name must stand a character that the group before it, or always "
            "the one behind it, cannot hold: else two topics could have one name"
        )
    return _Rewriter(source, remote, tuple(translate(group) for group in inner))


def _split_pattern(pattern: str) -> tuple[tuple[_Part, ...], list[str]]:
    """Plain text and groups, in order; the way back is written from them."""
    parts: list[_Part] = []
    groups: list[str] = []
    at = 0
    while at < len(pattern):
        plain = _PLAIN.match(pattern, at)
        if plain:
            text = plain[0].removeprefix("\\")
            parts[-1:] = [f"{parts[-1]}{text}"] if parts and isinstance(parts[-1], str) else [*parts[-1:], text]
            at = plain.end()
        elif pattern[at] == "(":
            inside = _inside(pattern, at)
            groups.append(inside)
            parts.append(len(groups))
            at += len(inside) + 2
        else:
            raise ValueError(f"{REGEX_EXPECTED}; outside groups only plain text can be taken back, a dot as \\.")
    return tuple(parts), groups


def _inside(pattern: str, at: int) -> str:
    """The text of the group that opens here."""
    depth = 0
    for token in _TOKEN.finditer(pattern, at):
        depth += token[0].startswith("(") - (token[0] == ")")
        if depth == 0:
            inside = pattern[at + 1 : token.start()]
            _check_group(inside)
            return inside
    raise ValueError(f"{REGEX_EXPECTED}; a group is not closed")


def _check_group(inside: str) -> None:
    tokens = _TOKEN.findall(inside)
    if "(" in tokens or inside.startswith("?") or any(re.fullmatch(r"\\[0-9k]", token) for token in tokens):
        raise ValueError(f"{REGEX_EXPECTED}; a group may hold no other group but (?:...), and no reference")
    try:
        re.compile(translate(inside), re.ASCII)
    except PatternError as error:
        raise ValueError(f"{REGEX_EXPECTED}; {inside}: {error}") from error
    except re.error as error:
        raise ValueError(f"{REGEX_EXPECTED}; {inside}: {error.msg}") from error


def _split_name(name: str) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    at = 0
    for reference in [*_GROUP_REFERENCE.finditer(name), None]:
        text = name[at : reference.start() if reference else len(name)]
        if text and not _NAME.fullmatch(text):
            raise ValueError(f"{REGEX_EXPECTED}; '{text}' cannot stand in a topic's name")
        parts += [text] if text else []
        if reference:
            parts.append(int(reference[1] or reference[2]))
            at = reference.end()
    return tuple(parts)


def _is_unique(name: tuple[_Part, ...], groups: list[str]) -> bool:
    """Whether every name falls into its groups in one way only, read from the left or from the right."""
    return _is_unique_from_left(name, groups, lambda text: text[0]) or _is_unique_from_left(
        name[::-1], groups, lambda text: text[-1]
    )


def _is_unique_from_left(name: tuple[_Part, ...], groups: list[str], edge: Callable[[str], str]) -> bool:
    places = [at for at, part in enumerate(name) if isinstance(part, int)]
    for at in places[:-1]:
        group, text = name[at], name[at + 1]
        if isinstance(group, str) or not isinstance(text, str) or edge(text) in _held(groups[group - 1]):
            return False
    return True


def _held(group: str) -> set[str]:
    """Every character that may stand in what a group matches, or more."""
    held: set[str] = set()
    for atom in (token for token in _TOKEN.findall(group) if token[0] not in _NO_CHARACTERS):
        try:
            matches = re.compile(translate(atom), re.ASCII).fullmatch
        except (PatternError, re.error):
            return set(_ALPHABET)
        held |= {char for char in _ALPHABET if matches(char)}
    return held
