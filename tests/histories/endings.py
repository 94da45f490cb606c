"""How a run of the mirror ended, in words, and whether that is its own fault. Pure."""

from __future__ import annotations

import signal
from typing import NamedTuple

CARRIES = "lanes: "
"""What a run prints once its Spark has worked."""


class Ending(NamedTuple):
    text: str
    by_mirror: bool
    """Whether the mirror must not do that: then the history is not valid."""


def by_itself(status: int, printed: str, was_hit: bool) -> Ending:
    """A run that nobody told to end. One whose Spark is killed (`was_hit`) before it ever worked says why and ends, as it should."""
    last = "".join(printed.strip().splitlines()[-1:])
    if was_hit and CARRIES not in printed:
        return Ending(f"the mirror was hit while it started, and ended with {status}: {last}", False)
    return Ending(f"the mirror ended by itself with {status}: {last}", True)


def after_sigterm(status: int | None, printed: str) -> Ending | None:
    """None where there is nothing to say. `status` is None if it had to be killed."""
    if status is None:
        return Ending("the mirror did not end after SIGTERM and was killed", True)
    if status == -signal.SIGTERM and CARRIES not in printed:
        return Ending("SIGTERM met a mirror whose Python was still being loaded", False)
    return Ending(f"the mirror ended with {status} after SIGTERM", True) if status else None
