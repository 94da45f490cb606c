"""Asking a person before something is done that is not undone easily."""

from __future__ import annotations

import sys

from heliograph.errors import ConfigError


def confirmed(question: str, yes: bool) -> bool:
    """Ask a person; `yes`: they have said so already. Who cannot be asked must say --yes."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError([f"{question} Nobody can be asked here: say --yes"])
    return ask(question)


def ask(question: str) -> bool:
    """Whether a person at the terminal says yes; the end of the input is a no."""
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
