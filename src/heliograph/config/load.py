"""From the text of a MirrorMaker 2 file to Settings, or to all its faults at once.

Joins the parts (grammar, checks, prefix rules) and looks at what must fit together. Only `load_file` touches a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

from heliograph.config.build import (
    cluster,
    engine_settings,
    flow_settings,
    is_enabled,
    offset_sync_faults,
    option_values,
    security_faults,
)
from heliograph.config.check import Checked, check
from heliograph.config.flows import FlowSettings, Settings
from heliograph.config.options import BY_NAME, SECURITY_NAMES
from heliograph.config.providers import NOTHING, Outside
from heliograph.errors import ConfigError
from heliograph.model.clusters import Flow
from heliograph.replication.filters import NameFilter

_BOM = b"\xef\xbb\xbf"
_CODEC = "producer.compression.type"
_LITERAL = re.compile(r"[A-Za-z0-9._-]+")


def load_file(path: str) -> Settings:
    """Read as Java reads it: ISO 8859-1, other characters as \\uXXXX. Config providers see this process's environment."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from error
    outside = Outside(os.environ, lambda name: Path(name).read_text(encoding="utf-8"))
    return load(content.removeprefix(_BOM).decode("latin-1"), path, outside)


def load(text: str, path: str, outside: Outside = NOTHING) -> Settings:
    """The settings of a file; raises ConfigError with every fault."""
    checked = check(text, path, outside)
    enabled = tuple(_enabled_flows(checked))
    clusters = {alias: cluster(checked.entries, alias) for alias in checked.aliases}
    flows = tuple(flow_settings(checked.entries, flow, clusters) for flow in enabled)
    _explain_codecs(checked, flows)
    faults = [*_in_order(checked.faults, path), *(f"{path}: {fault}" for fault in _misfits(checked, flows))]
    if faults:
        raise ConfigError(faults)
    return Settings(
        path=path,
        clusters=clusters,
        flows=flows,
        engine=engine_settings(checked.entries),
        warnings=tuple(_in_order(checked.warnings, path)),
        values=tuple(option_values(checked.entries, checked.known, enabled)),
    )


def _in_order(sentences: Iterable[str], path: str) -> list[str]:
    """By line: repeated names are noticed before everything else."""
    return sorted(sentences, key=lambda sentence: int(sentence.removeprefix(f"{path}:").partition(":")[0]))


def _enabled_flows(checked: Checked) -> Iterator[Flow]:
    for source in checked.aliases:
        for target in checked.aliases:
            flow = Flow(source, target)
            if source != target and is_enabled(checked.entries, flow):
                yield flow


def _misfits(checked: Checked, flows: Sequence[FlowSettings]) -> Iterator[str]:
    """What no single line shows."""
    if not checked.aliases and "clusters" not in checked.faulty:
        yield f"clusters is missing: expected {BY_NAME['clusters'].allowed}"
    if checked.aliases and not flows and not any(name.endswith("enabled") for name in checked.faulty):
        yield f"no flow is enabled: {_advice(checked.aliases)}"
    yield from _without_addresses(checked, flows)
    yield from _without_codec(checked, flows)
    if not any(name.endswith(SECURITY_NAMES) for name in checked.faulty):
        yield from dict.fromkeys(fault for flow in flows for fault in security_faults(checked.entries, flow.flow))
    yield from dict.fromkeys(fault for flow in flows for fault in offset_sync_faults(checked.entries, flow.flow))
    yield from _shared_topics(flows)
    yield from _circles(flows)


def _advice(aliases: Sequence[str]) -> str:
    if len(aliases) == 1:
        return f"add a second alias to clusters, then write {aliases[0]}->ALIAS.enabled = true"
    return f"write {aliases[0]}->{aliases[1]}.enabled = true"


