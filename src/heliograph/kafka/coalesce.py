"""Questions that many lanes ask at the same moment, asked once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_GATHER_SECONDS = 0.002


class Coalescer(Generic[K, V]):
    """Collects keys for two milliseconds and asks for all of them in one call; no answer is kept."""

    def __init__(self, ask: Callable[[list[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._ask = ask
        self._waiting: dict[K, asyncio.Future[V | None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def get(self, key: K) -> V | None:
        """The answer for a key, None if the answer leaves it out; raises what asking raised."""
        return await self.soon(key)

    def soon(self, key: K) -> asyncio.Future[V | None]:
        """The same, to be awaited together with others, without a task for each."""
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = asyncio.get_running_loop().create_future()
            if len(self._waiting) == 1:
                task = asyncio.create_task(self._round())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        return asyncio.shield(waiting)

    async def _round(self) -> None:
        await asyncio.sleep(_GATHER_SECONDS)
        waiting, self._waiting = self._waiting, {}
        try:
            answers = await self._ask(list(waiting))
        except Exception as error:  # noqa: BLE001  handed on to everybody who asked
            for future in waiting.values():
                if not future.done():
                    future.set_exception(error)
                    future.exception()
            return
        for key, future in waiting.items():
            if not future.done():
                future.set_result(answers.get(key))
