"""The life of one lane in one task: permission, attach, follow, end.

States and their order:  waiting -> attaching -> following -> (draining -> done) | parked -> attaching …
Every way out of `following` goes through "take the answers still due" (P4); every way back in goes through attach. What is
done when a lane stops is in remedies.py, what the flow's policies make of a situation in policy_steps.py.
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
from heliograph.kafka.alignment import Aligner, NotAligned
from heliograph.kafka.attach import LostOnTarget, NewerGeneration, NotCountable, Overtaken, PositionLost
from heliograph.kafka.claims import open_next, transactional_id
from heliograph.kafka.lane import LaneRun, Start
from heliograph.kafka.policy_steps import PolicySteps
from heliograph.kafka.remedies import Remedies
from heliograph.kafka.sides import TopicReplaced
from heliograph.model.events import Event, EventKind
from heliograph.model.lanes import Guard, Identity, Lane, LaneState, LedgerEntry
from heliograph.replication.generations import EntryKey, encode_entry
from heliograph.replication.openings import is_another
from heliograph.wire.error_codes import describe

if TYPE_CHECKING:
    from heliograph.kafka.slot import FlowRules, Slot

_SOON_SECONDS = 0.05
_LOOK_AGAIN_SECONDS = 5.0
_UNREACHABLE_MAX_MS = 4_000


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
        self._handed: LedgerEntry | None = None
        self._backoff_ms = slot.plan.settings.retry_ms
        self._opened_own = False
        self._events: list[Event] = []
        self._told: Event | None = None
        self._same_offsets = False
        self.followed_since = self.left_at = 0.0
        self.guard = Guard.BROKER
        self.finished = False
        self.released = False
        self._steps = PolicySteps(self)
        self._remedies = Remedies(self, self._steps)

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
                start = await self._attach()
                if start is not None and not self._leaving.is_set():
                    await self._follow(start)
        await self._end()

    async def _attach(self) -> Start | None:
        run = self.run
        self._attaching("")
        entry: LedgerEntry | None = None
        try:
            entry = await self._aligned(await self._entry())
            if entry is None:
                return None
            attacher = self.slot.attacher(self.rules)
            start = await attacher.attach(run.lane, entry, self.rules.read_committed, now_ms())
            if not await self._steps.may_go_on(start, attacher):
                return None
            return start if await self._may_carry(start) else None
        except HeliographError as error:
            await self._give_way(error, entry)
        except TimeoutError:
            await self.pause(LaneState.WAITING, "the ledger did not answer in time")
        return None

    async def _give_way(self, error: HeliographError, entry: LedgerEntry | None) -> None:
        """What keeps a lane from attaching at `entry`, and what is done about it."""
        match error:
            case PositionLost() | LostOnTarget() | TopicReplaced():
                await self._steps.carry_out(self._settle(error, entry), str(error))
            case NewerGeneration() | NotCountable() | Overtaken():
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
        elif isinstance(error, LostOnTarget) and entry is not None:
            await self._steps.target_lost(error.lost, entry)

    async def _entry(self) -> LedgerEntry:
        entry = await self._find_entry()
        if not _is_of(entry, self.run.lane):
            raise LaneParked(
                f"generation {entry.generation} counts another topic of this name: waiting for the next plan"
            )
        if (entry.rule.isolation == "read_committed", entry.rule.without) != (
            self.rules.read_committed,
            self.rules.home,
        ):
            without = f" without {entry.rule.without}" if entry.rule.without else ""
            raise LaneParked(
                f"generation {entry.generation} counts by {entry.rule.isolation}{without}, this flow by another rule (P7)"
            )
        return entry

    async def _find_entry(self) -> LedgerEntry:
        """The position to attach from: handed over, our own last one, or the ledger's; on compacted sources a new generation."""
        run = self.run
        handed, self._handed = self._handed, None
        if handed is not None and _is_of(handed, run.lane):
            # Exact, and its writer has left: even a compacted lane goes on in the same generation.
            return handed
        if run.lane.compacted:
            return await self._own_generation()
        known = run.acked
        ledger = self.slot.warm.ledger(self.slot.plan.clusters[self.rules.target])
        latest = (await ledger.refresh()).latest(run.lane.id)
        if latest is None:
            raise LaneParked("the ledger has no entry of this lane")
        if known is not None and known.generation >= latest.generation and known.source_next >= latest.source_next:
            return known
        return latest

    async def _own_generation(self) -> LedgerEntry:
        """P8.2: on a compacted source every attempt writes under an epoch of its own, from the ledger's position."""
        run = self.run
        ledger = self.slot.warm.ledger(self.slot.plan.clusters[self.rules.target])
        latest = (await ledger.refresh()).latest(run.lane.id)
        if latest is None:
            raise LaneParked("the ledger has no entry of this lane")
        base = latest
        known = run.acked
        if known is not None and known.generation >= latest.generation and known.source_next >= latest.source_next:
            base = known
        first = run.counts.attaches == 0 and not self._opened_own
        identity = await self.slot.identity(self.rules) if first else await self.fresh_identity()
        self._opened_own = True
        # Numbered after the latest, wherever it starts: a position of our own may be further on than the ledger's.
        base = replace(base, generation=latest.generation)
        won = await open_next(ledger, base, identity, base.source_next, now_ms(), self.slot.attempt)
        if won.attempt != self.slot.attempt:
            raise ConnectionLost("another attempt opened this generation first")
        return won

    async def fresh_identity(self) -> Identity:
        client = self.slot.warm.client(self.slot.plan.clusters[self.rules.target])
        return await client.new_identity(transactional_id(self.rules.flow))

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
        return await self._is_alone(
            "the source is compacted" if run.lane.compacted else "the target keeps no memory of this lane"
        )

    async def _is_alone(self, cause: str) -> bool:
        """Whether the last attempt is known dead; waits a while for it."""
        self.guard = Guard.EXCLUSIVE
        if self._alone.is_set():
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
        aligned = await aligner.align(entry, self._attaching, self._leaving.is_set)
        if aligned is not None:
            # Before the first record: whoever comes next must not take records for filler.
            key = EntryKey(entry.lane, entry.generation)
            await self.slot.warm.ledger(cluster).write([(key, encode_entry(aligned))], now_ms())
        return aligned

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


def _is_of(entry: LedgerEntry, lane: Lane) -> bool:
    """Whether an entry counts the topics that the plan knows; one that was made anew has another generation."""
    return not (
        is_another(entry.source_topic_id, lane.source_topic_id)
        or is_another(entry.target_topic_id, lane.target_topic_id)
    )


def now_ms() -> int:
    """The wall clock, as Kafka's timestamps have it."""
    return time.time_ns() // 1_000_000
