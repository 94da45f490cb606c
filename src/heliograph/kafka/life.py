"""The life of one lane in one task: permission, attach, follow, end.

States and their order:  waiting -> attaching -> following -> (draining -> done) | parked -> attaching …
Every way out of `following` goes through "take the answers still due" (P4); every way back in goes through attach. What is
done when a lane stops is in remedies.py, what the flow's policies make of a situation in policy_steps.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from heliograph.errors import (
    AccessRefused,
    BrokerRefused,
    ClusterUnreachable,
    ConnectionLost,
    HeliographError,
    LaneParked,
)
from heliograph.kafka.alignment import Aligner, NotAligned
from heliograph.kafka.attach import LostOnTarget, NewerGeneration, NotCountable, Overtaken, PositionLost, SourceCutBack
from heliograph.kafka.lane import Failure, LaneRun, Start
from heliograph.kafka.lane_generation import LaneGeneration
from heliograph.kafka.policy_steps import PolicySteps
from heliograph.kafka.remedies import Remedies
from heliograph.kafka.sides import TopicReplaced
from heliograph.model.events import Event, EventKind
from heliograph.model.lanes import Guard, LaneState, LedgerEntry
from heliograph.replication.generations import encode_entry
from heliograph.replication.ledger_keys import EntryKey
from heliograph.wire.error_codes import describe

if TYPE_CHECKING:
    from heliograph.kafka.slot import FlowRules, Slot

_SOON_SECONDS = 0.05
_LOOK_AGAIN_SECONDS = 5.0
_UNREACHABLE_MAX_MS = 4_000
_TRIES_FOR_NEWER = 6
_NEWER = -2
"""Stands where a broker's error code would: how often the target knew a later epoch than the ledger."""

T = TypeVar("T")


