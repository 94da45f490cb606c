"""What of a flow lies in Heliograph's own topics, and how much of it can be taken out.

Knows keys and flows. The ledger is compacted, so a tombstone takes a key out. Telemetry and events are logs: only their
beginning can be cut off, so a flow's records go as far as no other flow's lie between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from heliograph.replication.ledger_keys import PRODUCER_NOTE, ClaimKey, EntryKey, LedgerKey, NoteKey, parse_key

UNKNOWN_FLOW = "?"


@dataclass(frozen=True)
class LogRecord:
    """One record of a log topic: its offset and the flow that it is about."""

    offset: int
    flow: str


@dataclass(frozen=True)
class LogCut:
    """Records of one log partition: cut off before `cut`; `left` of the flow stay until the topic's retention."""

    topic: str
    partition: int
    cut: int
    removed: int
    left: int


@dataclass(frozen=True)
class Forgetting:
    """What `forget` does for one flow. With `delete_topics` the topics go as a whole, and nothing else need be done."""

    flow: str
    ledger_keys: tuple[LedgerKey, ...]
    cuts: tuple[LogCut, ...]
    others: tuple[str, ...]
    """Other flows that still have something in the topics."""
    delete_topics: tuple[str, ...]

    @property
    def is_nothing(self) -> bool:
        return not (self.ledger_keys or self.delete_topics or any(cut.removed or cut.left for cut in self.cuts))


def plan_forgetting(
    flow: str, ledger_keys: Iterable[str], logs: Mapping[tuple[str, int], Sequence[LogRecord]], topics: Sequence[str]
) -> Forgetting:
    """`ledger_keys` are the living ones; `logs` are telemetry and events by partition, `topics` those that exist."""
    mine: list[LedgerKey] = []
    others: set[str] = set()
    for key in sorted(ledger_keys):
        parsed, owner = _owner(key)
        if isinstance(parsed, NoteKey) and parsed.kind == PRODUCER_NOTE:
            continue  # it stays with the ledger: a flow back tells this flow's records by it
        if owner == flow and parsed is not None:
            mine.append(parsed)
        else:
            others.add(owner)
    others |= {record.flow for records in logs.values() for record in records if record.flow != flow}
    cuts = tuple(_cut(flow, topic, partition, records) for (topic, partition), records in sorted(logs.items()))
    return Forgetting(flow, tuple(mine), cuts, tuple(sorted(others)), () if others else tuple(topics))


def _owner(key: str) -> tuple[LedgerKey | None, str]:
    """A key of a kind not known here, as a newer version may write, is somebody else's."""
    try:
        parsed = parse_key(key)
    except ValueError:
        return None, UNKNOWN_FLOW
    return parsed, parsed.lane.flow if isinstance(parsed, EntryKey | ClaimKey) else parsed.flow


def _cut(flow: str, topic: str, partition: int, records: Sequence[LogRecord]) -> LogCut:
    foreign = [record.offset for record in records if record.flow != flow]
    mine = [record.offset for record in records if record.flow == flow]
    limit = min(foreign) if foreign else (max(mine) + 1 if mine else 0)
    removed = [offset for offset in mine if offset < limit]
    return LogCut(topic, partition, removed[-1] + 1 if removed else 0, len(removed), len(mine) - len(removed))
