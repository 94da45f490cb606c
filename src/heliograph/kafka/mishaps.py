"""An error that nobody foresaw, in the life of one lane: that lane parks, names it and tries again; no other lane notices.

Everything that is foreseen is a HeliographError and has its place in life.py and remedies.py. What arrives here is a fault of
ours, so its traceback goes to the log, once for each kind of it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from heliograph.kafka.lane import Failure
from heliograph.model.events import EventKind

if TYPE_CHECKING:
    from heliograph.kafka.slot import Slot

_log = logging.getLogger(__name__)
_WHAT_TO_DO = "the executor's log has the traceback, please report it; the lane is tried again"


async def live_through(slot: Slot, key: str) -> None:
    """The life of one lane of a slot, to its end, whatever it meets."""
    life = slot.lives[key]
    logged: set[str] = set()
    while not life.released:
        try:
            await life.live()
        except Exception as error:  # noqa: BLE001  the outermost loop of a lane: its neighbours must not end with it
            reason = f"an error that was not foreseen: {described(error)}"
            if reason not in logged:
                logged.add(reason)
                _log.error("%s: %s", key, reason, exc_info=error)
            await _set_down(slot, key, reason)
            await life.park(EventKind.PARKED, reason, _WHAT_TO_DO)


def described(error: BaseException) -> str:
    """The kind of an error, and what it says where it says anything.

    >>> described(KeyError("lane")), described(MemoryError())
    ("KeyError: 'lane'", 'MemoryError')
    """
    said = str(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


async def _set_down(slot: Slot, key: str, reason: str) -> None:
    """Nothing more is read or sent; answers that are still due are taken first (P4), as at any other failure."""
    run = slot.lives[key].run
    if run.start is not None and run.failure is None:
        run.fail(Failure(None, reason))
    await slot.take_out(run)
