"""How a lane begins in a run: with the generation that the ledger has, with a new one, or not at all (P1, P7, P9).

Knows what makes a numbering end: another topic, another cluster, another rule. Must not know how positions are found.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from heliograph.model.events import EventKind
from heliograph.model.lanes import Lane, LedgerEntry, Rule
from heliograph.model.policies import Policies
from heliograph.replication.policies import Decision, SourceReplaced, Step, TargetReplaced, decide
from heliograph.replication.starts import Place

_NO_TOPIC_ID = "00000000-0000-0000-0000-000000000000"


class Start(StrEnum):
    """Where on the source a new generation begins."""

    BY_OPTION = "start.from"
    LOG_START = "log start"
    POSITION = "position"
    TAKE_OVER = "where MirrorMaker 2 stopped"
    BY_REQUEST = "where somebody set it"


@dataclass(frozen=True)
class Continue:
    """Attach in the generation of this entry (P2). On a compacted source the attempt then opens its own (P8.2)."""

    entry: LedgerEntry


@dataclass(frozen=True)
class New:
    """Claim this generation, with a fresh epoch and sequence 0 (P1.4, P1.5)."""

    generation: int
    reason: str
    start: Start
    previous: LedgerEntry | None = None
    """The entry it follows; with `Start.POSITION` its `source_next` is the start, and it must be exact: drain first."""
    at: Place | None = None
    """Where it begins, once that is known; until then `start` says how to find out."""
    kind: EventKind = EventKind.GENERATION

    @property
    def needs_drain(self) -> bool:
        return self.start is Start.POSITION


@dataclass(frozen=True)
class Refused:
    """The lane parks with this reason."""

    reason: str
    kind: EventKind = EventKind.PARKED
    what_to_do: str = ""


Opening = Continue | New | Refused


def opening(
    latest: LedgerEntry | None, lane: Lane, rule: Rule, target_cluster_id: str, policies: Policies | None = None
) -> Opening:
    """How a lane begins: by what the ledger says of it and what both clusters are at this moment.

    Of several changes the one that reaches furthest decides: a refusal, then a copy from the start, then a new numbering.
    """
    if latest is None:
        return New(0, "new lane", Start.BY_OPTION)
    found: list[Decision] = []
    if is_another(latest.source_topic_id, lane.source_topic_id):
        found.append(decide(policies or Policies(), SourceReplaced(lane.id.topic)))
    cluster = latest.target_cluster_id != target_cluster_id
    if cluster or is_another(latest.target_topic_id, lane.target_topic_id):
        found.append(decide(policies or Policies(), TargetReplaced(lane.remote_topic, cluster)))
    for decision in sorted(found, key=lambda decision: decision.step is not Step.PARK):
        if decision.step is Step.PARK:
            return Refused(decision.reason, decision.kind, decision.what_to_do)
        return New(latest.generation + 1, decision.reason, Start.LOG_START, latest, kind=decision.kind)
    if latest.rule != rule:
        return New(latest.generation + 1, "rule changed", Start.POSITION, latest)
    return Continue(latest)


def is_another(known: str, found: str) -> bool:
    """Brokers before 2.8 show no topic ids: no id says nothing, also when the cluster is upgraded later."""
    return known != found and _NO_TOPIC_ID not in {known, found} and "" not in {known, found}
