"""`heliograph audit`: for every lane of a flow, what became of each of its source offsets. Reads only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from typing import Any

from heliograph.config.flows import FlowSettings
from heliograph.errors import HeliographError
from heliograph.kafka.auditor import Auditor
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


async def audit_flow(flow: FlowSettings) -> AsyncIterator[LaneAudit]:
    """One lane after the other: each may take a while."""
    async with FlowTranslator(flow) as translator:
        for lane in translator.lanes():
            remote = translator.remote_of(lane.topic)
            try:
                one = await translator.translator(lane)
                auditor = Auditor(one)
                account = await auditor.account()
            except (HeliographError, TimeoutError) as error:
                yield LaneAudit(lane, remote, trouble=str(error) or "a broker did not answer in time")
                continue
            yield LaneAudit(lane, remote, auditor.first, max(one.source.end, one.entry.source_next), account)
