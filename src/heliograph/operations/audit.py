"""`heliograph audit`: for every lane of a flow, what became of each of its source offsets. Reads only.

Accounted for is what the sources had when it began: the ledger of a running mirror is read again until it has passed that, because
what was copied is written down a second later.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from heliograph.config.flows import FlowSettings
from heliograph.errors import HeliographError
from heliograph.kafka.auditor import Auditor
from heliograph.kafka.client import LATEST
from heliograph.kafka.log_ends import offsets_of
from heliograph.model.lanes import LaneId
from heliograph.operations.translate import FlowTranslator
from heliograph.replication.auditing import Account


@dataclass(frozen=True)
class LaneAudit:
    """One lane: its source offsets from `first` to before `end`; `trouble` is why it could not be audited."""

    lane: LaneId
    remote_topic: str
    first: int = -1
    end: int = -1
    account: Account = field(default_factory=Account)
    trouble: str = ""

    @property
    def closes(self) -> bool:
        return not self.trouble and self.account.closes and self.account.offsets == self.end - self.first

    def as_json(self) -> dict[str, Any]:
        return {
            "flow": self.lane.flow,
            "topic": self.lane.topic,
            "partition": self.lane.partition,
            "remote_topic": self.remote_topic,
            "first": self.first,
            "end": self.end,
            "closes": self.closes,
            "trouble": self.trouble,
            **asdict(self.account),
        }


_LOOKS = 5
_LOOK_SECONDS = 1.2
"""A running mirror writes its positions down every second."""


async def audit_flow(flow: FlowSettings) -> AsyncIterator[LaneAudit]:
    """One lane after the other: each may take a while."""
    async with FlowTranslator(flow) as translator:
        ends = await _ends(translator)
        await _written_down(translator, ends)
        for lane in translator.lanes():
            remote = translator.remote_of(lane.topic)
            try:
                one = await translator.translator(lane)
                auditor = Auditor(one)
                end = ends.get(lane, one.source.end)
                account = await auditor.account(end)
            except (HeliographError, TimeoutError) as error:
                yield LaneAudit(lane, remote, trouble=str(error) or "a broker did not answer in time")
                continue
            yield LaneAudit(lane, remote, auditor.first, max(end, one.entry.source_next), account)


async def _ends(translator: FlowTranslator) -> Mapping[LaneId, int]:
    """Where the sources end now; a lane whose source cannot be seen says so itself."""
    lanes = {(lane.topic, lane.partition): lane for lane in translator.lanes()}
    try:
        found = await offsets_of(translator.source, lanes, LATEST)
    except (HeliographError, TimeoutError):
        return {}
    return {lanes[place]: end for place, end in found.items()}


async def _written_down(translator: FlowTranslator, ends: Mapping[LaneId, int]) -> None:
    """Until the ledger has passed these ends, or no longer moves towards them."""
    before = {lane: translator.position(lane) for lane in ends}
    for _ in range(_LOOKS):
        behind = {lane for lane, position in before.items() if position < ends[lane]}
        if not behind:
            return
        await asyncio.sleep(_LOOK_SECONDS)
        await translator.refresh()
        now = {lane: translator.position(lane) for lane in behind}
        if all(now[lane] <= before[lane] for lane in behind):
            return
        before = now
