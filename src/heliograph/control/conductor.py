"""Who carries which lane: the driver's end of the tasks' lines, and the hand-over between epochs.

The next epoch's task gets ready while the last one still carries; then lane by lane the old one drains, tells its exact
position, and the new one goes on from there. A task that is gone without a word leaves its lanes *not alone*: lanes that the
target guards go on at once, the others when the last attempt is known dead (P5).
Runs in the driver's event loop; knows no brokers and no Spark.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from heliograph.spark import line as words
from heliograph.spark.line import Line

_EPOCHS_REMEMBERED = 4
_ALL = (True, True)
_RELEASE_SECONDS = 6.0
"""How long a task may take to drain a lane before its successor goes on without its word; with many lanes longer, because
passing over one that is only slow leaves its unguarded lanes waiting for the take-over time."""
_LANES_A_SECOND = 250
_ORPHAN_SECONDS = 3.0
"""How long a planned lane may be without a carrier: a lost task that Spark starts again has dialled in by then."""
_CALM_SECONDS = 120.0


@dataclass(eq=False)
class TaskEnd:
    """A task that dialled in."""

    line: Line
    epoch: int
    slot: int
    attempt: str
    process: int
    lanes: set[str] = field(default_factory=set)
    ready: bool = False
    gone: bool = False


@dataclass
class Ownership:
    """One lane: who carries it, who waits for it, and whether the last carrier ended without a word."""

    holder: TaskEnd | None = None
    waiting: TaskEnd | None = None
    lost_at: float | None = None
    told: tuple[bool, bool] = (False, False)
    """What its carrier was told: that the flow is held by this run, that the last attempt is known dead."""
    release_asked: float = 0.0
    planned: bool = True
    unread_since: float | None = None
    """When its last carrier ceased to read it; None while somebody does, or nobody is to."""


class Conductor:
    """Handles every line of a run."""

    def __init__(
        self,
        token: str,
        takeover_wait_s: float,
        clock: Callable[[], float],
        on_report: Callable[[str, list[dict[str, Any]], dict[str, Any]], None],
        is_held: Callable[[str], bool],
    ) -> None:
        self._token = token
        self._takeover_wait_s = takeover_wait_s
        self._clock = clock
        self._on_report = on_report
        self._is_held = is_held
        self.tasks: set[TaskEnd] = set()
        self.owners: dict[str, Ownership] = {}
        self._unsettled: set[str] = set()
        """Lanes that somebody waits for, or whose carrier may be told more; at rest there are none."""
        self._trusted: set[str] = set()
        """Flows of which a carrier was told that this run holds them."""
        self._planned: set[str] | None = None
        """The lanes that are to be carried now; None: whichever a task comes with."""
        self.started: set[tuple[int, int]] = set()
        """(epoch, slot) of every task that dialled in: the watchdog looks here."""
        self._orphans: dict[str, float] = {}
        """Planned lanes that nobody has, and since when."""
        self._orphan_seconds, self._orphans_told_at = _ORPHAN_SECONDS, -_CALM_SECONDS
        self.on_orphans: Callable[[set[str]], bool] = lambda keys: False
        """Told of planned lanes that nobody has had for a while; says whether something is done about it."""
        self.on_gap: Callable[[str, float], None] = lambda key, seconds: None
        """Told of each hand-over: the lane, and for how many seconds nobody read it."""

    # -- the lines --------------------------------------------------------------------------------------------------

    async def handle(self, line: Line) -> None:
        first = await line.receive()
        if first is None or first.get("kind") != "hello" or first.get("token") != self._token:
            return
        task = TaskEnd(line, first["epoch"], first["slot"], first["attempt"], first["process"])
        self.tasks.add(task)
        self.started = {(epoch, slot) for epoch, slot in self.started if epoch > task.epoch - _EPOCHS_REMEMBERED}
        self.started.add((task.epoch, task.slot))
        try:
            while (message := await line.receive()) is not None:
                self._heard(task, message)
        finally:
            self._lost(task)

    def _heard(self, task: TaskEnd, message: words.Message) -> None:
        match message["kind"]:
            case "ready":
                task.ready = True
                unfit = [key for key in message["lanes"] if not self._may_have(task, key)]
                if unfit:
                    task.line.send(words.release(unfit))
                task.lanes = set(message["lanes"]) - set(unfit)
                asked: dict[TaskEnd, list[str]] = {}
                for key in message["lanes"]:
                    if key in task.lanes and (holder := self._offer(task, key)) is not None:
                        asked.setdefault(holder, []).append(key)
                for holder, keys in asked.items():
                    holder.line.send(words.release(keys))
                self._grant_all(task)
            case "released":
                self._unread(task, message["unread"])
                self._released(task, message["lanes"])
            case "took":
                self._took(task, message["lanes"])
            case "report":
                about = {**message["slot"], "epoch": task.epoch, "slot": task.slot}
                self._on_report(task.attempt, message["lanes"], about)

    # -- ownership --------------------------------------------------------------------------------------------------

    def _may_have(self, task: TaskEnd, key: str) -> bool:
        """Its order may be older than the plan, or Spark's retry of an epoch that is over: what was paused or taken out since,
        or is a newer epoch's, is not given to it."""
        if self._planned is not None and key not in self._planned:
            return False
        owner = self.owners.get(key, Ownership())
        return all(other is None or other.epoch <= task.epoch for other in (owner.holder, owner.waiting))

    def _offer(self, task: TaskEnd, key: str) -> TaskEnd | None:
        """Whoever must let go of the lane first."""
        owner = self.owners.setdefault(key, Ownership())
        self._unsettled.add(key)
        self._orphans.pop(key, None)
        owner.planned = True
        if owner.holder is None or owner.holder.gone:
            owner.holder = None
            owner.waiting = task
        elif owner.holder is not task:
            owner.waiting = task
            owner.release_asked = self._clock()
            return owner.holder
        return None

    def _grant_all(self, task: TaskEnd) -> None:
        held: dict[str, bool] = {}
        by_standing: dict[tuple[bool, bool], list[str]] = {}
        for key in task.lanes:
            owner = self.owners[key]
            if owner.waiting is task and owner.holder is None:
                by_standing.setdefault(self._standing(key, self._held_once(key, held)), []).append(key)
        for standing, keys in by_standing.items():
            task.line.send(words.go(keys, *standing, {}))
            for key in keys:
                self._give(key, task, standing)

    def _give(self, key: str, task: TaskEnd, standing: tuple[bool, bool]) -> None:
        owner = self.owners[key]
        owner.holder, owner.waiting, owner.told = task, None, standing
        if standing[0]:
            self._trusted.add(_flow_of(key))
        if standing != _ALL:
            self._unsettled.add(key)

    def _standing(self, key: str, held: bool) -> tuple[bool, bool]:
        """Is the flow held by this run; is the last attempt at the lane known dead besides."""
        lost_at = self.owners[key].lost_at
        return held, held and (lost_at is None or self._clock() - lost_at >= self._takeover_wait_s)

    def _released(self, task: TaskEnd, lanes: Sequence[tuple[str, str | None, bool]]) -> None:
        """Each goes on to who waits for it, all that go the same way in one message."""
        held: dict[str, bool] = {}
        passed: dict[tuple[TaskEnd, tuple[bool, bool]], dict[str, str | None]] = {}
        for key, entry, clean in lanes:
            owner = self.owners.get(key)
            if owner is None or owner.holder is not task:
                continue
            owner.holder = None
            if not clean:
                owner.lost_at = self._clock()
            elif owner.told[1]:
                owner.lost_at = None
            waiting = owner.waiting
            if waiting is None:
                self._orphan(key)
            elif not waiting.gone:
                standing = self._standing(key, self._held_once(key, held))
                self._give(key, waiting, standing)
                passed.setdefault((waiting, standing), {})[key] = entry if clean else None
        for (heir, standing), entries in passed.items():
            known = {key: entry for key, entry in entries.items() if entry}
            heir.line.send(words.go(list(entries), *standing, known))

    def _held_once(self, key: str, held: dict[str, bool]) -> bool:
        """Whether this run holds a lane's flow, asked once for each flow."""
        flow = _flow_of(key)
        if flow not in held:
            held[flow] = self._is_held(key)
        return held[flow]

    # -- how long nobody read a lane --------------------------------------------------------------------------------

    def _unread(self, task: TaskEnd, lanes: dict[str, float]) -> None:
        for key, seconds in lanes.items():
            owner = self.owners.get(key)
            if owner is not None and owner.holder is task and owner.planned:
                owner.unread_since = self._clock() - seconds

    def _took(self, task: TaskEnd, lanes: dict[str, float]) -> None:
        for key, seconds in lanes.items():
            owner = self.owners.get(key)
            if owner is not None and owner.holder is task and owner.unread_since is not None:
                self.on_gap(key, max(0.0, self._clock() - seconds - owner.unread_since))
                owner.unread_since = None

    def _lost(self, task: TaskEnd) -> None:
        task.gone = True
        self.tasks.discard(task)
        heirs: set[TaskEnd] = set()
        for key in task.lanes:
            owner = self.owners[key]
            if owner.waiting is task:
                owner.waiting = None
            if owner.holder is task:
                owner.holder = None
                owner.lost_at = owner.unread_since = self._clock()
                if owner.waiting is not None:
                    heirs.add(owner.waiting)
            if owner.holder is None and owner.waiting is None:
                self._orphan(key)
        for heir in heirs:
            self._grant_all(heir)

    # -- lanes that nobody has ---------------------------------------------------------------------------------------

    def _orphan(self, key: str) -> None:
        if self.owners[key].planned:
            self._orphans.setdefault(key, self._clock())

    def _tell_of_orphans(self) -> None:
        """A task whose line broke ends well, so that Spark starts no other, and a lane may leave by itself: the next epoch
        carries them, and is not waited for. More and more seldom where that does not help."""
        now = self._clock()
        if not self.tasks or any(not task.ready for task in self.tasks):
            return  # who is about to say what it carries may have them
        if now - self._orphans_told_at > _CALM_SECONDS:
            self._orphan_seconds = _ORPHAN_SECONDS
        due = {key for key, since in self._orphans.items() if now - since >= self._orphan_seconds}
        for key in due:
            del self._orphans[key]
        if due and self.on_orphans(due):
            self._orphans_told_at = now
            self._orphan_seconds = min(2 * self._orphan_seconds, _CALM_SECONDS / 2)

    # -- once a second ----------------------------------------------------------------------------------------------

    def take_back(self) -> None:
        """A flow that this run no longer holds: its carriers must not count on being alone any more."""
        held: dict[str, bool] = {}
        lost = {flow for flow in self._trusted if not self._held_once(f"{flow}/any/0", held)}
        self._trusted -= lost
        told: dict[TaskEnd, list[str]] = {}
        for key, owner in self.owners.items() if lost else ():
            if owner.holder is not None and owner.told[0] and _flow_of(key) in lost:
                owner.told = (False, False)
                self._unsettled.add(key)
                told.setdefault(owner.holder, []).append(key)
        for task, keys in told.items():
            task.line.send(words.revoke(keys))

    def tick(self) -> None:
        """Keep the lines alive; tell lanes that their last attempt is known dead; stop waiting for those who never answer."""
        self.take_back()  # before the ping: a run that was frozen must not let its tasks go on as if nothing had been
        for task in list(self.tasks):
            task.line.send(words.ping())
        now = self._clock()
        held: dict[str, bool] = {}
        better: dict[tuple[TaskEnd, tuple[bool, bool]], list[str]] = {}
        heirs: set[TaskEnd] = set()
        for key in list(self._unsettled):
            owner = self.owners[key]
            standing = self._standing(key, self._held_once(key, held))
            if owner.holder is not None and standing > owner.told:
                owner.told = standing
                self._trusted.add(_flow_of(key))
                owner.lost_at = None if standing[1] else owner.lost_at
                better.setdefault((owner.holder, standing), []).append(key)
            asked = owner.waiting is not None and owner.holder is not None
            if asked and now - owner.release_asked > self._release_seconds(owner.holder):
                owner.holder, owner.lost_at = None, now
                heirs |= {owner.waiting} if owner.waiting is not None else set()
            if owner.waiting is None and (owner.holder is None or owner.told == _ALL):
                self._unsettled.discard(key)
        for (task, standing), keys in better.items():
            task.line.send(words.go(keys, *standing, {}))
        for heir in heirs:
            self._grant_all(heir)
        self._tell_of_orphans()

    def _release_seconds(self, task: TaskEnd | None) -> float:
        return _RELEASE_SECONDS + (len(task.lanes) / _LANES_A_SECOND if task is not None else 0.0)

    def stop_all(self) -> None:
        for task in list(self.tasks):
            task.line.send(words.stop())

    def keep_only(self, keys: set[str]) -> None:
        """Other lanes are no longer planned: whoever carries them drains them, and whoever waits for them does not get them."""
        self._planned = keys
        for key, owner in self.owners.items():
            if key in keys:
                continue
            owner.planned, owner.unread_since = False, None
            for task in (owner.holder, owner.waiting):
                if task is not None:
                    task.line.send(words.release([key]))
            owner.waiting = None
            self._orphans.pop(key, None)

    def carries(self, flow: str) -> bool:
        """Whether a task has a lane of this flow."""
        return any(self.carries_lane(key) for key in self.owners if key.startswith(f"{flow}/"))

    def is_in_order(self, flow: str) -> bool:
        """Nothing of this flow's lanes is on its way to the target: whoever carries them next need not wait."""
        now = self._clock()
        return not any(
            owner.holder is not None or (owner.lost_at is not None and now - owner.lost_at < self._takeover_wait_s)
            for key, owner in self.owners.items()
            if _flow_of(key) == flow
        )

    def carries_lane(self, key: str) -> bool:
        return key in self.owners and self.owners[key].holder is not None


def _flow_of(key: str) -> str:
    return key.rsplit("/", 2)[0]


async def tick_forever(conductor: Conductor) -> None:
    while True:
        conductor.tick()
        await asyncio.sleep(words.PING_SECONDS)
