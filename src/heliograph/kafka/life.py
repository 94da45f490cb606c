"""The life of one lane in one task: permission, attach, follow, and what to do when it stops.

States and their order:  waiting -> attaching -> following -> (draining -> done) | parked -> attaching …
Every way out of `following` goes through "take the answers still due" (P4); every way back in goes through attach.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from heliograph.errors import (
    AccessRefused,
    BrokerRefused,
    ClusterUnreachable,
    ConnectionLost,
    HeliographError,
    LaneParked,
)
from heliograph.kafka.attach import NewerGeneration, NotCountable, PositionLost
from heliograph.kafka.claims import open_next, transactional_id
from heliograph.kafka.client import EARLIEST, LATEST
from heliograph.kafka.lane import Failure, LaneRun, Start
from heliograph.model.lanes import Guard, Identity, LaneState, LedgerEntry
from heliograph.replication.reactions import Action, react
from heliograph.wire.error_codes import describe

if TYPE_CHECKING:
    from heliograph.kafka.slot import FlowRules, Slot

_SOON_SECONDS = 0.05
_LOOK_AGAIN_SECONDS = 5.0
_CALM_SECONDS = 10.0
_YIELD_MAX_SECONDS = 10.0
_OUT_OF_ORDER = 45
_TOO_LARGE = (10, 18)
_SMALLEST_PIECE = 1024
_UNREACHABLE_MAX_MS = 4_000


class LaneLife:
    """Runs one lane; the slot owns it and may ask it to leave at any time."""

    def __init__(self, slot: Slot, run: LaneRun, rules: FlowRules) -> None:
        self._slot = slot
        self.run = run
        self._rules = rules
        self._allowed = asyncio.Event()
        self._alone = asyncio.Event()
        self._held = False
        self._leaving = asyncio.Event()
        self._handed: LedgerEntry | None = None
        self._tries: dict[int | None, int] = {}
        self._stuck_at: tuple[int | None, int] = (None, -1)
        self._backoff_ms = slot.plan.settings.retry_ms
        self._conflicts = 0
        self._opened_own = False
        self._shrunk = (-1, 0)
        self._followed_since = 0.0
        self.guard = Guard.BROKER
        self.finished = False
        self.released = False
        self.notes: list[str] = []
        """What a person must know; the task's report takes them to the driver."""

    # -- told from outside ------------------------------------------------------------------------------------------

    def allow(self, held: bool, alone: bool, entry: LedgerEntry | None) -> None:
        if entry is not None:
            self._handed = entry
        self._held = self._held or held
        if alone:
            self._alone.set()
        self._allowed.set()

    def leave(self) -> None:
        """Drain and end."""
        self._leaving.set()
        if self.run.state is LaneState.FOLLOWING:
            self.run.become(LaneState.DRAINING, "", _now_ms())
            self.run.drain()

    def finish(self) -> None:
        """The lane reached its `until`."""
        self.finished = True
        self.leave()

    # -- the life ---------------------------------------------------------------------------------------------------

    async def live(self) -> None:
        if await self._or_leaving(self._allowed.wait()):
            while not self._leaving.is_set():
                start = await self._attach()
                if start is not None and not self._leaving.is_set():
                    await self._follow(start)
        await self._end()

    async def _attach(self) -> Start | None:
        run = self.run
        run.become(LaneState.ATTACHING, "", _now_ms())
        try:
            entry = await self._entry()
            attacher = self._slot.attacher(self._rules)
            start = await attacher.attach(run.lane, entry, self._rules.read_committed, _now_ms())
            if not await self._may_carry(start):
                return None
            return start
        except PositionLost as error:
            await self._lose_position(error)
        except (NewerGeneration, NotCountable) as error:
            await self._pause(LaneState.WAITING, str(error), soon=self._count(None) <= 3)
        except (AccessRefused, LaneParked) as error:
            await self._pause(LaneState.PARKED, str(error))
        except BrokerRefused as error:
            await self._pause(LaneState.WAITING, f"{error.what}: {describe(error.code)}")
        except (ClusterUnreachable, ConnectionLost) as error:
            await self._pause(LaneState.WAITING, str(error))
        except TimeoutError:
            await self._pause(LaneState.WAITING, "the ledger did not answer in time")
        except HeliographError as error:
            await self._pause(LaneState.PARKED, str(error))
        return None

    async def _entry(self) -> LedgerEntry:
        entry = await self._find_entry()
        if (entry.rule.isolation == "read_committed") != self._rules.read_committed:
            raise LaneParked(
                f"generation {entry.generation} counts by {entry.rule.isolation}, this flow by another rule (P7)"
            )
        return entry

    async def _find_entry(self) -> LedgerEntry:
        """The position to attach from: handed over, our own last one, or the ledger's; on compacted sources a new generation."""
        run = self.run
        if self._handed is not None:
            # Exact, and its writer has left: even a compacted lane goes on in the same generation.
            entry, self._handed = self._handed, None
            return entry
        if run.lane.compacted:
            return await self._own_generation()
        known = run.acked
        ledger = self._slot.warm.ledger(self._slot.plan.clusters[self._rules.target])
        latest = (await ledger.refresh()).latest(run.lane.id)
        if latest is None:
            raise LaneParked("the ledger has no entry of this lane")
        if known is not None and known.generation >= latest.generation and known.source_next >= latest.source_next:
            return known
        return latest

    async def _own_generation(self) -> LedgerEntry:
        """P8.2: on a compacted source every attempt writes under an epoch of its own, from the ledger's position."""
        run = self.run
        ledger = self._slot.warm.ledger(self._slot.plan.clusters[self._rules.target])
        latest = (await ledger.refresh()).latest(run.lane.id)
        if latest is None:
            raise LaneParked("the ledger has no entry of this lane")
        base = latest
        known = run.acked
        if known is not None and known.generation >= latest.generation and known.source_next >= latest.source_next:
            base = known
        first = run.counts.attaches == 0 and not self._opened_own
        identity = await self._slot.identity(self._rules) if first else await self._fresh_identity()
        self._opened_own = True
        # Numbered after the latest, wherever it starts: a position of our own may be further on than the ledger's.
        base = replace(base, generation=latest.generation)
        won = await open_next(ledger, base, identity, base.source_next, _now_ms(), self._slot.attempt)
        if won.attempt != self._slot.attempt:
            raise ConnectionLost("another attempt opened this generation first")
        return won

    async def _fresh_identity(self) -> Identity:
        client = self._slot.warm.client(self._slot.plan.clusters[self._rules.target])
        return await client.new_identity(transactional_id(self._rules.flow))

    async def _may_carry(self, start: Start) -> bool:
        """P5: race only where the broker guards; else wait until the last attempt is known dead, then attach anew."""
        run = self.run
        if start.guarded and not run.lane.compacted:
            self.guard = Guard.BROKER
            return True
        if start.guarded and self._held:
            # The fresh epoch fences the last attempt with the first append (P8.3); another run would fence us in turn.
            self.guard = Guard.FENCED
            return True
        self.guard = Guard.EXCLUSIVE
        if self._alone.is_set():
            return True
        cause = "the source is compacted" if run.lane.compacted else "the target keeps no memory of this lane"
        why = f"{cause}: waiting until the last attempt is known dead"
        run.become(LaneState.WAITING, why, _now_ms())
        try:
            async with asyncio.timeout(_LOOK_AGAIN_SECONDS):
                await self._or_leaving(self._alone.wait())
        except TimeoutError:
            pass  # another attempt may have written fresh records meanwhile: attach tells
        return False

    async def _follow(self, start: Start) -> None:
        run = self.run
        run.begin(start, _now_ms())
        self._followed_since = time.monotonic()
        reader = self._slot.reader(self._rules, start.source_node)
        writer = self._slot.writer(self._rules, start.target_node)
        writer.add(run)
        reader.add(run)
        await run.stopped.wait()
        reader.remove(run)
        if run.draining:
            writer.wake()
        await run.idle.wait()
        writer.remove(run)
        if run.failure is not None:
            await self._react(run.failure)

    async def _end(self) -> None:
        """The position goes to the successor over the line at once, and to the ledger with all others'."""
        run = self.run
        if run.state is not LaneState.PARKED:
            run.become(LaneState.DONE, "caught up" if self.finished else "released", _now_ms())
        self.released = True

    # -- reactions --------------------------------------------------------------------------------------------------

    async def _react(self, failure: Failure) -> None:
        if self._leaving.is_set():
            return
        progress = self.run.acked.source_next if self.run.acked is not None else -1
        if self._stuck_at != (failure.code, progress):
            self._stuck_at = (failure.code, progress)
            self._tries.clear()
        if progress >= 0 and not self._tries:
            self._backoff_ms = self._slot.plan.settings.retry_ms
        match failure.finding:
            case "":
                await self._react_to_code(failure)
            case "source":
                await self._pause(LaneState.WAITING, failure.message, soon=self._count(None) <= 3)
            case "source_range":
                await self._react_to_range(failure)
            case "corrupt":
                await self._again_or_park(failure, 1)
            case _:
                await self._pause(LaneState.PARKED, failure.message)

    async def _react_to_code(self, failure: Failure) -> None:
        reaction = react(failure.code)
        tries = self._count(failure.code)
        if failure.code == _OUT_OF_ORDER and tries <= reaction.tries:
            await self._yield_to_other(failure)
            return
        if failure.code is None and self.guard is Guard.EXCLUSIVE:
            # A request outlives its connection, and nothing but time keeps the target from taking it twice (5f).
            await self._pause(LaneState.WAITING, failure.message, seconds=self._slot.plan.settings.takeover_wait_s)
            return
        if failure.code in _TOO_LARGE and self._can_shrink():
            self.run.max_bytes = self.run.refused_bytes // 2  # its config changed since we read it: smaller pieces
            tries = 1
        if bool(reaction.tries) and tries > reaction.tries:
            await self._pause(LaneState.PARKED, failure.message)
        else:
            await self._act(reaction.action, failure, tries)

    def _can_shrink(self) -> bool:
        """Smaller pieces may help, unless this very size was refused here before: then it is one record."""
        refused = (self.run.refused_at, self.run.refused_bytes)
        again, self._shrunk = refused == self._shrunk, refused
        return not again and self.run.refused_bytes // 2 >= _SMALLEST_PIECE

    async def _act(self, action: Action, failure: Failure, tries: int) -> None:
        match action:
            case Action.PARK | Action.TOPIC_CHANGED:
                await self._pause(LaneState.PARKED, failure.message)
            case Action.CHECK_LEDGER:
                await self._check_ledger(failure)
            case Action.ATTACH | Action.NO_STATE:
                await self._pause(LaneState.WAITING, failure.message, soon=tries <= 3)
            case Action.BACKOFF_ATTACH:
                await self._pause(LaneState.WAITING, failure.message)
            case Action.REFETCH_ONCE:
                self.notes.append(f"{failure.message}: fetching the batch again")
            case Action.RECORD_PATH:
                self.run.record_path_once.add(self.run.refused_at)
                self.notes.append(f"{failure.message}: trying the record path")

    async def _check_ledger(self, failure: Failure) -> None:
        """E47: with a later generation in the ledger this attempt is a zombie, and leaves (P4)."""
        run = self.run
        ledger = self._slot.warm.ledger(self._slot.plan.clusters[self._rules.target])
        try:
            latest = (await ledger.refresh()).latest(run.lane.id)
        except HeliographError as error:
            await self._pause(LaneState.WAITING, str(error))
            return
        if latest is not None and run.acked is not None and latest.generation > run.acked.generation:
            self.notes.append(f"fenced by generation {latest.generation}: another attempt carries this lane")
            self.leave()
            return
        await self._pause(LaneState.PARKED, f"identity conflict: {failure.message}")

    async def _yield_to_other(self, failure: Failure) -> None:
        """P5.1: somebody else's records came first. Attach at once; if it happens again, let the other one carry the lane."""
        calm = time.monotonic() - self._followed_since > _CALM_SECONDS
        self._conflicts = 1 if calm else self._conflicts + 1
        if self._conflicts == 1:
            await self._pause(LaneState.WAITING, failure.message, seconds=_SOON_SECONDS)
            return
        seconds = min(0.25 * 2**self._conflicts, _YIELD_MAX_SECONDS)
        await self._pause(LaneState.WAITING, "another attempt carries this lane and is ahead", seconds=seconds)

    async def _react_to_range(self, failure: Failure) -> None:
        """P9: retention overtook the lane. on.data.loss = continue: a new generation at the log's start, and say what is lost."""
        run = self.run
        start = run.start
        if start is None:
            return
        client = self._slot.warm.client(self._slot.plan.clusters[self._rules.source])
        name = (run.lane.id.topic, run.lane.id.partition)
        try:
            begins = (await client.offsets(start.source_node, [name], EARLIEST)).get(name)
            ends = (await client.offsets(start.source_node, [name], LATEST)).get(name)
            position = self._position()
            if begins is None or ends is None:
                await self._pause(LaneState.WAITING, failure.message)
            elif position < begins:
                await self._skip_loss(run.acked or start.entry, begins, str(begins - position))
            elif position > ends:
                reason = f"the source ends at {ends}, before the position {position} (on.source.reset = fail)"
                await self._pause(LaneState.PARKED, reason)
        except HeliographError as error:
            await self._pause(LaneState.WAITING, str(error))

    async def _lose_position(self, error: PositionLost) -> None:
        """The last attempt's position cannot be found again: go on where the source begins (on.data.loss = continue)."""
        try:
            entry = await self._find_entry()
            await self._skip_loss(entry, error.begins, f"up to {error.begins - entry.source_next}")
        except HeliographError as trouble:
            await self._pause(LaneState.WAITING, str(trouble))

    async def _skip_loss(self, entry: LedgerEntry, begins: int, lost: str) -> None:
        run = self.run
        ledger = self._slot.warm.ledger(self._slot.plan.clusters[self._rules.target])
        won = await open_next(ledger, entry, await self._fresh_identity(), begins, _now_ms())
        run.acked = won
        self.notes.append(
            f"{lost} offsets of {run.lane.id.topic}-{run.lane.id.partition} were deleted on the source before they were "
            f"copied; generation {won.generation} goes on at {won.source_start} (on.data.loss = continue)"
        )

    async def _again_or_park(self, failure: Failure, tries: int) -> None:
        if self._count(failure.code) > tries:
            await self._pause(LaneState.PARKED, failure.message)
        else:
            self.notes.append(f"{failure.message}: fetching it again")

    def _count(self, code: int | None) -> int:
        self._tries[code] = self._tries.get(code, 0) + 1
        return self._tries[code]

    def _position(self) -> int:
        return self.run.acked.source_next if self.run.acked is not None else -1

    async def _pause(self, state: LaneState, reason: str, soon: bool = False, seconds: float | None = None) -> None:
        """Show why, wait, and let the life's loop attach again."""
        self.run.become(state, reason, _now_ms())
        if seconds is None:
            seconds = _SOON_SECONDS if soon else self._backoff_ms / 1000
            if not soon:
                # What waits for a broker looks often; what is parked needs a person, and looks ever more seldom.
                most = self._slot.plan.settings.retry_max_ms if state is LaneState.PARKED else _UNREACHABLE_MAX_MS
                self._backoff_ms = min(self._backoff_ms * 2, max(most, self._slot.plan.settings.retry_ms))
        await self._or_leaving(asyncio.sleep(seconds))

    async def _or_leaving(self, waiting: Coroutine[Any, Any, object]) -> bool:
        """True when `waiting` ended, False when the lane must leave."""
        work = asyncio.create_task(waiting)
        leaving = asyncio.create_task(self._leaving.wait())
        try:
            done, _ = await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
            return work in done and not self._leaving.is_set()
        finally:
            work.cancel()
            leaving.cancel()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
