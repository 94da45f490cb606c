from __future__ import annotations

import pytest

from heliograph.replication.renames import (
    FORMAT_EXPECTED,
    PAIRS_EXPECTED,
    REGEX_EXPECTED,
    Renames,
    Rewrite,
    parse_format,
    parse_pairs,
    parse_rewrite,
)


def rewrite(text: str) -> Rewrite:
    found = parse_rewrite(text)
    assert found is not None
    return found


def test_no_rules_name_nothing() -> None:
    assert not Renames()
    assert (Renames().forward("orders"), Renames().back("orders")) == (None, None)
    assert (parse_pairs(""), parse_format(""), parse_rewrite("")) == ((), "", None)


def test_pairs_are_read_with_or_without_blanks() -> None:
    assert parse_pairs("orders -> sales.orders, clicks->web ,") == (("orders", "sales.orders"), ("clicks", "web"))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("orders", "'orders' is none"),
        ("orders ->", "'orders ->' is none"),
        ("or/ders -> x", "is none"),
        ("a -> x, b -> x", "x stands twice"),
        ("a -> x, a -> y", "a stands twice"),
    ],
)
def test_bad_pairs_are_refused_with_what_is_wrong(text: str, part: str) -> None:
    with pytest.raises(ValueError, match=PAIRS_EXPECTED) as caught:
        parse_pairs(text)
    assert part in str(caught.value)


@pytest.mark.parametrize("text", ["copy", "${topic}${topic}", "a b${topic}", "${topic}.${alias}"])
def test_a_format_has_topic_once_and_nothing_that_a_name_cannot_hold(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_format(text)
    assert str(caught.value) == FORMAT_EXPECTED


def test_names_of_internal_topics_and_heartbeats_are_not_given_away() -> None:
    for parse, text in ((parse_pairs, "x -> __heliograph-ledger"), (parse_format, "__${topic}")):
        with pytest.raises(ValueError, match="do not begin with __"):
            parse(text)
    with pytest.raises(ValueError, match="do not begin with __"):
        parse_rewrite("(.*) -> __$1")
    with pytest.raises(ValueError, match="another topic than heartbeats"):
        parse_pairs("heartbeats -> x")


@pytest.mark.parametrize(
    ("rule", "topic", "remote"),
    [
        (r"(.+)\.prod -> prod.$1", "orders.eu.prod", "prod.orders.eu"),
        (r"(.*)\.([^.]*) -> $2.$1", "x.y.z", "z.x.y"),
        (r"([a-z]+)_(\d+) -> ${2}-$1", "abc_12", "12-abc"),
        (r"(.*)-(\d{2,3}) -> $1.$2", "a.b-123", "a.b.123"),
        (r"(\p{Lower}+)-(.*) -> $1.$2", "eu-x.y", "eu.x.y"),
        (r"(a|b)(?:c) -> $1", None, None),
        (r"((?:ab)+) -> q.$1", "abab", "q.abab"),
        (r"([^(\]]+) -> q.$1", "a.b", "q.a.b"),
        (r"a\.b(.*) -> $1c", "a.bx", "xc"),
    ],
)
def test_a_regular_expression_leads_there_and_back(rule: str, topic: str | None, remote: str | None) -> None:
    if topic is None or remote is None:
        with pytest.raises(ValueError, match="a group may hold no other group|every group once"):
            parse_rewrite(rule)
        return
    rules = Renames(rewrite=rewrite(rule))
    assert rules.forward(topic) == remote
    assert rules.back(remote) == topic


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("(.*)", "every group once, as in"),
        ("-> x", "every group once, as in"),
        ("(.*) ->", "every group once, as in"),
        ("x -> y", "without every group once"),
        ("(.*)-(.*) -> $1", "without every group once"),
        ("(.*) -> $1$1", "without every group once"),
        ("(.*) -> $2", "without every group once"),
        ("(.*)-(.*) -> $1$2", "two topics could have one name"),
        (r"(.*)\.(.*) -> $2.$1", "two topics could have one name"),
        (r"(\x41*)-(\x42*) -> $1-$2", "two topics could have one name"),
        ("([a-z&&[^b]]*) -> $1a", "(&&) is not supported"),
        ("(.*).x -> $1", r"a dot as \."),
        ("(.*)? -> $1", r"a dot as \."),
        ("((a)) -> $1", "no other group"),
        ("(?i)(a) -> $1", "no other group"),
        (r"(a)(\1) -> $1.$2", "no reference"),
        ("(a -> $1", "a group is not closed"),
        ("([z-a]) -> $1", "[z-a]: bad character range"),
        ("(*a) -> $1", "*a: nothing to repeat"),
        (r"(\p{Strange}) -> $1", r"\p{Strange}: "),
        ("(.*) -> a b$1", "'a b' cannot stand in a topic's name"),
    ],
)
def test_a_regular_expression_without_a_way_back_is_refused_with_one_sentence(rule: str, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_rewrite(rule)
    assert str(caught.value).startswith(REGEX_EXPECTED)
    assert why in str(caught.value)


def test_the_first_rule_that_fits_names_a_topic() -> None:
    rules = Renames(parse_pairs("a-1 -> one"), rewrite(r"a-(\d+) -> n$1"), "${topic}.copy")
    assert [rules.forward(topic) for topic in ("a-1", "a-2", "b")] == ["one", "n2", "b.copy"]
    assert [rules.back(remote) for remote in ("one", "n2", "b.copy")] == ["a-1", "a-2", "b"]
    assert rules.back("n1") is None, "a-1 is called otherwise"
    assert rules.back("a-2.copy") is None, "a-2 is called otherwise"
    assert rules.back("other") is None
    assert rules.back(".copy") is None, "no topic has an empty name"
