"""What a lane does when it stopped: a broker's refusal or a finding of ours, and the way back to attach (P4).

The table of codes is in replication/reactions.py. What is the flow's policy to decide goes to policy_steps.py.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from heliograph.errors import HeliographError
from heliograph.kafka.client import EARLIEST, LATEST
from heliograph.kafka.lane import Failure
from heliograph.kafka.policy_steps import PolicySteps
from heliograph.model.events import EventKind
from heliograph.model.lanes import LaneState
from heliograph.replication.permissions import missing_on_topic, missing_to_write
from heliograph.replication.policies import RECORD_CODES
from heliograph.replication.reactions import Action, react

if TYPE_CHECKING:
    from heliograph.kafka.life import LaneLife

_SOON_SECONDS = 0.05
_CALM_SECONDS = 10.0
_YIELD_MAX_SECONDS = 10.0
_OUT_OF_ORDER = 45
_TOO_LARGE = (10, 18)
_SMALLEST_PIECE = 1024
_OTHER_REPLICAS = 10
"""How often a source may say that it cannot read a partition before somebody must look: another replica may lead meanwhile."""


class Remedies:
    """Of one lane; remembers what was tried, so that nothing is tried for ever."""

    def __init__(self, life: LaneLife, steps: PolicySteps) -> None:
        self._life = life
        self._run = life.run
        self._steps = steps
        self._tries: dict[int | None, int] = {}
        self._stuck_at: tuple[int | None, int] = (None, -1)
        self._conflicts = 0
        self._shrunk = (-1, 0)

    def count(self, code: int | None) -> int:
        """How often in a row this was met, with this time."""
        self._tries[code] = self._tries.get(code, 0) + 1
        return self._tries[code]

    async def react(self, failure: Failure) -> None:
        """Act, and return when the lane may attach again."""
        progress = self._run.acked.source_next if self._run.acked is not None else -1
        if self._stuck_at != (failure.code, progress):
            self._stuck_at = (failure.code, progress)
            self._tries.clear()
        if progress >= 0 and not self._tries:
            self._life.moved_on()
        if self._run.lost_unguarded:
            # A request outlives its connection, and nothing but time keeps the target from taking it twice (5f), whatever
            # else stopped the lane.
            wait_s = self._life.slot.plan.settings.takeover_wait_s
            await self._life.pause(LaneState.WAITING, failure.message, seconds=wait_s)
            return
        match failure.finding:
            case "":
                await self._react_to_code(failure)
            case "source" if failure.code is not None and self.count(failure.code) > _OTHER_REPLICAS:
                await self._park(failure)
            case "source" | "revoked" | "unwritten":
                await self._life.pause(LaneState.WAITING, failure.message, soon=self.count(None) <= 3)
            case "unguarded":
                self._life.must_be_alone()
            case "corrupt":
                await self._again_or_park(failure, 1)
            case _:
                await self._steps.carry_out(self._ask_policies(failure), failure.message)

    async def _ask_policies(self, failure: Failure) -> None:
        match failure.finding:
            case "source_range":
                await self._react_to_range(failure)
            case "source_cut":
                await self._steps.source_cut(failure.offset, failure.epoch)
            case "source_replaced" | "foreign_writer":
                # Attach finds out what it is, and who.
                await self._life.pause(LaneState.WAITING, failure.message, soon=self.count(failure.code) <= 3)
            case "below_expected":
                await self._steps.stray_batch(failure.message)
            case "record" if failure.offset >= 0:
                await self._steps.bad_record(failure.code or 0, failure.offset, failure.message)
            case _:
                await self._park(failure)

    async def _park(self, failure: Failure) -> None:
        """With the permission that is missing, where it is one."""
        lane = self._run.lane
        if failure.finding:
            missing = missing_on_topic(failure.code, "READ", lane.id.topic, lane.source)
        else:
            missing = missing_to_write(failure.code, lane.remote_topic, lane.target)
        if missing is None:
            await self._life.park(EventKind.PARKED, failure.message)
        else:
            await self._life.park(EventKind.PARKED, f"{failure.message} (this needs {missing})", missing.advice)

    # -- by code ----------------------------------------------------------------------------------------------------

    async def _react_to_code(self, failure: Failure) -> None:
        reaction = react(failure.code)
        tries = self.count(failure.code)
        if failure.code == _OUT_OF_ORDER and tries <= reaction.tries:
            await self._yield_to_other(failure)
            return
        if failure.code in _TOO_LARGE and self._can_shrink():
            self._run.max_bytes = self._run.refused.size // 2  # its config changed since we read it: smaller pieces
            tries = 1
        exhausted = bool(reaction.tries) and tries > reaction.tries
        if failure.code in RECORD_CODES and (exhausted or self._run.refused.first < self._run.piece_until):
            await self._narrow(failure)
        elif exhausted:
            await self._life.park(EventKind.PARKED, failure.message)
        else:
            await self._act(reaction.action, failure, tries)

    def _can_shrink(self) -> bool:
        """Smaller pieces may help, unless this very size was refused here before: then it is one record."""
        refused = (self._run.refused.first, self._run.refused.size)
        again, self._shrunk = refused == self._shrunk, refused
        return not again and self._run.refused.size // 2 >= _SMALLEST_PIECE

    async def _narrow(self, failure: Failure) -> None:
        """The target refuses a batch for one of its records: halve it until the record stands alone."""
        run = self._run
        if run.refused.count > 1:
            run.piece_count, run.piece_until = run.refused.count // 2, run.refused.next
            return
        bad = Failure(failure.code, failure.message, finding="record", offset=run.refused.first)
        run.piece_count = run.piece_until = 0
        await self._steps.carry_out(self._ask_policies(bad), failure.message)

    async def _act(self, action: Action, failure: Failure, tries: int) -> None:
        match action:
            case Action.PARK:
                await self._park(failure)
            case Action.CHECK_LEDGER:
                await self._check_ledger(failure)
            case Action.ATTACH | Action.NO_STATE | Action.TOPIC_CHANGED:
                await self._life.pause(LaneState.WAITING, failure.message, soon=tries <= 3)
            case Action.BACKOFF_ATTACH:
                await self._life.pause(LaneState.WAITING, failure.message)
            case Action.REFETCH_ONCE:
                self._life.tell(EventKind.BATCH_AGAIN, f"{failure.message}: fetching the batch again")
            case Action.RECORD_PATH:
                self._run.record_path_once.add(self._run.refused.first)
                self._life.tell(EventKind.BATCH_AGAIN, f"{failure.message}: trying the record path")

    async def _check_ledger(self, failure: Failure) -> None:
        """E47: with a later generation in the ledger this attempt is a zombie, and leaves (P4)."""
        run, life = self._run, self._life
        ledger = life.slot.warm.ledger(life.slot.plan.clusters[life.rules.target])
        try:
            latest = (await ledger.refresh()).latest(run.lane.id)
        except HeliographError as error:
            await life.pause(LaneState.WAITING, str(error))
            return
        if latest is not None and run.acked is not None and latest.generation > run.acked.generation:
            reason = f"fenced by generation {latest.generation}: another attempt carries this lane"
            life.tell(EventKind.FENCED, reason)
            life.leave()
            return
        await life.park(EventKind.PARKED, f"identity conflict: {failure.message}")

    async def _yield_to_other(self, failure: Failure) -> None:
        """P5.1: somebody else's records came first. Attach at once; if it happens again, let the other one carry the lane."""
        calm = time.monotonic() - self._life.followed_since > _CALM_SECONDS
        self._conflicts = 1 if calm else self._conflicts + 1
        if self._conflicts == 1:
            await self._life.pause(LaneState.WAITING, failure.message, seconds=_SOON_SECONDS)
            return
        seconds = min(0.25 * 2**self._conflicts, _YIELD_MAX_SECONDS)
        await self._life.pause(LaneState.WAITING, "another attempt carries this lane and is ahead", seconds=seconds)

    async def _again_or_park(self, failure: Failure, tries: int) -> None:
        if self.count(failure.code) > tries:
            await self._life.park(EventKind.PARKED, failure.message)
        else:
            self._life.tell(EventKind.BATCH_AGAIN, f"{failure.message}: fetching it again")

    # -- ranges -----------------------------------------------------------------------------------------------------

    async def _react_to_range(self, failure: Failure) -> None:
        """P9: the source begins after the lane's position (retention), or ends before it (it was cut back)."""
        run, life = self._run, self._life
        assert run.start is not None and run.acked is not None  # noqa: S101  a lane is read after begin()
        client = life.slot.warm.client(life.slot.plan.clusters[life.rules.source])
        name = (run.lane.id.topic, run.lane.id.partition)
        begins = (await client.offsets(run.start.source_node, [name], EARLIEST)).get(name)
        ends = (await client.offsets(run.start.source_node, [name], LATEST)).get(name)
        position = max(run.stopped_at, run.acked.source_next, run.start.source_next)
        if begins is None or ends is None:
            await life.pause(LaneState.WAITING, failure.message)
        elif position < begins:
            await self._steps.data_lost(run.acked, position, begins)
        elif position > ends:
            await self._steps.source_short(position, ends, begins)
        else:
            # The position is there, and the leader still refuses: it cannot tell where the last epoch ended, or moves to
            # another tier. It may be over in a moment, or need a person; until then it is not asked at wire speed.
            message = f"{failure.message}, though it has {begins} to {ends} and the lane is at {position}"
            await life.pause(LaneState.WAITING, message, soon=self.count(failure.code) <= 1)
