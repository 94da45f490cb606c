"""Which metrics and labels an expression of PromQL uses, by its tokens: what a dashboard and alert rules are held to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""\s+|(?P<string>"(?:[^"\\]|\\.)*")|(?P<duration>\d+(?:ms|[smhdwy])(?!\w))|(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)
    |(?P<name>\$?[a-zA-Z_:][a-zA-Z0-9_:]*)|(?P<mark>=~|!~|!=|==|>=|<=|[-+*/%^(){}\[\],=<>])""",
    re.VERBOSE,
)
_GROUPING = {"by", "without", "on", "ignoring", "group_left", "group_right"}
_OTHER = {"and", "or", "unless", "bool", "offset", "inf", "nan"}
FUNCTIONS = {
    "sum", "max", "min", "avg", "count", "topk", "rate", "increase", "delta", "deriv", "histogram_quantile", "absent",
    "clamp_min", "time", "label_replace", "max_over_time", "min_over_time", "avg_over_time", "changes", "round",
}  # fmt: skip


class NotPromql(Exception):
    """What this reader does not know; it is small on purpose."""


@dataclass
class Query:
    """Metric -> labels that its selectors name; and the labels by which the whole is grouped."""

    metrics: dict[str, set[str]] = field(default_factory=dict)
    values: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """(metric, label) -> the values that are asked for with `=`."""
    grouped: set[str] = field(default_factory=set)


def read_query(text: str) -> Query:
    tokens = list(_tokens(text))
    query = Query()
    _check_brackets(tokens, text)
    at = 0
    while at < len(tokens):
        kind, word = tokens[at]
        after = tokens[at + 1][1] if at + 1 < len(tokens) else ""
        if kind != "name" or word in _OTHER:
            at += 1
        elif word in _GROUPING:
            at = _grouping(tokens, at + 1, query)
        elif after == "(" or after in ("by", "without"):
            if word not in FUNCTIONS:
                raise NotPromql(f"{text}: {word}()")
            at += 1
        else:
            at = _selector(tokens, at, query)
    return query


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise NotPromql(f"{text}: at {text[at : at + 10]!r}")
        if found.lastgroup is not None:
            yield found.lastgroup, found[0]
        at = found.end()


def _check_brackets(tokens: list[tuple[str, str]], text: str) -> None:
    pairs, opened = {")": "(", "}": "{", "]": "["}, []
    for kind, word in tokens:
        if kind == "mark" and word in pairs.values():
            opened.append(word)
        elif kind == "mark" and word in pairs and (not opened or opened.pop() != pairs[word]):
            raise NotPromql(f"{text}: {word} closes nothing")
    if opened or not tokens:
        raise NotPromql(f"{text}: not closed")


def _grouping(tokens: list[tuple[str, str]], at: int, query: Query) -> int:
    if tokens[at][1] != "(":
        return at  # group_left without labels
    at += 1
    while tokens[at][1] != ")":
        if tokens[at][0] == "name":
            query.grouped.add(tokens[at][1])
        at += 1
    return at + 1


def _selector(tokens: list[tuple[str, str]], at: int, query: Query) -> int:
    metric = tokens[at][1]
    labels = query.metrics.setdefault(metric, set())
    at += 1
    if at >= len(tokens) or tokens[at][1] != "{":
        return at
    at += 1
    while tokens[at][1] != "}":
        (kind, label), (_, how), (value_kind, value) = tokens[at : at + 3]
        if kind != "name" or how not in ("=", "!=", "=~", "!~") or value_kind != "string":
            raise NotPromql(f"{metric}: {label} {how} {value}")
        labels.add(label)
        if how == "=":
            query.values.setdefault((metric, label), set()).add(value[1:-1])
        at += 3
        if tokens[at][1] == ",":
            at += 1
    return at + 1
