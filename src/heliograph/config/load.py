"""From the text of a MirrorMaker 2 file to Settings, or to all its faults at once.

Joins the parts (grammar, checks, prefix rules) and looks at what must fit together. Only `load_file` touches a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from heliograph.config.both_ways import paired, unheeded
from heliograph.config.build import (
    cluster,
    engine_settings,
    flow_settings,
    is_enabled,
    offset_sync_faults,
    option_values,
    routes,
    security_faults,
)
from heliograph.config.check import NO_OVERLAY, Checked, check
from heliograph.config.contradictions import contradictions
from heliograph.config.flows import FlowSettings, Settings
from heliograph.config.foreign_file import mistaken_for
from heliograph.config.options import BY_NAME, SECURITY_NAMES
from heliograph.config.providers import NOTHING, Outside
from heliograph.config.server import server_faults, server_settings, state_cluster
from heliograph.config.topology import circles, shared_topics
from heliograph.config.transforms import transform_faults
from heliograph.config.watching import watch_faults
from heliograph.errors import ConfigError
from heliograph.model.clusters import Flow

_BOM = b"\xef\xbb\xbf"
_CODEC = "producer.compression.type"


def load_file(path: str, overlay: Mapping[str, str] = NO_OVERLAY) -> Settings:
    """Read as Java reads it: ISO 8859-1, other characters as \\uXXXX. Config providers see this process's environment."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from error
    if mistake := mistaken_for(content):
        raise ConfigError([f"{path} {mistake}"])
    outside = Outside(os.environ, lambda name: Path(name).read_text(encoding="utf-8"))
    return load(content.removeprefix(_BOM).decode("latin-1"), path, outside, overlay)


def load(text: str, path: str, outside: Outside = NOTHING, overlay: Mapping[str, str] = NO_OVERLAY) -> Settings:
    """The settings of a file, with what REST changed over it; raises ConfigError with every fault."""
    checked = check(text, path, outside, overlay)
    enabled = tuple(_enabled_flows(checked))
    clusters = {alias: cluster(checked.entries, alias) for alias in checked.aliases}
    flows = paired(routes(checked.entries, [flow_settings(checked.entries, flow, clusters) for flow in enabled]))
    _explain_codecs(checked, flows)
    for line, sentence in dict.fromkeys(unheeded(checked.entries, flows)):
        checked.warn(line, sentence)
    for flow in enabled:
        for line, sentence in transform_faults(checked.entries, flow, checked.is_worker):
            checked.fault(line, sentence)
    faults = [
        *_in_order(dict.fromkeys(checked.faults), path),
        *(f"{path}: {fault}" for fault in _misfits(checked, flows)),
    ]
    if faults:
        raise ConfigError(faults)
    return Settings(
        path=path,
        clusters=clusters,
        flows=flows,
        engine=engine_settings(checked.entries),
        warnings=tuple(_in_order(checked.warnings, path)),
        values=tuple(option_values(checked.entries, checked.known, enabled)),
        server=server_settings(checked.entries),
        state=state_cluster(checked.entries, clusters),
    )


def _in_order(sentences: Iterable[str], path: str) -> list[str]:
    """By line: repeated names are noticed before everything else."""
    return sorted(sentences, key=lambda sentence: _line_of(sentence, path))


def _line_of(sentence: str, path: str) -> int:
    line = sentence.removeprefix(f"{path}:").partition(":")[0]
    return int(line) if line.isdigit() else 0  # what came by REST has none


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
    if checked.aliases and not flows and not _may_be_empty(checked):
        yield f"no flow is enabled: {_advice(checked.aliases)}, or set listeners and add flows by REST"
    yield from _without_addresses(checked, flows)
    yield from _without_codec(checked, flows)
    if not any(name.endswith(SECURITY_NAMES) for name in checked.faulty):
        yield from dict.fromkeys(fault for flow in flows for fault in security_faults(checked.entries, flow.flow))
    yield from dict.fromkeys(fault for flow in flows for fault in offset_sync_faults(checked.entries, flow.flow))
    yield from (fault for flow in flows for fault in watch_faults(checked.entries, flow.flow))
    yield from dict.fromkeys(_unusable(flows))
    yield from server_faults(checked.entries, checked.aliases)
    yield from contradictions(checked.entries)
    if any(flow.plugins.classes for flow in flows):
        return  # what a user's class makes of names is seen when the clusters are read
    yield from shared_topics(flows)
    yield from circles(flows)


def _unusable(flows: Sequence[FlowSettings]) -> Iterator[str]:
    for flow in flows:
        yield from (f"{option} = {why}" for option, why in flow.plugins.faults())


def _may_be_empty(checked: Checked) -> bool:
    """Whoever says where REST listens may mean to add all flows by it."""
    says_where = checked.is_worker or any(
        name in checked.entries for name in ("listeners", "rest.port", "rest.host.name")
    )
    by_rest = says_where and bool(server_settings(checked.entries).listeners)
    return by_rest or any(name.endswith("enabled") for name in checked.faulty)


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
