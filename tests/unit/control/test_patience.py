"""What stands still is looked at soon, then more and more seldom, and soon again when more of it does."""

from __future__ import annotations

from heliograph.control.patience import Patience

A, B = frozenset({"a"}), frozenset({"a", "b"})


def looks(patience: Patience, what: frozenset[str], first: int, last: int) -> list[int]:
    return [second for second in range(first, last) if patience.is_due(what, float(second))]


def test_the_pauses_between_looks_double_up_to_a_limit() -> None:
    assert looks(Patience(5, 60), A, 100, 400) == [100, 105, 115, 135, 175, 235, 295, 355]


def test_something_new_is_looked_at_at_once_and_what_is_gone_is_not() -> None:
    patience = Patience(5, 60)
    assert looks(patience, A, 0, 20) == [0, 5, 15]
    assert looks(patience, B, 20, 30) == [20, 25]
    assert looks(patience, A, 30, 40) == [35]
    assert looks(patience, frozenset(), 40, 400) == []
    assert looks(patience, A, 400, 410) == [400, 405]
