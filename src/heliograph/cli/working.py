"""Something moves in the terminal while a command works; a pipe or a log sees nothing of it."""

from __future__ import annotations

from contextlib import AbstractContextManager

from rich.console import Console


def working(what: str) -> AbstractContextManager[object]:
    """On the error stream, so that what is printed can be piped."""
    return Console(stderr=True).status(f"{what} …")
