"""The expectations were checked against java.util.regex.Pattern of Java 17."""

from __future__ import annotations

import re

import pytest

from heliograph.replication.java_regex import PatternError, translate

SAME = [
    (r"\Qa.b\E.*", "a.bc", "axbc"),
    (r"\Qa.b", "a.b", "axb"),
    (r"\p{Alpha}+", "abC", "ab1"),
    (r"[\p{Lower}\p{Digit}]+", "a1", "A1"),
    (r"\P{Upper}+", "a.1", "aB"),
    (r"(?i)\P{Lower}+", "1.", "A"),
    (r"\p{Punct}", "_", "a"),
    (r"(?<n>a|b)-\k<n>", "a-a", "a-b"),
    (r"(a|b)\1", "aa", "ab"),
    (r"orders\z", "orders", "orders\n"),
    (r"\Aorders\Z", "orders", "order"),
    (r"a\b.b", "a.b", "axb"),
    (r"a\Bb", "ab", "a.b"),
    (r"(?i)orders", "ORDERS", "order"),
    (r"a(?i)b|c", "aB", "A"),
    (r"a(?i)b|c", "C", "Ab"),
    (r"(a(?i)b|c)d", "aBd", "aBD"),
    (r"(?i:a)b", "Ab", "AB"),
    (r"(?i)a(?-i)b", "Ab", "aB"),
    (r"(?s-i:a)b", "ab", "Ab"),
    (r"a++b", "aab", "b"),
    (r"(?>a|ab)c", "ac", "abc"),
    (r"(?:a|b){2,3}", "aba", "a"),
    (r"(?=a)\w+", "ab", "ba"),
    (r"(?!a)\w+", "ba", "ab"),
    (r"a(?<=a)b", "ab", "b"),
    (r"a(?<!b)b", "ab", "bb"),
    (r"\x61\u0062\x{2e}\0141", "ab.a", "ab-a"),
    (r"\d\w\.\-\_", "1a.-_", "aa.-_"),
    (r"\e", "\x1b", "e"),
    (r"[+--]", ",", "a"),
    (r"[a-b-d]", "-", "c"),
    (r"[-a]", "-", "b"),
    (r"[a-]", "-", "b"),
    (r"[\d-a]", "-", "b"),
    (r"[^a&b]", "c", "&"),
    (r"[a||b~~c]", "|", "d"),
    (r"[\Q^-]\E]", "]", "a"),
    (r"[\x61-\x63]", "b", "d"),
    (r"}", "}", "{"),
    (r"[a\]]", "]", "b"),
]


@pytest.mark.parametrize(("pattern", "yes", "no"), SAME)
def test_a_pattern_matches_what_java_matches(pattern: str, yes: str, no: str) -> None:
    compiled = re.compile(translate(pattern), re.ASCII)
    assert compiled.fullmatch(yes)
    assert not compiled.fullmatch(no)


REFUSED = [
    ("[a-z&&[^b]]", "intersection"),
    ("[a[bc]]", "inside another"),
    ("[]a]", "begins a character class"),
    ("[^]a]", "begins a character class"),
    ("[ab", "not closed"),
    (r"[\P{Lower}]", "inside a character class"),
    ("(a", "a group is not closed"),
    ("a)", "closes no group"),
    ("a{b}", "begins no count"),
    ("a{,2}", "begins no count"),
    (r"\p{IsGreek}", "supported are Lower"),
    (r"\pL", "supported are Lower"),
    (r"(?x)a", "the flag x"),
    (r"(?u:a)", "the flag u"),
    (r"(?)a", "names no flag"),
    (r"(?P<n>a)", "Java has no group"),
    (r"(?<n-m>a)", "a group's name"),
    (r"(?<1>a)", "a group's name"),
    (r"\k{n}", "must be followed by a group's name"),
    (r"\h", "is not supported"),
    ("a\\", "is not supported"),
    (r"\x{110000}", "is no character"),
]


@pytest.mark.parametrize(("pattern", "why"), REFUSED)
def test_what_has_no_counterpart_is_refused_with_its_reason(pattern: str, why: str) -> None:
    with pytest.raises(PatternError, match=re.escape(why)):
        translate(pattern)
