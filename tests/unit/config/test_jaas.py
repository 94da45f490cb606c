from __future__ import annotations

import pytest

from heliograph.config.jaas import parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('username="alice" password="secret";', {"username": "alice", "password": "secret"}),
        ("username='alice' password='it\"s';", {"username": "alice", "password": 'it"s'}),
        ("username=alice\n  password=a-b_c.d$9;", {"username": "alice", "password": "a-b_c.d$9"}),
        ('a="x\\"y\\\\z" b="\\t\\n\\r\\f\\b\\a\\v" ;', {"a": 'x"y\\z', "b": "\t\n\r\f\b\a\v"}),
        ('a="\\101\\0602\\7";', {"a": "A02\x07"}),
        ('a="semi;colon = and # // no comment";', {"a": "semi;colon = and # // no comment"}),
        ('// first\n a = "1" /* in between */ b="2"; // last', {"a": "1", "b": "2"}),
        ('a="1" / a single slash comments too\n;', {"a": "1"}),
        ('a="";', {"a": ""}),
        ('a="open\n;', {"a": "open"}),
        ('a="1" a="2";', {"a": "2"}),
        ('pass="p\u00e4ss \u20ac";', {"pass": "p\u00e4ss \u20ac"}),
        (";", {}),
    ],
)
def test_options_are_read_as_java_reads_them(text: str, options: dict[str, str]) -> None:
    found = parse_jaas(f"{PLAIN} required {text}")
    assert (found.name, found.flag, found.options) == (PLAIN, "required", options)


@pytest.mark.parametrize("flag", ["required", "REQUISITE", "Sufficient", "optional"])
def test_the_flag_is_one_of_four_in_any_case(flag: str) -> None:
    assert parse_jaas(f"a.B {flag};").flag == flag.lower()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3cret", "required, requisite, sufficient or optional behind the login module"),
        ("a.B always s3cret=1;", "required, requisite, sufficient or optional"),
        ("a.B required s3cret;", "name=value for every option"),
        ("a.B required s3cret=;", "name=value for every option"),
        ("a.B required s3cret 1;", "name=value for every option"),
        ("a.B required password=123;", "the value in quotes"),
        ("a.B required =s3cret;", "name=value after the login module's flag"),
        ('a.B required password="s3cret"', "a semicolon at the end"),
        ("", "Exactly one is read, this has 0"),
        ('a.B required a="s3cret"; c.D required;', "Exactly one is read, this has 2"),
        ("= s3cret", "a login module, as in"),
        ("-s3cret required;", "a login module, as in"),
    ],
)
def test_what_is_malformed_is_explained_without_its_text(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected) as caught:
        parse_jaas(text)
    assert "s3cret" not in str(caught.value)


def test_a_module_shows_the_names_of_its_options_alone() -> None:
    found = parse_jaas('a.B required username="u" password="s3cret";')
    assert repr(found) == "LoginModule(a.B, required, ['password', 'username'])"
