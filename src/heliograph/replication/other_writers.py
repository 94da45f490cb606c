"""Who else writes what a flow writes: a MirrorMaker 2 that still runs, and producers that are not in the ledger.

Knows producers by their id. A writer without a producer id shows only while its batch is
the last one of a partition: that limit is the broker's, and stands in the sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heliograph.replication.findings import Finding, Level, named

NO_PRODUCER_ID = -1


@dataclass(frozen=True)
class RemoteWriters:
    """A remote partition: the producer ids that its leader remembers, and the one that wrote its last batch."""

    partition: str
    remembered: frozenset[int]
    last: int | None
    """None: the partition is empty."""


def mirror_maker_finding(
    flow: tuple[str, str], refusal: str, lookalikes: Sequence[str] = (), why_not: str = ""
) -> Finding:
    """`flow` is source and target alias; `refusal` is the sentence with which a run would refuse the flow."""
    source, target = flow
    subject = f"{source}->{target}: MirrorMaker 2"
    if why_not:
        return Finding(Level.WARN, subject, f"not known: {why_not}", "see yourself that none runs for this flow")
    if refusal:
        sentence, _, advice = refusal.removeprefix(f"flow {source}->{target}: ").rpartition(": ")
        return Finding(Level.FAIL, subject, sentence, advice)
    if lookalikes:
        sentence = f"a Connect cluster on {target} runs {named(lookalikes)}"
        advice = (
            f"if one of them copies {source} to {target}, stop it first: two mirrors would write the same remote topics"
        )
        return Finding(Level.WARN, subject, sentence, advice)
    return Finding(Level.PASS, subject, f"none carries this flow on cluster {target}")


def writer_finding(flow: str, ours: frozenset[int], partitions: Sequence[RemoteWriters]) -> Finding:
    """`ours`: every producer id that the ledger names for this flow."""
    subject = f"{flow}: other writers"
    foreign = {seen.partition: why for seen in partitions if (why := _foreign(ours, seen))}
    if not foreign:
        return Finding(
            Level.PASS,
            subject,
            f"none seen in {len(partitions)} remote partition(s); one without a producer id shows only as the last writer",
        )
    sentence = f"somebody else writes remote topics: {named(f'{where} ({why})' for where, why in foreign.items())}"
    advice = "the copy stays exact, its offsets shift: find that writer, or take the topic out of topics"
    return Finding(Level.WARN, subject, sentence, advice)


def _foreign(ours: frozenset[int], seen: RemoteWriters) -> str:
    strangers = sorted(seen.remembered - ours)
    if strangers:
        return f"producer {', '.join(map(str, strangers))}"
    if seen.last is None or seen.last in ours:
        return ""
    return "last batch without a producer id" if seen.last == NO_PRODUCER_ID else f"last batch of producer {seen.last}"
