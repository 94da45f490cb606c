"""The flow's policies, carried out on one lane: ask what is so, let replication/policies.py decide, do it, tell it.

Whatever changes what "record n" means opens a new generation first (P7, P9), and the lane's loop attaches in it. A loss that
only a leader's word shows is believed when it has been seen for a while, by the newest leader that any broker knows: a leader
that was replaced while it slept answers from an old log (case 1d), and everything would be copied twice.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING

from heliograph.errors import BrokerRefused, HeliographError
from heliograph.kafka.attach import Attacher
from heliograph.kafka.attach_findings import SourceCutBack
from heliograph.kafka.client import EARLIEST, LATEST, ClusterClient
from heliograph.kafka.common_end import common_end
from heliograph.kafka.dead_letter import DeadLetters, read_bad
from heliograph.kafka.lane import Start
from heliograph.model.lanes import LaneState, LedgerEntry
from heliograph.replication.attach import Lost
from heliograph.replication.policies import (
    BadRecord,
    DataLost,
    Decision,
    ForeignRecords,
    SourceCut,
    SourceReplaced,
    Step,
    TargetLost,
    TargetReplaced,
    TargetWentBack,
    cause_of,
    dead_letter_topic,
    decide,
)

if TYPE_CHECKING:
    from heliograph.kafka.life import LaneLife

_BELIEVE_SECONDS = 10.0
_SUSPICION_KEPT_SECONDS = 60.0
_TELL_OF_OTHERS_SECONDS = 600.0


class PolicySteps:
    """Of one lane."""

    def __init__(self, life: LaneLife) -> None:
        self._life = life
        self._run = life.run
        self._lane = life.run.lane
        self._policies = life.rules.policies
        self._suspected: dict[str, float] = {}
        self._told_foreign = 0
        self._told_foreign_at = 0.0

    # -- at attach --------------------------------------------------------------------------------------------------

    async def may_go_on(self, start: Start, entry: LedgerEntry, attacher: Attacher) -> bool:
        """What attach, from `entry` on, found that a policy must judge before the first record is sent."""
        self._suspected.clear()
        if start.went_back:
            went_back = TargetWentBack(self._remote, start.went_back)
            if not await self._judge(decide(self._policies, went_back)):
                return False
        if start.target_next is None:
            header = await attacher.foreign(self._lane, entry)
            if header is not None:
                found = ForeignRecords(self._remote, header.base_offset, producer_id=header.producer_id)
                return await self._judge(decide(self._policies, found))
        return True

    async def carry_out(self, steps: Awaitable[None], finding: str) -> None:
        """Take steps; where a cluster keeps them from being taken, the lane waits and meets the same again."""
        try:
            await steps
        except HeliographError as error:
            await self._life.pause(LaneState.WAITING, f"{finding}: {error}")
        except TimeoutError:
            await self._life.pause(LaneState.WAITING, f"{finding}: a cluster did not answer in time")

    async def position_lost(self, begins: int, entry: LedgerEntry) -> None:
        """The last attempt's position cannot be found again: some of what is gone may have been copied."""
        lost = DataLost(self._life.subject, entry.source_next, begins, exact=False)
        await self._open(decide(self._policies, lost), entry)

    async def topic_replaced(self, on_source: bool) -> None:
        situation = SourceReplaced(self._life.subject) if on_source else TargetReplaced(self._remote)
        await self._judge(decide(self._policies, situation))

    async def source_cut_before(self, found: SourceCutBack, entry: LedgerEntry) -> None:
        """P10.2, found while nobody carried the lane: the copy goes on from where both are the same, once it is believed."""
        cut = SourceCut(self._life.subject, found.position, found.ends_at, found.agrees_to)
        decision = decide(self._policies, cut)
        if decision.parks or await self._believe("source", decision.reason):
            reached = replace(
                entry, source_next=found.agrees_to, source_epoch=found.epoch, target_next=found.target_next
            )
            await self._open(decision, reached)

    async def target_lost(self, lost: Lost, entry: LedgerEntry) -> None:
        """P9: copy again, once it is believed."""
        if self._policies.target_loss != "fail" and not await self._believe("target", lost.reason):
            return
        await self._recopy(lost, entry)

    # -- while following --------------------------------------------------------------------------------------------

    async def stray_batch(self, message: str) -> None:
        """P3.5: an acknowledgement below what was expected; it is the broker's own word, there is nothing to wait for."""
        if self._run.acked is not None:
            await self._recopy(Lost(message), self._run.acked)

    async def data_lost(self, entry: LedgerEntry, position: int, begins: int) -> None:
        await self._open(decide(self._policies, DataLost(self._life.subject, position, begins)), entry)

    async def source_cut(self, ends_at: int, epoch: int) -> None:
        """P10.2: the source's log and the copy part at `ends_at`, or before it."""
        run = self._run
        assert run.acked is not None and run.start is not None  # noqa: S101  a lane is read after begin()
        position = max(run.acked.source_next, run.start.source_next)
        agrees_to = ends_at
        if self._policies.source_reset != "fail" and epoch != run.fetch_epoch:
            # The source does not know the epoch that was copied last: where that one began is not in its answer.
            begins = await self._offset(on_source=True, which=EARLIEST)
            agrees_to = ends_at if await self._same_before(ends_at) else begins
        cut = SourceCut(self._life.subject, position, ends_at, agrees_to)
        before = epoch if agrees_to == ends_at else -1
        await self._open(decide(self._policies, cut), replace(run.acked, source_next=agrees_to, source_epoch=before))

    async def source_short(self, position: int, ends: int, begins: int) -> None:
        """As `source_cut`, of a source that cannot say where it was cut: only its start is certain to lose nothing."""
        assert self._run.acked is not None  # noqa: S101  a lane is read after begin()
        cut = SourceCut(self._life.subject, position, ends, begins)
        decision = decide(self._policies, cut)
        if decision.parks or await self._believe("source", decision.reason):
            await self._open(decision, self._run.acked)

    async def bad_record(self, code: int, offset: int, message: str) -> None:
        """The target refuses the record at `offset`; everything before it is acknowledged."""
        run, life = self._run, self._life
        assert run.acked is not None and run.start is not None  # noqa: S101  a lane is read after begin()
        source = self._client(on_source=True)
        bad = await read_bad(source, self._lane, run.start.source_node, code, offset, life.now_ms())
        cause, cure = cause_of(code, message, bad.first, self._lane.remote_topic, life.now_ms())
        found = BadRecord(
            self._lane.id.topic, self._lane.id.partition, self._lane.remote_topic, offset, bad.last, cause, cure
        )
        decision = decide(self._policies, found)
        if decision.step is Step.DEAD_LETTER:
            letters = DeadLetters(self._client(on_source=False), dead_letter_topic(self._lane.remote_topic))
            try:
                await letters.write(self._lane, bad.records, cause, cure, life.now_ms())
            except (HeliographError, TimeoutError) as error:
                trouble = str(error) or "the target did not take it in time"
                await life.park(decision.kind, f"{decision.reason}, which failed: {trouble}", decision.what_to_do)
                return
        if await self._open(decision, run.acked):
            word = str(decision.step)
            run.counts.skipped[word] = run.counts.skipped.get(word, 0) + len(bad.records)

    def tell_of_others(self) -> None:
        """Records of somebody else that acknowledgements showed since this was last told: now and then, with their number."""
        foreign, now = self._run.counts.foreign, time.monotonic()
        news = foreign - self._told_foreign
        due = not self._told_foreign or now - self._told_foreign_at > _TELL_OF_OTHERS_SECONDS
        if news and due and self._run.tolerates_others:
            self._told_foreign, self._told_foreign_at = foreign, now
            decision = decide(self._policies, ForeignRecords(self._remote, self._run.foreign_at, news))
            self._life.tell(decision.kind, decision.reason, decision.what_to_do)

    # -- carrying out -----------------------------------------------------------------------------------------------

    async def _judge(self, decision: Decision) -> bool:
        """Park, or tell and go on."""
        if decision.parks:
            await self._life.park(decision.kind, decision.reason, decision.what_to_do)
            return False
        self._life.tell(decision.kind, decision.reason, decision.what_to_do)
        return True

    async def _open(self, decision: Decision, entry: LedgerEntry) -> bool:
        """Park, or open the next generation at the decision's start."""
        if not await self._judge(decision):
            return False
        self._run.acked = await self._life.generation.open(entry, decision.start)
        return True

    async def _recopy(self, lost: Lost, entry: LedgerEntry) -> None:
        begins = await self._offset(on_source=True, which=EARLIEST)
        start = begins if lost.from_start else max(begins, entry.source_next)
        # The old anchors are of records that are gone, and the next record lands where the target ends now.
        end = await self._offset(on_source=False, which=LATEST)
        fresh = replace(entry, target_next=end, anchors=(), last=None)
        await self._open(decide(self._policies, TargetLost(self._remote, lost.reason, start)), fresh)

    async def _believe(self, what: str, finding: str) -> bool:
        """Whether this was seen for long enough, and by the newest leader; else look again in a moment."""
        now = time.monotonic()
        since = self._suspected.setdefault(what, now)
        wait_s = min(_BELIEVE_SECONDS, self._life.slot.plan.settings.takeover_wait_s)
        if now - since > _SUSPICION_KEPT_SECONDS:
            since = self._suspected[what] = now
        if now - since >= wait_s and await self._asked_the_newest(on_source=what == "source"):
            return True
        reason = f"{finding}: looking again for {wait_s:g} s before it is believed"
        await self._life.pause(LaneState.WAITING, reason, seconds=wait_s / 4)
        return False

    async def _asked_the_newest(self, on_source: bool) -> bool:
        client = self._client(on_source)
        topic = self._lane.id.topic if on_source else self._lane.remote_topic
        known = (await client.metadata([topic]))[topic].leaders.get(self._lane.id.partition)
        return known is not None and known == await client.newest_leader(topic, self._lane.id.partition)

    async def _same_before(self, offset: int) -> bool:
        run = self._run
        assert run.start is not None and run.acked is not None  # noqa: S101  a lane is read after begin()
        nodes = (run.start.source_node, run.start.target_node)
        clients = (self._client(on_source=True), self._client(on_source=False))
        return await common_end(self._lane, run.acked, clients, nodes, offset)

    async def _offset(self, on_source: bool, which: int) -> int:
        client = self._client(on_source)
        name = (self._lane.id.topic if on_source else self._lane.remote_topic, self._lane.id.partition)
        leader = (await client.metadata([name[0]]))[name[0]].leaders.get(name[1])
        found = None if leader is None else (await client.offsets(leader.node, [name], which)).get(name)
        if found is None:
            raise BrokerRefused(5, f"{name[0]}-{name[1]}")
        return found

    def _client(self, on_source: bool) -> ClusterClient:
        rules = self._life.rules
        slot = self._life.slot
        return slot.warm.client(slot.plan.clusters[rules.source if on_source else rules.target])

    @property
    def _remote(self) -> str:
        return f"{self._lane.remote_topic}-{self._lane.id.partition}"
