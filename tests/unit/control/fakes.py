"""A line that only remembers what was said on it, and a clock that is turned by hand."""

from __future__ import annotations

import asyncio
from typing import Any

from heliograph.spark import line as words


class FakeLine:
    """The driver's end of a task's line."""

    def __init__(self) -> None:
        self.sent: list[words.Message] = []
        self._incoming: asyncio.Queue[words.Message | None] = asyncio.Queue()

    def send(self, message: words.Message) -> None:
        self.sent.append(message)

    async def receive(self) -> words.Message | None:
        return await self._incoming.get()

    def hears(self, message: words.Message | None) -> None:
        self._incoming.put_nowait(message)

    def said(self, kind: str) -> list[words.Message]:
        return [message for message in self.sent if message["kind"] == kind]


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.suspended = 0.0
        """Seconds that the machine slept: only one of the clocks counts them."""

    def __call__(self) -> float:
        return self.now

    def now_ms(self) -> int:
        return int(self.now * 1000)

    def monotonic(self) -> float:
        return self.now

    def awake_or_not(self) -> float:
        return self.now + self.suspended


def report_row(lane: str, **changes: Any) -> dict[str, Any]:
    """A lane's row as a task reports it."""
    counts = {
        "records": 0,
        "bytes": 0,
        "raw_batches": 0,
        "rebuilt_batches": 0,
        "refused": 0,
        "attaches": 1,
        "foreign": 0,
        "skipped": {},
        "dropped": {},
        "rebuilt": {},
    }
    row = {
        "lane": lane,
        "state": "following",
        "reason": "",
        "since_ms": 0,
        "position": 0,
        "source_end": 0,
        "target_next": 0,
        "finished": False,
        "counts": counts,
    }
    counts.update(changes.pop("counts", {}))
    return {**row, **changes}


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that jumps over every wait: hours pass at once, and in order."""

    def __init__(self) -> None:
        self._now = 5000.0
        super().__init__()
        selector: Any = self._selector  # type: ignore[attr-defined]  # every loop of this family has one
        select = selector.select

        def jump(timeout: float | None) -> Any:
            if timeout is None:
                raise AssertionError("everybody waits and nothing is due")
            self._now += timeout
            return select(0)

        selector.select = jump

    def time(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now
