"""Shares of a limit: never more than it together, none of them nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heliograph.replication.throttle import Use, shares

USES = st.dictionaries(st.integers(0, 50), st.builds(Use, st.floats(0, 1e12), st.booleans()), min_size=1, max_size=20)


@given(st.integers(1, 10**12), USES)
def test_shares_are_the_limit_at_most_and_nobody_starves(limit: int, uses: dict[int, Use]) -> None:
    given_out = shares(limit, uses)
    assert given_out.keys() == uses.keys()
    assert sum(given_out.values()) <= limit * (1 + 1e-9)
    assert all(share > 0 for share in given_out.values())


@given(st.integers(1, 10**12), USES)
def test_who_is_held_back_gets_no_less_than_a_fair_part(limit: int, uses: dict[int, Use]) -> None:
    given_out = shares(limit, uses)
    fair = limit / len(uses)
    assert all(given_out[who] >= fair * (1 - 1e-9) for who, use in uses.items() if use.wants_more)