class LaneLife:
    """Runs one lane; the slot owns it and may ask it to leave at any time."""

    def __init__(self, slot: Slot, run: LaneRun, rules: FlowRules) -> None:
        self.slot = slot
        self.run = run
        self.rules = rules
        run.tolerates_others = rules.policies.foreign_writer == "continue"
        self._allowed = asyncio.Event()
        self._alone = asyncio.Event()
        self._held = False
        self._leaving = asyncio.Event()
        self._backoff_ms = slot.plan.settings.retry_ms
        self._must_be_alone = False
        self.generation = LaneGeneration(slot, run, rules, now_ms)
        self._events: list[Event] = []
        self._told: Event | None = None
        self._same_offsets = False
        self.followed_since = self.left_at = 0.0
        self._guard = Guard.BROKER
        run.is_alone = self._is_alone_now
        self.finished = False
        self.released = False
        self._steps = PolicySteps(self)
        self._remedies = Remedies(self, self._steps)

    # -- told from outside ------------------------------------------------------------------------------------------

    def allow(self, held: bool, alone: bool, entry: LedgerEntry | None) -> None:
        if entry is not None:
            self.generation.hand(entry)
        self._held = self._held or held
        if alone:
            self._alone.set()
        self._allowed.set()

    def revoke(self) -> None:
        """Another run may hold the flow: a lane that only the hold protects stops at once and drops what is queued."""
        self._held = False
        self._alone.clear()
        if not self._is_permitted() and self.run.state in (LaneState.FOLLOWING, LaneState.DRAINING):
            self.run.fail(Failure(None, "this run no longer holds the flow", finding="revoked"))

    def wait_for_ledger(self, reason: str) -> None:
        """How far the lane came is written nowhere: after a kill a compacted one would repeat all of that."""
        if self.run.lane.compacted and self.run.state is LaneState.FOLLOWING:
            self.run.fail(Failure(None, reason, finding="unwritten"))

    def _is_permitted(self) -> bool:
        """Whether what this attempt was told still allows the guard under which it attached."""
        return {Guard.BROKER: True, Guard.FENCED: self._held, Guard.EXCLUSIVE: self._alone.is_set()}[self.guard]

    def leave(self) -> None:
        """Drain and end."""
        self._leaving.set()
        self.left_at = self.left_at or time.monotonic()
        if self.run.state is LaneState.FOLLOWING:
            self.run.become(LaneState.DRAINING, "", now_ms())
            self.run.drain()

    def finish(self) -> None:
        """The lane reached its `until`."""
        self.finished = True
        self.leave()

    # -- what a person must know ------------------------------------------------------------------------------------

    @property
    def subject(self) -> str:
        return f"{self.run.lane.id.topic}-{self.run.lane.id.partition}"

    def tell(self, kind: EventKind, reason: str, what_to_do: str = "") -> None:
        """An event of this lane; what is met again at the next try is told once."""
        event = Event(now_ms(), self.rules.flow, self.subject, kind, reason, what_to_do)
        if self._told is None or self._told.told != event.told:
            self._told = event
            self.pass_on(event)

    def pass_on(self, event: Event) -> None:
        """An event that is not of this lane alone: its report takes it along."""
        self._events.append(event)
        self.run.stir()

    def take_events(self) -> list[Event]:
        """The events since the last call, for the task's report."""
        self._steps.tell_of_others()
        self._tell_of_difference()
        events, self._events = self._events, []
        return events

    def _tell_of_difference(self) -> None:
        entry = self.run.acked
        if self.rules.align and self._same_offsets and entry is not None and entry.differs_at >= 0:
            self._same_offsets = False
            reason = f"offsets.align: since source offset {entry.differs_at} the copy has other offsets than its source"
            self.tell(EventKind.ALIGNMENT, f"{reason}: offsets there hold no record, or somebody else wrote")

    # -- the life ---------------------------------------------------------------------------------------------------

    async def live(self) -> None:
        if await self._or_leaving(self._allowed.wait()):
            while not self._leaving.is_set():
                start = await self._unless_leaving(self._attach())
                if start is not None and self._is_permitted() and not self._leaving.is_set():
                    await self._follow(start)
        await self._end()

    async def _attach(self) -> Start | None:
        run = self.run
        # What made it attach again stays in sight until it follows: an attach may take seconds, and fail for the same reason.
        self._attaching(run.reason if run.state in (LaneState.WAITING, LaneState.PARKED) else "")
        entry: LedgerEntry | None = None
        try:
            entry = await self._aligned(await self.generation.position())
            if entry is None:
                return None
            attacher = self.slot.attacher(self.rules)
            if self.generation.inherits:
                start = await attacher.take_over(run.lane, entry, now_ms())
            else:
                start = await attacher.attach(run.lane, entry, self.rules.read_committed, now_ms())
            may_carry = await self._steps.may_go_on(start, entry, attacher) and await self._may_carry(start)
            return await self.generation.own(start, self._is_alone) if may_carry else None
        except HeliographError as error:
            await self._give_way(error, entry)
        except TimeoutError:
            await self.pause(LaneState.WAITING, "the ledger did not answer in time")
        return None

    async def _give_way(self, error: HeliographError, entry: LedgerEntry | None) -> None:
        """What keeps a lane from attaching at `entry`, and what is done about it."""
        match error:
            case PositionLost() | LostOnTarget() | TopicReplaced() | SourceCutBack():
                await self._steps.carry_out(self._settle(error, entry), str(error))
            case NotCountable():
                self.generation.doubt()  # the next try opens a generation of its own
            case NewerGeneration() if self._remedies.count(_NEWER) > _TRIES_FOR_NEWER:
                await self.park(EventKind.PARKED, f"identity conflict: {error}, and the ledger does not know it")
            case NewerGeneration() | Overtaken():
                await self.pause(LaneState.WAITING, str(error), soon=self._remedies.count(None) <= 3)
            case NotAligned():
                await self.park(EventKind.ALIGNMENT, str(error), error.what_to_do)
            case BrokerRefused() if error.advice:
                await self.park(EventKind.PARKED, f"{error.what}: {describe(error.code)}", error.advice)
            case BrokerRefused():
                await self.pause(LaneState.WAITING, f"{error.what}: {describe(error.code)}")
            case ClusterUnreachable() | ConnectionLost() if not isinstance(error, AccessRefused):
                await self.pause(LaneState.WAITING, str(error))
            case _:
                await self.park(EventKind.PARKED, str(error))

    async def _settle(self, error: LaneParked, entry: LedgerEntry | None) -> None:
        if isinstance(error, TopicReplaced):
            await self._steps.topic_replaced(error.on_source)
        elif isinstance(error, PositionLost) and entry is not None:
            await self._steps.position_lost(error.begins, entry)
        elif isinstance(error, SourceCutBack) and entry is not None:
            await self._steps.source_cut_before(error, entry)
        elif isinstance(error, LostOnTarget) and entry is not None:
            await self._steps.target_lost(error.lost, entry)

    async def _may_carry(self, start: Start) -> bool:
        """P5: race only where the broker guards; else wait until the last attempt is known dead, then attach again."""
        run = self.run
        if run.lane.compacted and (late := self.slot.books.late(self.rules.target)):
            await self.pause(LaneState.WAITING, late)
            return False
        if self._must_be_alone:
            self._must_be_alone = not await self._is_alone("the next records are older than the target remembers")
            return not self._must_be_alone
        if start.guarded and not run.lane.compacted:
            self._guard = Guard.BROKER
            return True
        if start.guarded and self._held:
            # The fresh epoch fences the last attempt with the first append (P8.3); another run would fence us in turn.
            self._guard = Guard.FENCED
            return True
        return await self._is_alone(
            "the source is compacted" if run.lane.compacted else "the target keeps no memory of this lane"
        )

    def must_be_alone(self) -> None:
        """The records that come next take the guard away: no other attempt may be left."""
        self._must_be_alone = True

    def _is_alone_now(self) -> bool:
        """A frozen task that wakes up has not been told yet what happened meanwhile: then nothing is believed."""
        return self._alone.is_set() and self.slot.in_touch()

    @property
    def guard(self) -> Guard:
        """What keeps a second attempt from repeating records, at this moment."""
        if self._guard is Guard.EXCLUSIVE and self.run.state in (LaneState.FOLLOWING, LaneState.DRAINING):
            remembered = self.run.memory.is_kept(now_ms())
            return (Guard.FENCED if self.run.lane.compacted else Guard.BROKER) if remembered else Guard.EXCLUSIVE
        return self._guard

    async def _is_alone(self, cause: str) -> bool:
        """Whether the last attempt is known dead; waits a while for it."""
        self._guard = Guard.EXCLUSIVE
        if self._is_alone_now():
            return True
        why = f"{cause}: waiting until the last attempt is known dead"
        self.run.become(LaneState.WAITING, why, now_ms())
        try:
            async with asyncio.timeout(_LOOK_AGAIN_SECONDS):
                await self._or_leaving(self._alone.wait())
        except TimeoutError:
            pass  # another attempt may have written fresh records meanwhile: attach tells
        return False

    async def _aligned(self, entry: LedgerEntry) -> LedgerEntry | None:
        """offsets.align: a new lane's remote partition is filled before its first record, by this attempt alone. None: not yet."""
        if not entry.filler_to:
            return entry
        cluster = self.slot.plan.clusters[self.rules.target]
        aligner = Aligner(self.run.lane, self.slot.attacher(self.rules), self.slot.warm.client(cluster), now_ms)
        if not entry.filling:
            await aligner.cut_again(entry)
            return entry
        if not await self._is_alone("the remote partition is filled first"):
            return None
        aligned = await aligner.align(entry, self._attaching, self._must_stop)
        if aligned is not None:
            # Before the first record: whoever comes next must not take records for filler.
            key = EntryKey(entry.lane, entry.generation)
            await self.generation.ledger.write([(key, encode_entry(aligned))], now_ms())
        return aligned

    def _must_stop(self) -> bool:
        return self._leaving.is_set() or not self._is_permitted()

    def _attaching(self, how_far: str) -> None:
        self.run.become(LaneState.ATTACHING, how_far, now_ms())

    async def _follow(self, start: Start) -> None:
        run = self.run
        run.begin(start, now_ms())
        self._same_offsets = self._same_offsets or start.entry.differs_at < 0
        self.followed_since = time.monotonic()
        reader = self.slot.reader(self.rules, start.source_node)
        writer = self.slot.writer(self.rules, start.target_node)
        writer.add(run)
        reader.add(run)
        self.slot.began.append(run.lane.id.key)
        await run.stopped.wait()
        reader.remove(run)
        if run.draining:
            writer.wake()
        await run.idle.wait()
        writer.remove(run)
        if run.failure is not None and not self._leaving.is_set():
            await self._remedies.react(run.failure)

    async def _end(self) -> None:
        """The position goes to the successor over the line at once, and to the ledger with all others'."""
        run = self.run
        if run.state is not LaneState.PARKED:
            run.become(LaneState.DONE, "caught up" if self.finished else "released", now_ms())
        self.released = True
        self.slot.end(run.lane.id.key)

    def now_ms(self) -> int:
        return now_ms()

    # -- pausing ----------------------------------------------------------------------------------------------------

    async def park(self, kind: EventKind, reason: str, what_to_do: str = "") -> None:
        """Stop with a reason that a person must know; tried again later."""
        self.tell(kind, reason, what_to_do)
        await self.pause(LaneState.PARKED, f"{reason}; {what_to_do}" if what_to_do else reason)

    async def pause(self, state: LaneState, reason: str, soon: bool = False, seconds: float | None = None) -> None:
        """Show why, wait, and let the life's loop attach again."""
        self.run.become(state, reason, now_ms())
        if seconds is None:
            seconds = _SOON_SECONDS if soon else self._backoff_ms / 1000
            if not soon:
                # What waits for a broker looks often; what is parked needs a person, and looks ever more seldom.
                most = self.slot.plan.settings.retry_max_ms if state is LaneState.PARKED else _UNREACHABLE_MAX_MS
                self._backoff_ms = min(self._backoff_ms * 2, max(most, self.slot.plan.settings.retry_ms))
        await self._or_leaving(asyncio.sleep(seconds))

    def moved_on(self) -> None:
        """The lane got further since it last paused: pauses begin small again."""
        self._backoff_ms = self.slot.plan.settings.retry_ms

    async def _unless_leaving(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What `work` comes to; None when the lane must leave, which ends it wherever it is."""
        task = asyncio.create_task(work)
        try:
            await self._or_leaving(asyncio.wait({task}))
        finally:
            task.cancel()
        await asyncio.wait({task})
        return None if task.cancelled() else task.result()

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


def now_ms() -> int:
    """The wall clock, as Kafka's timestamps have it."""
    return time.time_ns() // 1_000_000
