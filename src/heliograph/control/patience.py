"""When to look again at what stands still: soon when there is more of it than before, then more and more seldom."""

from __future__ import annotations


class Patience:
    """In seconds; `first` is doubled at each look that changed nothing, up to `most`."""

    def __init__(self, first: float, most: float) -> None:
        self._first, self._most = first, most
        self._pause = first
        self._known: frozenset[str] = frozenset()
        self._next = 0.0

    def is_due(self, what: frozenset[str], now: float) -> bool:
        """Whether these, which stand still now, are looked at now; asked again and again."""
        if what - self._known:
            self._pause, self._next = self._first, now
        self._known = what
        if not what or now < self._next:
            return False
        self._next = now + self._pause
        self._pause = min(2 * self._pause, self._most)
        return True
