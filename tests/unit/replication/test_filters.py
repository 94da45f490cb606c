from __future__ import annotations

import pytest

from heliograph.errors import ConfigError
from heliograph.replication.filters import NameFilter, compile_java, plain_names, split_list


def test_a_list_is_split_on_commas_and_trimmed() -> None:
    assert split_list(" a , b.*,, c ") == ("a", "b.*", "c")
    assert split_list("") == ()


def test_the_names_of_a_list_are_told_from_its_expressions() -> None:
    assert plain_names(("orders", "pay-.*", "my_app.v1", "[ab]")) == ["orders", "my_app.v1"]


def test_an_empty_list_matches_nothing() -> None:
    assert not NameFilter(()).accepts("orders")
    assert not NameFilter(()).accepts("")


def test_a_pattern_must_match_the_whole_name() -> None:
    names = NameFilter(("orders", "pay-.*"))
    assert names.accepts("orders")
    assert names.accepts("pay-in")
    assert not names.accepts("orders2")
    assert not names.accepts("my-orders")


def test_exclude_wins_over_include() -> None:
    names = NameFilter((".*",), (r".*\.replica", "__.*"))
    assert names.accepts("orders")
    assert not names.accepts("orders.replica")
    assert not names.accepts("__consumer_offsets")
    assert names.includes("__consumer_offsets")
    assert names.excludes("__consumer_offsets")


def test_a_flag_holds_for_the_elements_behind_it_as_in_mirrormaker_2() -> None:
    names = NameFilter(("a", "(?i)b", "c"))
    assert names.accepts("B")
    assert names.accepts("C")
    assert not names.accepts("A")


def test_digits_and_words_are_ascii_as_in_java() -> None:
    assert not NameFilter((r"\d",)).accepts("\u0663")


def test_every_bad_element_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        compile_java(("a(", "fine", "[a&&b]", "*"))
    assert caught.value.faults == (
        "bad regular expression a(: a group is not closed",
        "bad regular expression [a&&b]: an intersection of character classes (&&) is not supported",
        "bad regular expression *: nothing to repeat",
    )


def test_elements_that_only_clash_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="redefinition of group name"):
        compile_java(("(?<n>a)", "(?<n>b)"))
