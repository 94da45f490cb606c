"""What the server knows of the run: the driver's views merged, rates over the last seconds, the last hour; and a way to ask.

Nothing here waits for a broker. When the driver is silent the scene stays as it was and says how old it is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from heliograph.control.board import LaneTotals
from heliograph.errors import Refused
from heliograph.rest.history import History
from heliograph.rest.rates import Rates
from heliograph.rest.waits import Waits
from heliograph.spark.line import Line

_EVENTS_KEPT = 1000
_ASK_SECONDS = 20.0
_TELL_SECONDS = 90.0
"""Longer than a change can take: all that it waits for has its own end (control/flow_set.py, control/state_topic.py)."""
_BUSY = 503

Row = dict[str, Any]
_UNKNOWN: Row = {
    "reason": "",
    "since_ms": 0,
    "position": -1,
    "source_end": -1,
    "high_watermark": -1,
    "log_start": -1,
    "target_next": -1,
    "generation": -1,
    "producer_id": -1,
    "producer_epoch": -1,
    "guard": "",
    "finished": False,
    "lag_ms": 0,
}
_NOTHING_CARRIED: Row = asdict(LaneTotals())


class Scene:
    """Filled by `merge`; asked by the routes."""

    def __init__(self) -> None:
        self.flows: dict[str, Row] = {}
        self.lanes: dict[str, Row] = {}
        self.events: deque[Row] = deque(maxlen=_EVENTS_KEPT)
        self.parts: dict[str, Row] = {}
        self.rates = Rates()
        self.waits = Waits()
        self.history = History()
        self.merged_at = 0.0
        """On the loop's clock; 0: nothing was shown yet."""
        self.version = 0
        """Grows with every merge."""
        self.listens_on: list[str] = []
        self._line: Line | None = None
        self._waiting: dict[int, asyncio.Future[Row]] = {}
        self._number = 0
        self._tick = asyncio.Event()

    @property
    def run(self) -> Row:
        return self.part("run")

    def part(self, name: str) -> Row:
        """What the driver shows under a name; empty if it shows nothing so."""
        return self.parts.get(name, {})

    @property
    def slots(self) -> Row:
        return self.part("slots")

    def holds(self, flow: str) -> list[Row]:
        return [hold for hold in self.part("holds").get("holds", []) if hold["flow"] == flow]

    # -- merging ----------------------------------------------------------------------------------------------------

    def merge(self, view: Mapping[str, Any], now: float) -> None:
        self.parts.update(view.get("parts", {}))
        for name, flow in view.get("flows", {}).items():
            if flow is None:
                self.flows.pop(name, None)
            else:
                self.flows[name] = flow
        for news in view.get("lanes", ()):
            row = self._whole(news)
            self.lanes[row["lane"]] = row
            self.rates.take(row["lane"], row["totals"], now)
            self.waits.take(row["lane"], row.get("waiting_since_ms", 0))
        for key in view.get("gone", ()):
            self.lanes.pop(key, None)
            self.rates.forget(key)
            self.waits.forget(key)
        self.events.extend(view.get("events", ()))
        self.rates.write(self.lanes, now)
        self.waits.write(self.lanes, self.run.get("time_ms", 0))
        self.merged_at = now
        self.version += 1
        if self.history.is_due(now):
            self.history.take(self, now)
        self._tick.set()
        self._tick = asyncio.Event()

    def _whole(self, news: Row) -> Row:
        """With every field that a lane has, also where its task said nothing yet."""
        before = self.lanes.get(news["lane"], {})
        rates = {name: before.get(name, 0.0) for name in ("records_per_s", "bytes_per_s")}
        return {**_UNKNOWN, **rates, **news, "totals": {**_NOTHING_CARRIED, **news.get("totals", {})}}

    def forget(self) -> None:
        """The driver's next view is whole."""
        self.flows.clear()
        self.lanes.clear()
        self.events.clear()

    async def next_tick(self) -> None:
        """Until the next view was merged."""
        await self._tick.wait()

    def lanes_of(self, flow: str) -> list[Row]:
        return [row for row in self.lanes.values() if row["flow"] == flow]

    # -- asking -----------------------------------------------------------------------------------------------------

    def connect(self, line: Line) -> None:
        self._line = line

    def lost(self) -> None:
        self._line = None
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(Refused(_BUSY, "the run ended"))
        self._waiting.clear()

    async def ask(self, what: str, **args: Any) -> Row:
        """What the driver answers; Refused with its reason."""
        return await self._answer(what, args, _ASK_SECONDS, "")

    async def tell(self, what: str, **args: Any) -> Row:
        """As `ask`, of a change: the answer is waited for, because only it says whether the change was made."""
        return await self._answer(what, args, _TELL_SECONDS, ": look whether the change was made")

    async def _answer(self, what: str, args: Row, seconds: float, advice: str) -> Row:
        if self._line is None:
            raise Refused(_BUSY, "the run does not answer")
        self._number += 1
        number = self._number
        waiting: asyncio.Future[Row] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        self._line.send({"kind": "ask", "id": number, "what": what, "args": args})
        try:
            async with asyncio.timeout(seconds):
                return await waiting
        except TimeoutError as error:
            raise Refused(504, f"the run did not answer within {seconds:g} s{advice}") from error
        finally:
            self._waiting.pop(number, None)

    def answered(self, message: Mapping[str, Any]) -> None:
        waiting = self._waiting.get(message["id"])
        if waiting is None or waiting.done():
            return
        if "body" in message:
            waiting.set_result(dict(message["body"]))
        else:
            waiting.set_exception(Refused(message["status"], message["message"]))
