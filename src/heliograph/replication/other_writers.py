"""Who else writes what a flow writes: a MirrorMaker 2 that still runs, and producers that are not in the ledger.

Knows Connect's groups as values, and producers by their id. A writer without a producer id shows only while its batch is
the last one of a partition: that limit is the broker's, and stands in the sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from heliograph.replication.findings import Finding, Level, named

_SOURCE_CONNECTOR = "MirrorSourceConnector"
NO_PRODUCER_ID = -1


@dataclass(frozen=True)
class ConnectGroup:
    """A group of Kafka Connect workers with live members; `tasks` are connectors by name, with how many tasks run."""

    name: str
    hosts: tuple[str, ...]
    tasks: Mapping[str, int]


@dataclass(frozen=True)
class RemoteWriters:
    """A remote partition: the producer ids that its leader remembers, and the one that wrote its last batch."""

    partition: str
    remembered: frozenset[int]
    last: int | None
    """None: the partition is empty."""


def mirror_maker_findings(
    flow: tuple[str, str], groups: Sequence[ConnectGroup], why_not: str = ""
) -> Iterator[Finding]:
    """`flow` is source and target alias. Dedicated MirrorMaker 2 has the group `<source>-mm2`, whatever else it runs."""
    source, target = flow
    subject = f"{source}->{target}: MirrorMaker 2"
    if why_not:
        yield Finding(Level.WARN, subject, f"not known: {why_not}", "see yourself that none runs for this flow")
        return
    found = [finding for group in groups if (finding := _judged(subject, source, target, group)) is not None]
    yield from found
    if not found:
        yield Finding(Level.PASS, subject, f"none has live members on cluster {target}")


def _judged(subject: str, source: str, target: str, group: ConnectGroup) -> Finding | None:
    where = f"group {group.name} on cluster {target} has {len(group.hosts)} live member(s) at {named(group.hosts)}"
    advice = "stop it first: two mirrors would write the same remote topics"
    dedicated = group.name == f"{source}-mm2"
    if dedicated and not group.tasks.get(_SOURCE_CONNECTOR, 0) and group.tasks:
        sentence = f"{where}, and copies no records: its {_SOURCE_CONNECTOR} has no task"
        return Finding(
            Level.WARN, subject, sentence, "it may have this flow disabled, or still be starting: see its file"
        )
    if dedicated or group.tasks.get(f"{source}->{target}.{_SOURCE_CONNECTOR}", 0):
        return Finding(Level.FAIL, subject, f"it still runs for this flow: {where}", advice)
    mirrors = [name for name, tasks in group.tasks.items() if tasks and "mirror" in name.lower()]
    if mirrors and not group.name.endswith("-mm2"):
        sentence = f"a Connect cluster runs {named(mirrors)}: {where}"
        return Finding(Level.WARN, subject, sentence, f"if one of them copies {source} to {target}, {advice}")
    return None


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