def _without_addresses(checked: Checked, flows: Sequence[FlowSettings]) -> Iterator[str]:
    used = dict.fromkeys(end for flow in flows for end in (flow.source, flow.target))
    for end in used:
        name = f"{end.alias}.bootstrap.servers"
        if not end.bootstrap and name not in checked.faulty:
            yield f"{name} is missing: expected {BY_NAME['bootstrap.servers'].allowed}"


def _without_codec(checked: Checked, flows: Sequence[FlowSettings]) -> Iterator[str]:
    """Kafka's default codec is none: to unpack everything is not what somebody means who does not say it."""
    for flow in flows:
        name = f"{flow.target.alias}.{_CODEC}"
        if flow.codec and name not in checked.entries and name not in checked.faulty:
            yield f"{name} is missing, and {flow.flow.name} recompresses: expected {BY_NAME[_CODEC].allowed}"


def _explain_codecs(checked: Checked, flows: Sequence[FlowSettings]) -> None:
    """Whoever sets a codec expects copies in it, and does not get them without asking for it."""
    for alias in checked.aliases:
        entry = checked.entries.get(f"{alias}.{_CODEC}")
        into = [flow for flow in flows if flow.target.alias == alias]
        if entry is not None and into and not any(flow.codec for flow in into):
            advice = f"{into[0].flow.name}.recompress = true opts in to opening and compressing every batch anew"
            checked.warn(entry.line, f"{entry.name} = {entry.value} has no effect: batches keep their codec; {advice}")


def _shared_topics(flows: Sequence[FlowSettings]) -> Iterator[str]:
    """Names that two sources would mix in one topic; what regular expressions mean is known only with the topics."""
    for one, other in combinations(_identity(flows), 2):
        if one.target == other.target:
            for topic in _literals(one) & _literals(other):
                yield (
                    f"{one.flow.name} and {other.flow.name} would both write {topic} on {one.target.alias}: "
                    "IdentityReplicationPolicy keeps names, so name it in the topics of one of them"
                )


def _literals(settings: FlowSettings) -> set[str]:
    names = NameFilter(settings.topics, settings.topics_exclude)
    return {topic for topic in settings.topics if _LITERAL.fullmatch(topic) and names.accepts(topic)}


def _circles(flows: Sequence[FlowSettings]) -> Iterator[str]:
    """Under IdentityReplicationPolicy nothing in a name stops a record that comes back to where it began."""
    for settings in _identity(flows):
        for pattern in settings.topics:
            hops = [s.flow for s in _identity(flows) if _passes_alike(pattern, settings, s)]
            if settings.flow == min(_loop(settings.flow, hops), default=None):
                yield (
                    f"records of {pattern} would circle for ever through {settings.flow.name}: "
                    "IdentityReplicationPolicy keeps names, so take it out of the topics of one flow of the circle"
                )


def _passes_alike(pattern: str, one: FlowSettings, other: FlowSettings) -> bool:
    """Whether what the pattern lets through one flow passes the other for certain, whatever the topics are."""
    literal = pattern in _literals(one) and pattern in _literals(other)
    same = pattern in other.topics and set(one.topics_exclude) == set(other.topics_exclude)
    return literal or (same and not _LITERAL.fullmatch(pattern))


def _loop(start: Flow, hops: Sequence[Flow]) -> set[Flow]:
    """The flows that lie on circles with `start`; empty if it is on none."""
    ahead = _reach(start, hops)
    return {hop for hop in ahead if start in _reach(hop, hops)} if start in ahead else set()


def _reach(start: Flow, hops: Sequence[Flow]) -> set[Flow]:
    """The flows that a record can take after `start`."""
    reached: set[Flow] = set()
    waiting = [start]
    while waiting:
        target = waiting.pop().target
        following = [hop for hop in hops if hop.source == target and hop not in reached]
        reached.update(following)
        waiting.extend(following)
    return reached


def _identity(flows: Sequence[FlowSettings]) -> list[FlowSettings]:
    return [settings for settings in flows if settings.policy == "identity"]
