"""Waiting for something to become true, with a sentence for when it does not."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], what: str, timeout_seconds: float = 120.0, every: float = 0.05) -> None:
    """Return as soon as `condition()` holds; fail with `what` when it has not after the timeout."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"After {timeout_seconds:.0f} s still not true: {what}")
        time.sleep(every)
