"""metrics.lanes: what it may be."""

from __future__ import annotations

import pytest

from heliograph.metrics.picture import ALL_LANES, lanes_told


@pytest.mark.parametrize(("text", "lanes"), [("all", ALL_LANES), ("none", 0), ("top:1", 1), ("top:100000", 100_000)])
def test_how_many_lanes_are_told_of(text: str, lanes: int) -> None:
    assert lanes_told(text) == lanes


@pytest.mark.parametrize("text", ["", "top", "top:0", "top:-1", "top:100001", "top: 5", "20", "ALL", "top:1e3"])
def test_anything_else_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match="all, none or top:N"):
        lanes_told(text)
