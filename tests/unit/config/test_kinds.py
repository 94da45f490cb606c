from __future__ import annotations

import pytest

from heliograph.config.kinds import (
    Aliases,
    Choice,
    ClassName,
    Flag,
    Fraction,
    Kind,
    Names,
    Only,
    Regexes,
    Separator,
    Servers,
    Text,
    Whole,
)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Text(), " as it is ", " as it is "),
        (Flag(), " TRUE ", True),
        (Flag(), "false", False),
        (Whole(1, special=-1), " 3 ", 3),
        (Whole(1, special=-1), "-1", -1),
        (Whole(2, 50), "50", 50),
        (Whole(0), "9223372036854775807", 9223372036854775807),
        (Fraction(0.5, 1.0), "0.8", 0.8),
        (Fraction(0.0, 1.0), ".5", 0.5),
        (Choice(("earliest", "latest"), any_case=True), "LATEST", "latest"),
        (Choice(("warn", "error")), " error ", "error"),
        (Only("PLAINTEXT", any_case=True), "plaintext", "PLAINTEXT"),
        (Only("fail"), "fail", "fail"),
        (Names(), "a, b,a", ("a", "b")),
        (Names(), "", ()),
        (Names(("legacy", "new")), "new,legacy", ("new", "legacy")),
        (Regexes(), "a, b.*", ("a", "b.*")),
        (ClassName(), "org.apache.Foo$Bar", "org.apache.Foo$Bar"),
        (ClassName(("a.B",)), "a.B", "a.B"),
        (Separator(), "__", "__"),
        (Aliases(), "A, b-1.x_y, A", ("A", "b-1.x_y")),
        (Servers(), "a:1, [::1]:65535, SSL://b.c:9", ("a:1", "[::1]:65535", "b.c:9")),
    ],
)
def test_a_value_is_read(kind: Kind, text: str, value: object) -> None:
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (Flag(), "yes", "true or false"),
        (Whole(1, special=-1), "many", "a whole number of at least 1 or -1"),
        (Whole(1, special=-1), "0", "a whole number of at least 1 or -1"),
        (Whole(2, 50, unit="seconds"), "51", "a whole number from 2 to 50 (seconds)"),
        (Whole(0), "1_0", "a whole number of at least 0"),
        (Whole(0), "1.5", "a whole number of at least 0"),
        (Whole(0), "", "a whole number of at least 0"),
        (Fraction(0.5, 1.0), "0.4", "a number from 0.5 to 1.0"),
        (Fraction(0.5, 1.0), "x", "a number from 0.5 to 1.0"),
        (Choice(("a", "b", "c")), "A", "a, b or c"),
        (Only("fail"), "continue", "fail, the only value that this version serves"),
        (Only("fail"), "FAIL", "fail, the only value that this version serves"),
        (Names(("legacy", "new")), "old", "a list of legacy or new"),
        (Regexes(), "a(", "bad regular expression a(: a group is not closed"),
        (ClassName(), "not a class", "the name of a Java class"),
        (ClassName(("a.B",)), "a.C", "a.B (no other class can be loaded)"),
        (Separator(), "", "letters, digits"),
        (Separator(), "->", "letters, digits"),
        (Aliases(), "", "a list of aliases"),
        (Aliases(), "A, B C", "a list of aliases"),
        (Servers(), "", "host:port"),
        (Servers(), "a", "host:port"),
        (Servers(), "a:0", "host:port"),
        (Servers(), "a:65536", "host:port"),
        (Servers(), "a:1, b", "host:port"),
        (Servers(), "a b:1", "host:port"),
    ],
)
def test_a_bad_value_is_refused_with_what_is_allowed(kind: Kind, text: str, expected: str) -> None:
    with pytest.raises(ValueError) as caught:
        kind.parse(text)
    assert expected in str(caught.value)


def test_a_plain_list_says_how_it_is_split() -> None:
    assert Names().expected == "a list, split on commas"
