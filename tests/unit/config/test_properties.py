"""The expectations were checked against java.util.Properties of Java 17."""

from __future__ import annotations

import pytest

from heliograph.config.properties import Malformed, Property, parse, scan
from heliograph.errors import ConfigError


@pytest.mark.parametrize(
    "line", ["a=b", "a = b", "a:b", "a : b", "a b", "a\tb", " a=b", "a=\tb", "a\f=\fb", "\t a \t=\t b"]
)
def test_equals_colon_and_blanks_separate(line: str) -> None:
    assert parse(line) == [Property("a", "b", 1)]


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("a", "a", ""),
        ("a=", "a", ""),
        ("a==b", "a", "=b"),
        ("a = = b", "a", "= b"),
        ("a b=c", "a", "b=c"),
        ("A->B.enabled = true", "A->B.enabled", "true"),
        (r"a\=b=c", "a=b", "c"),
        (r"a\:b:c", "a:b", "c"),
        (r"a\ b c", "a b", "c"),
        (r"a\\=c", "a\\", "c"),
        ("a=b  ", "a", "b  "),
        (r"a=\t\n\r\f\q\"", "a", '\t\n\r\fq"'),
        (r"a=\u0041\u00e9", "a", "A\u00e9"),
        (r"\u0061=x", "a", "x"),
        (r"a=\ud83d\ude00", "a", "\U0001f600"),
        (r"a=\ud83d", "a", "\ud83d"),
        (r"a=\\u0041", "a", r"\u0041"),
        ("a=b#c!d", "a", "b#c!d"),
        ("=x", "", "x"),
    ],
)
def test_names_and_values_are_unescaped(text: str, name: str, value: str) -> None:
    assert parse(text) == [Property(name, value, 1)]


def test_comments_and_blank_lines_are_left_out() -> None:
    assert parse("# a=b\n ! c=d\n\n \t\ne=f\n#\\\ng=h") == [Property("e", "f", 5), Property("g", "h", 7)]


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_every_line_end_counts_as_one_line(end: str) -> None:
    assert parse(f"a=1{end}{end}b=2{end}") == [Property("a", "1", 1), Property("b", "2", 3)]


def test_a_backslash_at_the_end_continues_the_line_and_drops_the_blanks_that_follow() -> None:
    text = "topics = a,\\\n   b,\\\n\t c\nd=e"
    assert parse(text) == [Property("topics", "a,b,c", 1), Property("d", "e", 4)]


def test_an_even_number_of_backslashes_does_not_continue() -> None:
    assert parse("a=b\\\\\nc=d") == [Property("a", "b\\", 1), Property("c", "d", 2)]


def test_a_continued_line_may_be_the_last() -> None:
    assert parse("a=b\\") == [Property("a", "b", 1)]
    assert parse("a=b\\\n") == [Property("a", "b", 1)]


def test_a_comment_behind_a_lone_backslash_is_a_comment() -> None:
    assert parse("\\\n# x\na=b") == [Property("a", "b", 3)]
    assert parse("a=b\\\n# x") == [Property("a", "b# x", 1)]


def test_repeated_names_are_all_kept() -> None:
    assert parse("a=1\na=2") == [Property("a", "1", 1), Property("a", "2", 2)]


@pytest.mark.parametrize("value", [r"\u12", r"\uzzzz", r"\u", r"\u 1234"])
def test_a_malformed_escape_is_a_fault_with_its_line(value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(f"a=b\nc={value}\n{value}=d")
    assert [fault.partition(":")[0] for fault in caught.value.faults] == ["line 2", "line 3"]
    assert "four hexadecimal digits" in caught.value.faults[0]


def test_a_malformed_line_does_not_hide_the_others() -> None:
    entries = list(scan("a=\\u1\nb=c"))
    assert isinstance(entries[0], Malformed)
    assert entries[1] == Property("b", "c", 2)


def test_empty_text_has_no_entries() -> None:
    assert parse("") == []
