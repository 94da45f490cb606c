"""When a flow is looked at again, and how much of it: all of it, or the topics of lanes that stand still."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from heliograph.control.patience import Patience

_LOOK_AGAIN_SECONDS = 5.0
_LOOK_AT_LEAST_SECONDS = 60.0


class Looks:
    """What was asked for since the last look. `now` is a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._clock = now
        self._patience = Patience(_LOOK_AGAIN_SECONDS, _LOOK_AT_LEAST_SECONDS)
        self._soon = asyncio.Event()
        self._now = asyncio.Event()
        self._topics: set[str] = set()
        self._is_whole, self._was_whole = False, True
        self._since = 0.0

    def now(self) -> None:
        """At all of it, at once."""
        self._is_whole = True
        self._now.set()

    def soon(self) -> None:
        """At all of it, a few seconds after the last look at the earliest."""
        self._is_whole = True
        self._soon.set()

    def whole(self) -> None:
        """The next look, whenever it comes, is at all of it."""
        self._is_whole = True

    def at_lanes(self, keys: frozenset[str]) -> None:
        """At the topics of these lanes, which stand still: soon when there are more of them, then more and more seldom."""
        if self._patience.is_due(keys, self._clock()):
            self._topics |= {key.rsplit("/", 2)[1] for key in keys}
            self._soon.set()

    async def wait(self, seconds: float) -> frozenset[str] | None:
        """Until it is time for a look, at these topics; None: at all of it, which is due so many seconds after the last such."""
        if self._was_whole:
            self._since = self._clock()
        left = max(0.0, self._since + seconds - self._clock())
        early = min(left, _LOOK_AGAIN_SECONDS)
        is_asked = await _is_set(self._now, early) or await self._is_asked(left - early)
        topics = None if self._is_whole or not is_asked else frozenset(self._topics)
        self._topics.clear()
        self._soon.clear()
        self._now.clear()
        self._is_whole, self._was_whole = False, topics is None
        return topics

    async def _is_asked(self, seconds: float) -> bool:
        waits = [asyncio.create_task(_is_set(one, seconds)) for one in (self._soon, self._now)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return self._soon.is_set() or self._now.is_set()


async def _is_set(event: asyncio.Event, within_s: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, within_s)):
            await event.wait()
    return event.is_set()
