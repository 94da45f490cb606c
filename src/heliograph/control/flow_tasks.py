"""The tasks of each flow of a run: begun and ended together, while others go on. One that fails is never unnoticed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

Work = Iterable[Coroutine[Any, Any, Any]]


class FlowTasks:
    """`begin` and `end` by the name of a flow and of a part of it; `supervise` ends with the first failure."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, str], list[asyncio.Task[Any]]] = {}
        self._changed = asyncio.Event()

    def begin(self, flow: str, part: str, work: Work) -> None:
        self._tasks[(flow, part)] = [asyncio.create_task(one) for one in work]
        self._changed.set()

    async def end(self, flow: str, part: str | None = None) -> None:
        """One part of a flow, or all of it."""
        keys = [key for key in self._tasks if key[0] == flow and part in (None, key[1])]
        await _cancel([task for key in keys for task in self._tasks.pop(key)])

    async def end_all(self) -> None:
        tasks = [task for several in self._tasks.values() for task in several]
        self._tasks.clear()
        await _cancel(tasks)

    async def supervise(self) -> None:
        """For ever, or until a task fails, with its error."""
        while True:
            self._changed.clear()
            tasks = {task for several in self._tasks.values() for task in several}
            for task in tasks:
                if task.done() and not task.cancelled():
                    task.result()
            changed = asyncio.create_task(self._changed.wait())
            try:
                running = {task for task in tasks if not task.done()}
                await asyncio.wait({changed, *running}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
