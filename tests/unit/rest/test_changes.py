"""What changed between two views: put together again, it is the newer one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from heliograph.rest.changes import by_key, changed_fields, changed_rows, newer

FIELDS = st.fixed_dictionaries({name: st.one_of(st.none(), st.integers(0, 3)) for name in "ab"})
ROWS = st.dictionaries(st.sampled_from("xyz"), FIELDS)


@given(ROWS, ROWS)
def test_old_rows_with_what_changed_are_the_new_rows(before: dict[str, Any], now: dict[str, Any]) -> None:
    changes = changed_rows(before, now)
    assert {key: {**before.get(key, {}), **changes.get(key, {})} for key in now} == now


@given(ROWS)
def test_rows_that_are_the_same_are_not_told(rows: dict[str, Any]) -> None:
    assert changed_rows(rows, {key: dict(row) for key, row in rows.items()}) == {}


def test_a_field_that_becomes_none_has_changed() -> None:
    assert changed_fields({"a": 1, "b": 2}, {"a": None, "b": 2}) == {"a": None}
    assert changed_fields({}, {"a": None}) == {"a": None}


def test_rows_are_found_by_the_name_of_their_key() -> None:
    assert by_key([{"lane": "x", "a": 1}], "lane") == {"x": {"lane": "x", "a": 1}}


def test_events_after_the_last_one_seen_are_news() -> None:
    events = [{"n": number} for number in range(5)]
    assert newer(events, events[2], 10) == events[3:]
    assert newer(events, events[-1], 10) == []


def test_of_events_whose_last_one_is_forgotten_the_newest_are_news() -> None:
    events = [{"n": number} for number in range(5)]
    assert newer(events, {"n": 2}, 3) == events[2:]
    assert newer(events, None, 10) == events
    assert newer([], None, 10) == []
