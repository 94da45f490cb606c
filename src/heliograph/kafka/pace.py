"""How many bytes to ask for, or to send, at a time: as much as a line carries in about a second, as far as it showed.

Begins small and doubles, so that a line that turns out slow is never asked for minutes at once; a fast one is at the most after
a few answers. Does no I/O.
"""

from __future__ import annotations

_FIRST = 1 << 20
_AT_REST = 256 << 10
_LEAST = 32 << 10
_MOST = 64 << 20
_SLOW_SECONDS = 2.0
_QUICK_SECONDS = 1.0


class Pace:
    """Of one connection and direction."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = _FIRST

    def took(self, size: int, seconds: float) -> None:
        """So many bytes were on the line for so long."""
        if seconds > _SLOW_SECONDS:
            self.size = max(_LEAST, min(self.size, int(size / seconds)))
        elif size * 2 > self.size and seconds < _QUICK_SECONDS:
            self.size = min(_MOST, self.size * 2)

    def rest(self, size: int) -> None:
        """An answer brought so little: many readers that only wait must not keep memory for what does not come.

        Not for who sends: a small request says that there was little to send, and the next one may have much.
        """
        if size * 8 < self.size > _AT_REST:
            self.size = max(_AT_REST, self.size // 2)
